"""eth_config: which rules hold now and which are to come."""

import zlib
from typing import Final

from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.encoding import data, quantity
from devnet.evm.forks import Fork
from devnet.evm.system_contracts import (
    BEACON_ROOTS,
    BLOCK_HASHES,
    CONSOLIDATION_QUEUE,
    WITHDRAWAL_QUEUE,
)
from devnet.node import Node

METHODS = Methods()
_PRECOMPILES: Final = {
    0x01: "ECREC",
    0x02: "SHA256",
    0x03: "RIPEMD160",
    0x04: "ID",
    0x05: "MODEXP",
    0x06: "BN254_ADD",
    0x07: "BN254_MUL",
    0x08: "BN254_PAIRING",
    0x09: "BLAKE2F",
    0x0A: "KZG_POINT_EVALUATION",
    0x0B: "BLS12_G1ADD",
    0x0C: "BLS12_G1MSM",
    0x0D: "BLS12_G2ADD",
    0x0E: "BLS12_G2MSM",
    0x0F: "BLS12_PAIRING_CHECK",
    0x10: "BLS12_MAP_FP_TO_G1",
    0x11: "BLS12_MAP_FP2_TO_G2",
    0x100: "P256VERIFY",
}


@METHODS.named("eth_config")
def config(node: Node, _params: Params) -> dict[str, object]:
    """The fork of the head, the next one and the last one known, null where there is none (EIP-7910)."""
    starts = node.settings.schedule.times or node.settings.schedule.blocks
    now = node.chain.head.header.timestamp
    current = max((at for at in range(len(starts)) if starts[at][0] <= now), default=0)
    following = _config(node, *starts[current + 1]) if current + 1 < len(starts) else None
    last = _config(node, *starts[-1]) if following else None
    return {"current": _config(node, *starts[current]), "next": following, "last": last}


def _config(node: Node, start: int, fork: Fork) -> dict[str, object]:
    precompiles = {
        _PRECOMPILES[number]: data(address)
        for address in sorted(fork.precompiles)
        if (number := int.from_bytes(address, "big"))
    }
    contracts = {}
    if fork.has_beacon_root:
        contracts["BEACON_ROOTS_ADDRESS"] = BEACON_ROOTS
    if fork.has_requests:
        contracts |= {
            "CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS": CONSOLIDATION_QUEUE,
            "DEPOSIT_CONTRACT_ADDRESS": node.miner.deposit_contract,
            "HISTORY_STORAGE_ADDRESS": BLOCK_HASHES,
            "WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS": WITHDRAWAL_QUEUE,
        }
    blobs = fork.blobs
    return {
        "activationTime": start,
        "blobSchedule": None
        if blobs is None
        else {"target": blobs.target, "max": blobs.max, "baseFeeUpdateFraction": blobs.base_fee_update_fraction},
        "chainId": quantity(node.settings.chain_id),
        "forkId": data(_fork_id(node, start)),
        "precompiles": precompiles,
        "systemContracts": {name: data(address) for name, address in sorted(contracts.items())},
    }


def _fork_id(node: Node, until: int) -> bytes:
    """The checksum of genesis and of the forks up to a time, by which peers tell chains apart (EIP-2124, EIP-6122)."""
    genesis, schedule = node.chain.blocks[0], node.settings.schedule
    passed = {height for height, _ in schedule.blocks if height}
    if node.settings.genesis is not None:
        passed |= node.settings.genesis.marks
    times = {start for start, _ in schedule.times if genesis.header.timestamp < start <= until}
    checksum = zlib.crc32(genesis.hash)
    for number in (*sorted(passed), *sorted(times)):
        checksum = zlib.crc32(number.to_bytes(8, "big"), checksum)
    return checksum.to_bytes(4, "big")
