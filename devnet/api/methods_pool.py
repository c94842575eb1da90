"""Methods that put transactions into the pool and look into it."""

from devnet.accounts import sign
from devnet.api import shapes
from devnet.api.block_reference import Reference
from devnet.api.call_request import CallRequest, parse_call
from devnet.api.methods_fees import suggested_price, suggested_tip
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.api.simulation import context_of, estimate, state_at
from devnet.codec.rlp_coding import Item, integer
from devnet.codec.transaction import ACCESS_LIST, DYNAMIC_FEE, LEGACY, Transaction
from devnet.encoding import checksum, data
from devnet.errors import Rejected
from devnet.node import Node
from devnet.txpool.lane import Pooled

METHODS = Methods()


@METHODS.named("eth_sendRawTransaction")
def send_raw_transaction(node: Node, params: Params) -> str:
    """Submit signed bytes. With automine the block is made before the answer."""
    return data(node.submit(params.data(0)).hash)


@METHODS.named("eth_sendTransaction")
def send_transaction(node: Node, params: Params) -> str:
    """Sign for a development account, filling in what is missing, and submit."""
    return data(node.submit(_signed(node, params).raw).hash)


@METHODS.named("eth_signTransaction")
def sign_transaction(node: Node, params: Params) -> shapes.Json:
    """As eth_sendTransaction without the submission (geth's shape: raw and tx)."""
    tx = _signed(node, params)
    return {"raw": data(tx.raw), "tx": shapes.transaction(tx)}


def _signed(node: Node, params: Params) -> Transaction:
    request = parse_call(params.fields(0))
    key = node.keys.get(request.sender or b"")
    if key is None:
        raise node.settings.profile.error(Rejected("unknown_account"))
    if request.to is None and not request.data:
        raise node.settings.profile.error(Rejected("contract_creation_without_data"))
    assert request.sender is not None, "it has a key"
    nonce = node.pool.next_nonce(request.sender) if request.nonce is None else request.nonce
    gas = request.gas
    if gas is None:
        pending = Reference(node.chain.head, pending=True)
        with state_at(node, pending, {}):
            gas = estimate(node, context_of(node, pending), request)
    kind, fields = _priced(node, request)
    fields |= {
        "nonce": integer(nonce),
        "gas": integer(gas),
        "to": request.to or b"",
        "value": integer(request.value),
        "data": request.data,
        "accessList": request.access_list or (),
    }
    return sign(key, kind, node.settings.chain_id, fields)


def _priced(node: Node, request: CallRequest) -> tuple[int, dict[str, Item]]:
    """Type and fee fields: what the request names, else EIP-1559 with twice the base fee as geth fills in."""
    if request.gas_price is not None:
        return LEGACY if request.access_list is None else ACCESS_LIST, {"gasPrice": integer(request.gas_price)}
    tip = request.max_priority_fee
    if tip is None:
        tip = suggested_tip(node)
        tip = tip if request.max_fee is None else min(tip, request.max_fee)
    cap = request.max_fee
    if cap is None:
        cap = tip + 2 * (suggested_price(node) - suggested_tip(node))
    return DYNAMIC_FEE, {"maxPriorityFeePerGas": integer(tip), "maxFeePerGas": integer(cap)}


@METHODS.named("txpool_status")
def txpool_status(node: Node, _params: Params) -> dict[str, str]:
    """How many wait executable and how many behind a gap."""
    pending, queued = node.pool.counts()
    return {"pending": hex(pending), "queued": hex(queued)}


def _sections(node: Node) -> dict[str, dict[str, dict[str, Pooled]]]:
    """Waiting transactions: pending or queued, by checksummed sender, by decimal nonce."""
    sections: dict[str, dict[str, dict[str, Pooled]]] = {"pending": {}, "queued": {}}
    for sender, lane in node.pool.lanes.items():
        for nonce, entry in sorted(lane.entries.items()):
            section = sections["pending" if nonce < lane.end else "queued"]
            section.setdefault(checksum(sender), {})[str(nonce)] = entry
    return sections


@METHODS.named("txpool_content")
def txpool_content(node: Node, _params: Params) -> dict[str, object]:
    """Every waiting transaction in full."""
    return {
        section: {
            sender: {nonce: shapes.transaction(entry.tx) for nonce, entry in entries.items()}
            for sender, entries in senders.items()
        }
        for section, senders in _sections(node).items()
    }


@METHODS.named("txpool_contentFrom")
def txpool_content_from(node: Node, params: Params) -> dict[str, object]:
    """One sender's waiting transactions in full."""
    sender = checksum(params.address(0))
    return {
        section: {nonce: shapes.transaction(entry.tx) for nonce, entry in senders.get(sender, {}).items()}
        for section, senders in _sections(node).items()
    }


@METHODS.named("txpool_inspect")
def txpool_inspect(node: Node, _params: Params) -> dict[str, object]:
    """Every waiting transaction as one line of text."""

    def line(tx: Transaction) -> str:
        recipient = checksum(tx.to) if tx.to else "contract creation"
        return f"{recipient}: {tx.value} wei + {tx.gas} gas × {tx.max_fee} wei"

    return {
        section: {
            sender: {nonce: line(entry.tx) for nonce, entry in entries.items()} for sender, entries in senders.items()
        }
        for section, senders in _sections(node).items()
    }


@METHODS.named("eth_pendingTransactions")
def pending_transactions(node: Node, _params: Params) -> list[shapes.Json]:
    """Waiting transactions of the development accounts, in order of arrival."""
    return [shapes.transaction(entry.tx) for entry in node.pool.contents() if entry.tx.sender in node.keys]
