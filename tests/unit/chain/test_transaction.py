"""Our encoding against eth-account's, and everything that must be refused: before signing, and when reading back."""

import pytest
from eth_account import Account
from eth_hash.auto import keccak
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chain import rlp
from chain.errors import InvalidTransaction
from chain.signature import HALF_N, SECP256K1_N
from chain.transaction import UnsignedTransaction, cancel_digest, decode, intent_digest
from chain.types import checksum
from signer.key import Key

SECRET = bytes.fromhex("4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318")
KEY = Key(SECRET)
u64, u256 = st.integers(0, 2**64 - 2), st.integers(0, 2**256 - 1)
address, slot = st.binary(min_size=20, max_size=20), st.binary(min_size=32, max_size=32)
access_lists = st.lists(st.tuples(address, st.lists(slot, max_size=3).map(tuple)), max_size=3).map(tuple)


@st.composite
def transactions(draw) -> UnsignedTransaction:
    kind = draw(st.sampled_from((0, 1, 2)))
    to = draw(st.none() | address)
    low, high = sorted((draw(u256), draw(u256)))
    return UnsignedTransaction(
        chain_id=draw(st.integers(1, 2**63 - 1)),
        nonce=draw(u64),
        type=kind,
        to=to,
        create=to is None,
        value_wei=draw(u256),
        data=draw(st.binary(max_size=300)),
        access_list=draw(access_lists) if kind else (),
        gas=draw(st.integers(21_000, 2**64 - 1)),
        max_fee_wei=high,
        tip_wei=low if kind == 2 else high,
    )


def as_eth_account(tx: UnsignedTransaction) -> dict:
    fields = {"chainId": tx.chain_id, "nonce": tx.nonce, "value": tx.value_wei, "data": tx.data, "gas": tx.gas}
    fields["to"] = "" if tx.to is None else checksum(tx.to)
    if tx.type == 2:
        fields |= {"maxFeePerGas": tx.max_fee_wei, "maxPriorityFeePerGas": tx.tip_wei}
    else:
        fields["gasPrice"] = tx.max_fee_wei
    if tx.type:
        fields["type"] = tx.type
        fields["accessList"] = [
            {"address": checksum(a), "storageKeys": ["0x" + key.hex() for key in keys]} for a, keys in tx.access_list
        ]
    return fields


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(transactions())
def test_bytes_hash_and_sender_equal_eth_account(tx: UnsignedTransaction) -> None:
    theirs = Account.sign_transaction(as_eth_account(tx), SECRET)
    ours = KEY.sign(tx)
    assert ours == bytes(theirs.raw_transaction)
    signed = decode(ours)
    assert (signed.unsigned, signed.hash, signed.sender) == (tx, bytes(theirs.hash), KEY.address)
    assert (signed.r, signed.s) == (theirs.r, theirs.s)


def test_the_example_of_eip_155() -> None:
    tx = make(
        type=0, chain_id=1, nonce=9, to=b"\x35" * 20, value_wei=10**18, max_fee_wei=20 * 10**9, tip_wei=20 * 10**9
    )
    assert tx.signing_payload().hex() == (
        "ec098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080018080"
    )
    assert tx.signing_hash().hex() == "daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53"


def make(**fields) -> UnsignedTransaction:
    usual = {
        "chain_id": 31337,
        "nonce": 1,
        "type": 2,
        "to": b"\x11" * 20,
        "value_wei": 1,
        "data": b"",
        "gas": 21_000,
        "max_fee_wei": 20,
        "tip_wei": 2,
    }
    return UnsignedTransaction(**usual | fields)


NUMBERS = ("chain_id", "nonce", "type", "value_wei", "gas", "max_fee_wei", "tip_wei")


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [1.0, True, None, "5", "0x0a", b"\x01", -1, 2**256])
def test_numbers_of_another_type_or_range_are_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidTransaction):
        make(**{name: value})


@pytest.mark.parametrize(
    "fields",
    [
        {"chain_id": 0},
        {"chain_id": 2**63},
        {"nonce": 2**64 - 1},
        {"nonce": 2**64},
        {"type": 3},
        {"type": 4},
        {"gas": 0},
        {"gas": 20_999},
        {"gas": 2**64},
        {"tip_wei": 21},
        {"type": 0, "max_fee_wei": 5, "tip_wei": 4},
        {"type": 1, "max_fee_wei": 5, "tip_wei": 4},
        {"to": None},
        {"to": ""},
        {"to": b""},
        {"to": b"\x11" * 19},
        {"to": b"\x11" * 32},
        {"to": "0x" + "11" * 20},
        {"to": bytearray(20)},
        {"create": True},
        {"to": None, "create": None},
        {"data": "0xabc"},
        {"data": "abcd"},
        {"data": 5},
        {"data": None},
        {"data": bytearray(b"x")},
        {"access_list": []},
        {"access_list": None},
        {"access_list": ((b"\x11" * 20, [b"\x00" * 32]),)},
        {"access_list": ((b"\x11" * 19, ()),)},
        {"access_list": ((b"\x11" * 20, (b"\x00" * 31,)),)},
        {"access_list": ((b"\x11" * 20, (1,)),)},
        {"access_list": ((b"\x11" * 20,),)},
        {"type": 0, "max_fee_wei": 5, "tip_wei": 5, "access_list": ((b"\x11" * 20, ()),)},
    ],
    ids=str,
)
def test_what_no_node_could_decode_or_nobody_meant_is_refused(fields: dict) -> None:
    with pytest.raises(InvalidTransaction):
        make(**fields)


def test_a_creation_must_be_asked_for() -> None:
    raw = KEY.sign(make(to=None, create=True, data=b"\x60"))
    assert decode(raw).unsigned.create
    assert decode(raw).unsigned.to is None


RAW = KEY.sign(make())


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        RAW + b"\x00",
        RAW[:-1],
        RAW[:1],
        b"\x03" + RAW[1:],
        b"\x04" + RAW[1:],
        b"\x7f",
        b"\x80",
        b"\xc0",
        RAW.hex().encode(),
        bytearray(RAW),
        b"\xf9\xff\xff",
        b"\xc1" * 2000,
    ],
    ids=range(13),
)
def test_broken_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(InvalidTransaction):
        decode(raw)


@given(st.binary(max_size=120))
def test_no_bytes_make_decode_raise_anything_else(raw: bytes) -> None:
    for candidate in (raw, b"\x02" + raw, RAW[: len(raw)] + raw):
        try:
            decode(candidate)
        except InvalidTransaction:
            continue


@given(st.integers(0, len(RAW) - 1), st.integers(1, 255))
def test_a_changed_byte_never_reads_as_the_same_transaction_of_the_same_sender(at: int, change: int) -> None:
    other = bytearray(RAW)
    other[at] ^= change
    try:
        signed = decode(bytes(other))
    except InvalidTransaction:
        return
    assert (signed.unsigned, signed.sender) != (make(), KEY.address)


def fields_of(raw: bytes) -> list:
    return rlp.decode(raw[1:])


def joined(items: list) -> bytes:
    def one(item) -> bytes:
        return rlp.string(item) if isinstance(item, bytes) else rlp.wrap(b"".join(map(one, item)))

    return rlp.wrap(b"".join(map(one, items)))


def test_a_high_s_is_refused_both_ways() -> None:
    signed = decode(RAW)
    assert signed.s <= HALF_N
    with pytest.raises(InvalidTransaction, match="high s"):
        signed.unsigned.encode(signed.r, SECP256K1_N - signed.s, 1 - signed.y_parity)
    items = fields_of(RAW)
    items[-1] = (SECP256K1_N - signed.s).to_bytes(32, "big").lstrip(b"\0")
    items[-3] = b"\x01" if signed.y_parity == 0 else b""
    with pytest.raises(InvalidTransaction, match="high s"):
        decode(b"\x02" + joined(items))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (9, b"\x1b"),  # yParity 27
        (9, b"\x1c"),
        (9, b"\x02"),
        (9, b"\x00"),
        (1, b"\x00\x01"),
        (0, b""),
        (5, b"\x11" * 19),
        (5, [b"\x11"]),
        (6, b"\x00" * 33),
        (7, [b"x"]),
        (8, b"x"),
        (8, [b"x"]),
        (8, [[b"\x11" * 20]]),
        (8, [[b"\x11" * 20, b"x"]]),
        (10, b""),
        (11, b""),
        (10, SECP256K1_N.to_bytes(32, "big")),
    ],
)
def test_a_bad_field_is_refused_when_read_back(place: int, value: object) -> None:
    items = fields_of(RAW)
    items[place] = value
    with pytest.raises(InvalidTransaction):
        decode(b"\x02" + joined(items))


def test_a_field_too_many_or_too_few_is_refused() -> None:
    for items in (fields_of(RAW)[:-1], [*fields_of(RAW), b"\x01"]):
        with pytest.raises(InvalidTransaction, match="12 fields"):
            decode(b"\x02" + joined(items))


@pytest.mark.parametrize("v", [0, 1, 27, 28, 35, 36])
def test_a_legacy_transaction_without_a_chain_id_is_refused(v: int) -> None:
    items = rlp.decode(KEY.sign(make(type=0, max_fee_wei=5, tip_wei=5)))
    items[6] = v.to_bytes(1, "big") if v else b""
    with pytest.raises(InvalidTransaction, match="EIP-155"):
        decode(joined(items))


@pytest.mark.parametrize(
    "raw", ["8100", "b800", "b80161", "f800", "b90001" + "61", "bf" + "ff" * 8, "c281", "c28180ff"]
)
def test_rlp_takes_the_shortest_form_only(raw: str) -> None:
    with pytest.raises(InvalidTransaction):
        rlp.decode(bytes.fromhex(raw))


@given(st.recursive(st.binary(max_size=80), lambda inner: st.lists(inner, max_size=4), max_leaves=6))
def test_rlp_equals_the_rlp_package(item) -> None:
    import rlp as theirs

    def ours(value) -> bytes:
        return rlp.string(value) if isinstance(value, bytes) else rlp.wrap(b"".join(map(ours, value)))

    assert ours(item) == theirs.encode(item)


@given(u256)
def test_rlp_integers_equal_the_rlp_package(value: int) -> None:
    import rlp as theirs

    assert rlp.integer(value) == theirs.encode(value)
    assert rlp.unsigned(rlp.decode(rlp.integer(value))) == value


@given(address, st.none() | address, u256, st.binary(max_size=99), access_lists)
def test_the_intent_digest_is_keccak_of_the_rlp_list(sender, to, value, data, access_list) -> None:
    import rlp as theirs

    listed = [5, sender, to or b"", value, data, [[a, list(keys)] for a, keys in access_list]]
    assert intent_digest(5, sender, to, value, data, access_list) == keccak(theirs.encode(listed))


def test_the_digest_tells_a_creation_from_the_zero_address() -> None:
    sender = b"\x01" * 20
    assert intent_digest(1, sender, None, 0, b"", ()) != intent_digest(1, sender, bytes(20), 0, b"", ())
    assert cancel_digest(1, sender) == intent_digest(1, sender, sender, 0, b"", ())
    assert cancel_digest(1, sender) != cancel_digest(2, sender)
