"""devnet_ methods on the ledger: what was submitted, whether senders kept the rules, and a rival who does not care."""

from devnet.accounts import Account, address_of
from devnet.api import ledger_shapes
from devnet.api.params import Fields, Params
from devnet.api.registry import Methods
from devnet.api.transaction_request import signed
from devnet.codec.transaction import Transaction
from devnet.encoding import data, parse_data, quantity
from devnet.errors import InvalidParams
from devnet.faults import fields as read
from devnet.invariants import judge, sender_of
from devnet.node import Node

METHODS = Methods()
_PRICES = ("gasPrice", "maxFeePerGas", "maxPriorityFeePerGas")


@METHODS.named("devnet_submissions")
def submissions(node: Node, params: Params) -> list[ledger_shapes.Json]:
    """Every raw transaction ever received, in order of arrival. `{sender, since}` narrows it; `since` is an index."""
    wanted = read.an_object(params.optional(0) or {}, "the filter", ("sender", "since"))
    sender = read.optional(wanted, "sender", read.address)
    since = read.optional(wanted, "since", read.count) or 0
    found = node.ledger.submissions[since:]
    return [ledger_shapes.submission(node, item) for item in found if sender is None or sender_of(item) == sender]


@METHODS.named("devnet_invariants")
def invariants(node: Node, params: Params) -> ledger_shapes.Json:
    """Whether senders, or one `sender`, kept the rules: `ok`, and `violations` with the submissions that show them.

    `since` leaves out submissions with a lower index.
    `notes` lists replacements and cancellations, `resends` counts equal bytes sent again. With `intents`, `suspects`
    lists equal recipient, value and data mined on two nonces.
    """
    wanted = read.an_object(params.optional(0) or {}, "devnet_invariants", ("sender", "since", "intents"))
    sender = read.optional(wanted, "sender", read.address)
    verdict = judge(node, sender, read.optional(wanted, "since", read.count) or 0)
    answer: ledger_shapes.Json = {
        "ok": not verdict.violations,
        "violations": [ledger_shapes.finding(node, item) for item in verdict.violations],
        "notes": [ledger_shapes.finding(node, item) for item in verdict.notes],
        "resends": verdict.resends,
    }
    if read.optional(wanted, "intents", read.flag):
        answer["suspects"] = [ledger_shapes.finding(node, item) for item in verdict.suspects]
    return answer


@METHODS.named("devnet_rival")
def rival(node: Node, params: Params) -> str:
    """Spend a nonce as another holder of the key would: `key`, or `account` by address or index; returns the hash.

    `nonce` is the next one unless given, `tx` what to send (an empty transfer to itself). Unless `tx` names prices it
    outbids whatever waits with that nonce. The ledger marks it as the rival's.
    """
    order = read.an_object(params.required(0), "devnet_rival", ("key", "account", "nonce", "tx"))
    account = _account(node, order)
    nonce = read.optional(order, "nonce", read.count)
    nonce = node.pool.next_nonce(account.address) if nonce is None else nonce
    tx = _signed(node, account, nonce, {} if order.get("tx") is None else Params([order["tx"]]).fields(0))
    ledger = node.ledger
    ledger.author, fault, ledger.fault = "rival", ledger.fault, None
    try:
        node.submit(tx.raw)
    finally:
        ledger.author, ledger.fault = "client", fault
    return data(tx.hash)


def _account(node: Node, order: Fields) -> Account:
    named = order.get("account")
    if (named is None) == (order.get("key") is None):
        raise InvalidParams("give exactly one of key, account")
    if named is None:
        key = parse_data(order["key"], "key", 32)
        return Account(address_of(key), key)
    if isinstance(named, int) and not isinstance(named, bool):
        if not 0 <= named < len(node.accounts):
            raise InvalidParams(f"there is no account {named}: the devnet has {len(node.accounts)}")
        return node.accounts[named]
    address = read.address(named, "account")
    if address not in node.keys:
        raise InvalidParams(f"the devnet has no key of {data(address)}: give it as key")
    return Account(address, node.keys[address])


def _signed(node: Node, account: Account, nonce: int, wanted: Fields) -> Transaction:
    request = {"to": data(account.address), "value": "0x0", **wanted}
    request |= {"from": data(account.address), "nonce": quantity(nonce)}
    lane = node.pool.lanes.get(account.address)
    waiting = lane.entries.get(nonce) if lane else None
    if waiting is not None and not any(name in wanted for name in _PRICES):
        profile, old = node.profile, waiting.tx
        tip = profile.bumped(max(old.max_priority_fee, 1))
        cap = max(profile.bumped(old.max_fee), tip, 2 * node.miner.next_context().base_fee)
        request |= {"maxFeePerGas": quantity(cap), "maxPriorityFeePerGas": quantity(tip)}
    return signed(node, request, account.key)
