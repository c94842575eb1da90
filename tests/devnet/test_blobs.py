"""Blob transactions: what enters, what it costs, what blocks and receipts say of it (EIP-4844, 7594, 7691, 7918).

Texts are those of geth 1.17.10, asked with the same bytes.
"""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import ckzg
import pytest

from devnet.codec.blocks import Header
from devnet.codec.sidecar import trusted_setup
from devnet.codec.trie import ordered_root
from devnet.errors import RpcError
from devnet.evm.blob_gas import blob_base_fee, next_excess
from devnet.evm.forks import BY_NAME, Schedule
from devnet.node import Node
from devnet.settings import Settings
from tests.devnet.blobs import CELLS, INFINITY, ZERO_BLOB, ZERO_HASH, body, nameless, sign, with_sidecar
from tests.devnet.bytecode import assemble, deploying
from tests.devnet.scenario import deployed
from tests.devnet.wallet import ALICE, BOB, CAROL, ETHER, GWEI, SOMEONE
from tests.support.devnet import Devnet, NodeProcess, RpcFailure

GAS_PER_BLOB = 131_072
# The generator of the curve's first group: a point, but no proof of anything here.
POINT = bytes.fromhex(
    "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb"
)


def refusal(devnet: NodeProcess, raw: str) -> str:
    with pytest.raises(RpcFailure) as problem:
        devnet.rpc("eth_sendRawTransaction", raw)
    assert problem.value.code == -32000
    return problem.value.message


def test_a_blob_transaction_is_mined_and_paid_for_as_on_anvil(either: NodeProcess) -> None:
    signed = sign(ALICE, 0, blobs=3)
    assert either.rpc("eth_sendRawTransaction", signed.raw) == signed.hash
    waiting = either.rpc("eth_getTransactionByHash", signed.hash)
    assert waiting["blobVersionedHashes"] == [ZERO_HASH] * 3
    assert waiting["maxFeePerBlobGas"] == hex(GWEI)
    assert either.rpc("eth_getRawTransactionByHash", signed.hash) == signed.raw
    either.rpc("evm_mine")
    receipt = either.rpc("eth_getTransactionReceipt", signed.hash)
    assert (receipt["status"], receipt["type"], receipt["gasUsed"]) == ("0x1", "0x3", hex(21_000))
    assert (receipt["blobGasUsed"], receipt["blobGasPrice"]) == (hex(3 * GAS_PER_BLOB), "0x1")
    block = either.rpc("eth_getBlockByNumber", "0x1", False)
    assert (block["blobGasUsed"], block["excessBlobGas"]) == (hex(3 * GAS_PER_BLOB), "0x0")
    paid = 21_000 * 2 * GWEI + 3 * GAS_PER_BLOB + 1
    assert either.rpc("eth_getBalance", ALICE.address, "latest") == hex(10_000 * ETHER - paid)


def test_a_block_holds_the_transaction_without_its_blobs_which_stay_to_be_asked_for(devnet: Devnet) -> None:
    signed, plain = sign(ALICE, 0), body(ALICE, 0)
    devnet.rpc("eth_sendRawTransaction", signed.raw)
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getRawTransactionByHash", signed.hash) == plain.raw
    block = devnet.rpc("eth_getBlockByNumber", "latest", False)
    assert block["transactionsRoot"] == "0x" + ordered_root([bytes.fromhex(plain.raw[2:])]).hex()
    assert devnet.rpc("anvil_getBlobsByTransactionHash", signed.hash) == ["0x" + ZERO_BLOB.hex()]
    assert devnet.rpc("anvil_getBlobByHash", ZERO_HASH) == "0x" + ZERO_BLOB.hex()
    assert devnet.rpc("anvil_getBlobByHash", "0x" + "01" * 32) is None


def test_real_blobs_are_proven_in_either_form_and_kept_as_proofs_of_cells(devnet: Devnet) -> None:
    blob = b"".join(bytes((0, *number.to_bytes(31, "big"))) for number in range(4096))
    commitment = ckzg.blob_to_kzg_commitment(blob, trusted_setup())
    _, cells = ckzg.compute_cells_and_kzg_proofs(blob, trusted_setup())
    named = ["0x01" + sha256(commitment).hexdigest()[2:]]

    newer, older = (body(wallet, 0, blobVersionedHashes=named) for wallet in (ALICE, BOB))
    tampered = with_sidecar(newer, [blob], [commitment], [cells[1], *cells[1:]])
    assert refusal(devnet, tampered) == "KZG verification error: can't verify opening proof"
    assert devnet.rpc("eth_sendRawTransaction", with_sidecar(newer, [blob], [commitment], cells)) == newer.hash

    proof = ckzg.compute_blob_kzg_proof(blob, commitment, trusted_setup())
    sent = with_sidecar(older, [blob], [commitment], [proof], version=0)
    assert devnet.rpc("eth_sendRawTransaction", sent) == older.hash  # geth converts it on Osaka
    kept = devnet.rpc("eth_getRawTransactionByHash", older.hash)
    assert kept == with_sidecar(older, [blob], [commitment], cells)
    assert devnet.rpc("devnet_submissions", {"sender": BOB.address})[-1]["raw"] == sent
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getBlockByNumber", "latest", False)["blobGasUsed"] == hex(2 * GAS_PER_BLOB)


def test_a_sidecar_that_does_not_fit_is_refused_in_geths_words(devnet: Devnet) -> None:
    one, two = body(ALICE, 0), body(ALICE, 0, blobs=2)
    blob, point, cells = [ZERO_BLOB], [INFINITY], [INFINITY] * CELLS
    other = "0x01" + "00" * 31
    unproven = body(ALICE, 0, blobVersionedHashes=[other])
    kzg = "KZG verification error: can't verify opening proof"
    for raw, text in [
        (one.raw, "missing sidecar in blob transaction"),
        (with_sidecar(nameless(ALICE, 0), [], [], []), "blobless blob transaction"),
        (with_sidecar(one, blob, point, cells, version=2), "unsupported blob tx version 2"),
        (sign(ALICE, 0, blobs=7).raw, "transaction blob limit exceeded: blob count 7, limit 6"),
        (with_sidecar(one, blob * 2, point, cells), "invalid number of 2 blobs compared to 1 commitments"),
        (with_sidecar(two, blob, point * 2, cells * 2), "invalid number of 1 blobs compared to 2 commitments"),
        (
            with_sidecar(one, blob, point * 2, cells),
            "invalid number of 2 blob commitments compared to 1 blob hashes",
        ),
        (
            with_sidecar(unproven, blob, point, cells),
            f"blob 0: computed hash {ZERO_HASH} mismatches transaction one {other}",
        ),
        (
            with_sidecar(one, blob, point, cells[1:]),
            "Wrong sidecar format: invalid number of 127 blob proofs expected 128",
        ),
        (with_sidecar(one, blob, point, [POINT] * CELLS), kzg),
        (with_sidecar(one, [b"\xff" * len(ZERO_BLOB)], point, cells), kzg),
        (
            with_sidecar(one, [ZERO_BLOB[1:]], point, cells),
            "rlp: input string too short for kzg4844.Blob, decoding into (types.blobTxWithBlobsV1).Blobs[0]",
        ),
        (
            sign(ALICE, 0, maxFeePerBlobGas=0).raw,
            "transaction gas price below minimum: blob fee cap 0, minimum needed 1",
        ),
    ]:
        assert refusal(devnet, raw) == text
    assert devnet.rpc("txpool_status") == {"pending": "0x0", "queued": "0x0"}


def test_blob_transactions_wait_where_a_block_has_no_room_for_their_blobs(devnet: Devnet) -> None:
    waiting = [sign(wallet, nonce, blobs=6) for nonce in (0, 1) for wallet in (ALICE, BOB)]
    waiting.append(sign(CAROL, 0, blobs=3))
    for signed in waiting:
        devnet.rpc("eth_sendRawTransaction", signed.raw)
    devnet.rpc("evm_mine")
    full, rest = (devnet.rpc("evm_mine") and devnet.rpc("eth_getBlockByNumber", hex(at), False) for at in (1, 2))
    assert full["blobGasUsed"] == hex(21 * GAS_PER_BLOB)  # BPO2: 21 at most, 6 + 6 + 6 + 3
    assert rest["blobGasUsed"] == hex(6 * GAS_PER_BLOB)
    assert int(rest["excessBlobGas"], 16) > 0
    ratios = devnet.rpc("eth_feeHistory", "0x2", "0x2", [])["blobGasUsedRatio"]
    assert ratios == [1.0, 6 / 21]


def test_the_opcodes_tell_hashes_and_price(devnet: Devnet) -> None:
    code = assemble("PUSH0 BLOBHASH PUSH0 MSTORE 1 BLOBHASH 32 MSTORE BLOBBASEFEE 64 MSTORE 96 PUSH0 LOG0")
    devnet.rpc("eth_sendRawTransaction", ALICE.create(0, deploying(code)).raw)
    devnet.rpc("evm_mine")
    signed = sign(ALICE, 1, to=deployed(0), gas=100_000)
    devnet.rpc("eth_sendRawTransaction", signed.raw)
    devnet.rpc("evm_mine")
    [log] = devnet.rpc("eth_getTransactionReceipt", signed.hash)["logs"]
    assert log["data"] == ZERO_HASH + "00" * 32 + f"{1:064x}"


def header(**fields: Any) -> Header:
    zero = bytes(32)
    plain = Header(1, zero, bytes(20), zero, zero, zero, bytes(256), 30_000_000, 0, 0, zero, base_fee=7)
    return replace(plain, **fields)


def test_excess_and_price_follow_the_parent_by_the_eips() -> None:
    cancun, prague, osaka, bpo2 = (BY_NAME[name] for name in ("cancun", "prague", "osaka", "bpo2"))
    # EIP-4844: the price is 1 wei until the excess is ln 2 times the fraction, 2,314,057.9 blob gas under Cancun.
    assert (blob_base_fee(cancun, 2_314_057), blob_base_fee(cancun, 2_314_058)) == (1, 2)
    assert blob_base_fee(cancun, 10 * 3_338_477) == 22026  # e^10 = 22026.47
    assert blob_base_fee(bpo2, 10 * 11_684_671) == 22026
    parent = header(excess_blob_gas=5 * GAS_PER_BLOB, blob_gas_used=6 * GAS_PER_BLOB)
    assert next_excess(cancun, parent) == (5 + 6 - 3) * GAS_PER_BLOB
    assert next_excess(prague, parent) == (5 + 6 - 6) * GAS_PER_BLOB
    assert next_excess(bpo2, parent) == 0
    # EIP-7918: 2^13 gas at a base fee of 7 wei costs less than a blob at 1 wei; from 17 wei on it costs more.
    assert next_excess(osaka, parent) == (5 + 6 - 6) * GAS_PER_BLOB
    dear = replace(parent, base_fee=17)
    assert next_excess(osaka, dear) == 5 * GAS_PER_BLOB + 6 * GAS_PER_BLOB * (9 - 6) // 9
    assert next_excess(osaka, replace(parent, base_fee=16)) == (5 + 6 - 6) * GAS_PER_BLOB
    assert next_excess(BY_NAME["shanghai"], parent) == 0


def test_before_osaka_blobs_come_with_one_proof_each_and_before_cancun_not_at_all() -> None:
    node = Node(Settings(automine=False, schedule=Schedule.always(BY_NAME["prague"])))
    one = body(ALICE, 0)
    older = bytes.fromhex(with_sidecar(one, [ZERO_BLOB], [INFINITY], [INFINITY], version=0)[2:])
    newer = bytes.fromhex(sign(ALICE, 0).raw[2:])
    with pytest.raises(RpcError, match="unexpected sidecar version, want: 0, got: 1"):
        node.submit(newer)
    assert node.submit(older).hash == bytes.fromhex(one.hash[2:])
    block = node.miner.mine()
    assert block is not None
    assert block.header.blob_gas_used == GAS_PER_BLOB
    shanghai = Node(Settings(automine=False, schedule=Schedule.always(BY_NAME["shanghai"])))
    with pytest.raises(RpcError, match="transaction type not supported: type 3 rejected, pool not yet in Cancun"):
        shanghai.submit(older)


def test_a_snapshot_and_a_rollback_bring_the_blobs_back_to_the_pool(devnet: Devnet) -> None:
    signed = sign(ALICE, 0)
    devnet.rpc("eth_sendRawTransaction", signed.raw)
    devnet.rpc("evm_mine")
    devnet.rpc("anvil_rollback", 1)
    assert devnet.rpc("eth_getRawTransactionByHash", signed.hash) == signed.raw
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionReceipt", signed.hash)["blobGasUsed"] == hex(GAS_PER_BLOB)
    assert devnet.rpc("eth_getBalance", SOMEONE, "latest") == "0x1"
