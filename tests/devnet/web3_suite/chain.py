"""The chain web3.py's module suite expects to find: its contracts deployed, blocks of known content behind them."""

from dataclasses import dataclass
from typing import Any

from web3 import Web3
from web3._utils.contract_sources.contract_data.emitter_contract import EMITTER_CONTRACT_DATA
from web3._utils.contract_sources.contract_data.math_contract import MATH_CONTRACT_DATA
from web3._utils.contract_sources.contract_data.offchain_lookup import OFFCHAIN_LOOKUP_DATA
from web3._utils.contract_sources.contract_data.panic_errors_contract import PANIC_ERRORS_CONTRACT_DATA
from web3._utils.contract_sources.contract_data.revert_contract import REVERT_CONTRACT_DATA
from web3._utils.contract_sources.contract_data.storage_contract import STORAGE_CONTRACT_DATA

from tests.support.devnet import NodeProcess

CONTRACTS: dict[str, Any] = {
    "math": MATH_CONTRACT_DATA,
    "emitter": EMITTER_CONTRACT_DATA,
    "revert": REVERT_CONTRACT_DATA,
    "panic_errors": PANIC_ERRORS_CONTRACT_DATA,
    "storage": STORAGE_CONTRACT_DATA,
    "offchain_lookup": OFFCHAIN_LOOKUP_DATA,
}
LOG_DOUBLE_WITH_INDEX = 9  # of the emitter's enum WhichEvent; the suite looks for its topic
EMPTY_BLOCKS = 6  # the suite reads blocks 0 to 6 in one batch


@dataclass(frozen=True)
class PreparedChain:
    """Where things are. Hashes of blocks and transactions are hex."""

    addresses: dict[str, Any]
    deploy_hash: str
    plain_hash: str
    log_hash: str
    plain_block: str
    log_block: str
    empty_block: str


def prepare(node: NodeProcess, interval: int) -> PreparedChain:
    """Deploy and mine by order, then let the node mine every `interval` seconds."""
    web3 = Web3(Web3.HTTPProvider(node.url))
    sender = web3.eth.accounts[0]
    node.rpc("evm_setIntervalMining", 0)
    hashes = {
        name: web3.eth.contract(**contract).constructor().transact({"from": sender, "gas": 3_000_000})
        for name, contract in CONTRACTS.items()
    }
    node.rpc("evm_mine")
    addresses = {name: web3.eth.get_transaction_receipt(value)["contractAddress"] for name, value in hashes.items()}
    plain = web3.eth.send_transaction({"from": sender, "to": sender, "value": 1, "gas": 21_000})
    node.rpc("evm_mine")
    emitter = web3.eth.contract(address=addresses["emitter"], abi=EMITTER_CONTRACT_DATA["abi"])
    log = emitter.functions.logDouble(LOG_DOUBLE_WITH_INDEX, 12_345, 54_321).transact({"from": sender})
    node.rpc("evm_mine")
    for _ in range(EMPTY_BLOCKS):
        node.rpc("evm_mine")
    node.rpc("evm_setIntervalMining", interval)
    return PreparedChain(
        addresses=addresses,
        deploy_hash=hashes["math"].to_0x_hex(),
        plain_hash=plain.to_0x_hex(),
        log_hash=log.to_0x_hex(),
        plain_block=web3.eth.get_transaction_receipt(plain)["blockHash"].to_0x_hex(),
        log_block=web3.eth.get_transaction_receipt(log)["blockHash"].to_0x_hex(),
        empty_block=web3.eth.get_block("latest")["hash"].to_0x_hex(),
    )
