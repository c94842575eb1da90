"""What the node says of itself, and how to make it say otherwise."""

import secrets

from devnet.api.methods_fees import suggested_price
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.codec.keccak import keccak
from devnet.encoding import data, quantity
from devnet.errors import SERVER_ERROR, InvalidParams, RpcError
from devnet.node import Node

NAMESPACES = (
    "anvil",
    "debug",
    "devnet",
    "eth",
    "evm",
    "hardhat",
    "net",
    "personal",
    "rpc",
    "tenderly",
    "txpool",
    "web3",
)
INSTANCE = secrets.token_bytes(32)  # tells two runs apart, as anvil's does
METHODS = Methods()


@METHODS.named("web3_clientVersion")
def client_version(node: Node, _params: Params) -> str:
    """Begins with anvil's name unless told otherwise, because tools refuse nodes they do not know."""
    return node.settings.client_version


@METHODS.named("web3_sha3")
def sha3(_node: Node, params: Params) -> str:
    """Keccak-256 of some bytes."""
    return data(keccak(params.data(0)))


@METHODS.named("net_version", "eth_networkId")
def net_version(node: Node, _params: Params) -> str:
    """The chain id in decimal."""
    return str(node.settings.chain_id)


@METHODS.named("net_listening")
def net_listening(_node: Node, _params: Params) -> bool:
    """Always true."""
    return True


@METHODS.named("net_peerCount")
def net_peer_count(_node: Node, _params: Params) -> str:
    """No peers."""
    return "0x0"


@METHODS.named("rpc_modules")
def rpc_modules(_node: Node, _params: Params) -> dict[str, str]:
    """The namespaces of the methods there are, each with a version as geth has it."""
    return dict.fromkeys(NAMESPACES, "1.0")


@METHODS.named("eth_chainId")
def chain_id(node: Node, _params: Params) -> str:
    """The chain id."""
    return quantity(node.settings.chain_id)


@METHODS.named("eth_syncing")
def syncing(_node: Node, _params: Params) -> bool:
    """Never behind."""
    return False


@METHODS.named("eth_protocolVersion")
def protocol_version(_node: Node, _params: Params) -> int:
    """A number that means nothing any more (anvil's)."""
    return 1


@METHODS.named("eth_hashrate")
def hash_rate(_node: Node, _params: Params) -> str:
    """No work is proved here."""
    return "0x0"


@METHODS.named("eth_mining")
def mining(_node: Node, _params: Params) -> bool:
    """No work is proved here."""
    return False


@METHODS.named("anvil_setChainId")
def set_chain_id(node: Node, params: Params) -> None:
    """Be another chain from now on: for signatures, for CHAINID and in answers."""
    node.set_chain_id(params.number(0))


@METHODS.named("anvil_setLoggingEnabled", "hardhat_setLoggingEnabled")
def set_logging_enabled(_node: Node, params: Params) -> None:
    """Taken and without effect: the devnet prints no calls."""
    params.flag(0)


@METHODS.named("anvil_setMinGasPrice", "hardhat_setMinGasPrice")
def set_min_gas_price(_node: Node, _params: Params) -> None:
    """Refused as by anvil: there are base fees."""
    raise InvalidParams("anvil_setMinGasPrice is not supported when EIP-1559 is active")


@METHODS.named("anvil_setRpcUrl")
def set_rpc_url(_node: Node, _params: Params) -> None:
    """Refused: there is no chain behind this one."""
    raise RpcError(SERVER_ERROR, "this devnet does not fork: it has no endpoint whose address could be set")


@METHODS.named("anvil_getGenesisTime")
def get_genesis_time(node: Node, _params: Params) -> int:
    """The timestamp of genesis in seconds."""
    return node.chain.blocks[0].header.timestamp


@METHODS.named("anvil_nodeInfo", "hardhat_nodeInfo")
def node_info(node: Node, _params: Params) -> dict[str, object]:
    """Head, fork and fees in anvil's shape."""
    head = node.chain.head
    return {
        "currentBlockNumber": quantity(head.number),
        "currentBlockTimestamp": head.header.timestamp,
        "currentBlockHash": data(head.hash),
        "hardFork": node.pool.rules.fork.name,
        "transactionOrder": node.miner.orders.order,
        "environment": {
            "baseFee": quantity(node.miner.next_context().base_fee),
            "chainId": node.settings.chain_id,
            "gasLimit": quantity(node.pool.rules.gas_limit),
            "gasPrice": quantity(suggested_price(node)),
        },
        "forkConfig": {"forkUrl": None, "forkBlockNumber": None, "forkRetryBackoff": None},
        "network": None,
    }


@METHODS.named("anvil_metadata", "hardhat_metadata")
def metadata(node: Node, _params: Params) -> dict[str, object]:
    """Client, chain and open snapshots in anvil's shape; `instanceId` tells two runs apart."""
    head = node.chain.head
    version = node.settings.client_version
    return {
        "clientVersion": version,
        "clientSemver": version.partition("/v")[2].partition(" ")[0],
        "clientCommitSha": "0" * 40,
        "chainId": node.settings.chain_id,
        "instanceId": data(INSTANCE),
        "latestBlockNumber": head.number,
        "latestBlockHash": data(head.hash),
        "forkedNetwork": None,
        "snapshots": {
            quantity(number): [snapshot.head, data(node.chain.blocks[snapshot.head].hash)]
            for number, snapshot in node.snapshots.open.items()
            if snapshot.head <= head.number
        },
    }
