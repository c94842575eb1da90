"""Bytes that are no transaction are refused in geth's words: recorded from geth 1.17.10, asked with the same bytes."""

from typing import Any

import pytest
import rlp

from devnet.codec.transaction import decode
from devnet.errors import DecodeError

TO = b"\x5e" * 20
KEY = b"\x01" * 32
TUPLE: list[Any] = [b"", b"\x01" * 20, b"", b"", b"\x01", b"\x01"]
LEGACY: list[Any] = [b"", 10**9, 21_000, TO, b"", b"", 2709, 1, 1]
DYNAMIC: list[Any] = [1337, b"", 1, 10**9, 21_000, TO, b"", b"", [], b"", 1, 1]
BLOB: list[Any] = [1337, b"", 1, 10**9, 21_000, TO, b"", b"", [], 1, [KEY], b"", 1, 1]
SET_CODE: list[Any] = [1337, b"", 1, 10**9, 21_000, TO, b"", b"", [], [TUPLE], b"", 1, 1]


def changed(fields: list[Any], at: int, value: Any) -> list[Any]:
    return [*fields[:at], value, *fields[at + 1 :]]


def legacy(at: int, value: Any) -> bytes:
    return bytes(rlp.encode(changed(LEGACY, at, value)))


def typed(kind: int, fields: list[Any]) -> bytes:
    return bytes((kind,)) + bytes(rlp.encode(fields))


def dynamic(at: int, value: Any) -> bytes:
    return typed(2, changed(DYNAMIC, at, value))


def blob(at: int, value: Any) -> bytes:
    return typed(3, changed(BLOB, at, value))


def set_code(at: int, value: Any) -> bytes:
    return typed(4, changed(SET_CODE, at, value))


INTO = "decoding into (types"
CASES: list[tuple[bytes, str]] = [
    (b"", "typed transaction too short"),
    (b"\x02", "typed transaction too short"),
    (b"\x05\xc0", "transaction type not supported"),
    (b"\x80", "rlp: expected input list for types.LegacyTx"),
    (b"\xc0", "rlp: too few elements for types.LegacyTx"),
    (b"\x02\xc0", "rlp: too few elements for types.DynamicFeeTx"),
    (b"\x02\x80", "rlp: expected input list for types.DynamicFeeTx"),
    (b"\x03\xc0", "unexpected EOF"),
    (b"\x03\xc1\xc0", "unexpected EOF"),
    (b"\x03\x80", "rlp: expected List"),
    (b"\x04\xc0", "rlp: too few elements for types.SetCodeTx"),
    (bytes.fromhex("c9c080808080808080"), "rlp: value size exceeds available input length"),
    (legacy(0, b"\0\1"), f"rlp: non-canonical integer (leading zero bytes) for uint64, {INTO}.LegacyTx).Nonce"),
    (legacy(0, b"\1" * 9), f"rlp: input string too long for uint64, {INTO}.LegacyTx).Nonce"),
    (legacy(1, b"\0\1"), f"rlp: non-canonical integer (leading zero bytes) for *big.Int, {INTO}.LegacyTx).GasPrice"),
    (legacy(3, b"\1" * 19), f"rlp: input string too short for common.Address, {INTO}.LegacyTx).To"),
    (legacy(3, b"\1" * 21), f"rlp: input string too long for common.Address, {INTO}.LegacyTx).To"),
    (
        legacy(3, []),
        f"rlp: wrong kind of empty value (got List, want String) for *common.Address, {INTO}.LegacyTx).To",
    ),
    (legacy(4, []), f"rlp: expected input string or byte for *big.Int, {INTO}.LegacyTx).Value"),
    (legacy(5, [b"\1"]), f"rlp: expected input string or byte for []uint8, {INTO}.LegacyTx).Data"),
    (dynamic(8, b"\1"), f"rlp: expected input list for types.AccessList, {INTO}.DynamicFeeTx).AccessList"),
    (dynamic(8, [b"\1"]), f"rlp: expected input list for types.AccessTuple, {INTO}.DynamicFeeTx).AccessList[0]"),
    (dynamic(8, [[TO]]), f"rlp: too few elements for types.AccessTuple, {INTO}.DynamicFeeTx).AccessList[0]"),
    (
        dynamic(8, [[TO, [], []]]),
        f"rlp: input list has too many elements for types.AccessTuple, {INTO}.DynamicFeeTx).AccessList[0]",
    ),
    (
        dynamic(8, [[TO[1:], []]]),
        f"rlp: input string too short for common.Address, {INTO}.DynamicFeeTx).AccessList[0].Address",
    ),
    (
        dynamic(8, [[TO, [KEY[1:]]]]),
        f"rlp: input string too short for common.Hash, {INTO}.DynamicFeeTx).AccessList[0].StorageKeys[0]",
    ),
    (
        dynamic(8, [[TO, b"\1"]]),
        f"rlp: expected input list for []common.Hash, {INTO}.DynamicFeeTx).AccessList[0].StorageKeys",
    ),
    (dynamic(9, b"\0"), f"rlp: non-canonical integer (leading zero bytes) for *big.Int, {INTO}.DynamicFeeTx).V"),
    (blob(0, b"\1" * 33), "rlp: value too large for uint256"),
    (blob(1, b"\0"), f"rlp: non-canonical integer (leading zero bytes) for uint64, {INTO}.BlobTx).Nonce"),
    (blob(5, b""), f"rlp: input string too short for common.Address, {INTO}.BlobTx).To"),
    (blob(6, b"\0\1"), f"rlp: non-canonical integer (leading zero bytes) for *uint256.Int, {INTO}.BlobTx).Value"),
    (blob(10, b"\1"), f"rlp: expected input list for []common.Hash, {INTO}.BlobTx).BlobHashes"),
    (blob(10, [KEY[1:]]), f"rlp: input string too short for common.Hash, {INTO}.BlobTx).BlobHashes[0]"),
    (typed(3, BLOB[:-1]), "rlp: too few elements for types.BlobTx"),
    (typed(3, [BLOB]), "unexpected EOF"),
    (typed(3, [BLOB, b"\1", [], []]), "rlp: too few elements for types.blobTxWithBlobsV1"),
    (typed(3, [BLOB, b"\1", [], [], [], []]), "rlp: input list has too many elements for types.blobTxWithBlobsV1"),
    (typed(3, [BLOB, [], []]), "rlp: too few elements for types.blobTxWithBlobsV0"),
    (
        typed(3, [BLOB, b"\1", [], [], [b"\1"]]),
        f"rlp: input string too short for kzg4844.Proof, {INTO}.blobTxWithBlobsV1).Proofs[0]",
    ),
    (
        typed(3, [BLOB[:-1], b"\1", [], [], []]),
        f"rlp: too few elements for types.BlobTx, {INTO}.blobTxWithBlobsV1).BlobTx",
    ),
    (
        typed(3, [changed(BLOB, 5, b""), b"\1", [], [], []]),
        f"rlp: input string too short for common.Address, {INTO}.blobTxWithBlobsV1).BlobTx.To",
    ),
    (
        typed(3, [BLOB, b"\0", [], [], []]),
        f"rlp: non-canonical integer (leading zero bytes) for uint8, {INTO}.blobTxWithBlobsV1).Version",
    ),
    (typed(3, [BLOB, b"\2", [], [], []]), "unsupported blob tx version 2"),
    (set_code(5, b""), f"rlp: input string too short for common.Address, {INTO}.SetCodeTx).To"),
    (set_code(9, b"\1"), f"rlp: expected input list for []types.SetCodeAuthorization, {INTO}.SetCodeTx).AuthList"),
    (set_code(9, [b"\1"]), f"rlp: expected input list for types.SetCodeAuthorization, {INTO}.SetCodeTx).AuthList[0]"),
    (set_code(9, [TUPLE[:-1]]), f"rlp: too few elements for types.SetCodeAuthorization, {INTO}.SetCodeTx).AuthList[0]"),
    (
        set_code(9, [changed(TUPLE, 2, b"\0")]),
        f"rlp: non-canonical integer (leading zero bytes) for uint64, {INTO}.SetCodeTx).AuthList[0].Nonce",
    ),
    (
        set_code(9, [changed(TUPLE, 3, b"\1\1")]),
        f"rlp: input string too long for uint8, {INTO}.SetCodeTx).AuthList[0].V",
    ),
    (set_code(9, [changed(TUPLE, 0, b"\1" * 33)]), "rlp: value too large for uint256"),
]


@pytest.mark.parametrize(("raw", "text"), CASES, ids=range(len(CASES)))
def test_bytes_that_are_no_transaction_are_refused_as_by_geth(raw: bytes, text: str) -> None:
    with pytest.raises(DecodeError) as problem:
        decode(raw)
    assert str(problem.value) == text


def test_the_unchanged_ones_decode() -> None:
    for raw, kind in ((legacy(0, b""), 0), (typed(2, DYNAMIC), 2), (typed(3, BLOB), 3), (typed(4, SET_CODE), 4)):
        assert decode(raw).type == kind
        assert decode(raw).wire == raw
