"""Reconcile: rows ↔ signer's journal ↔ chain, on takeover and now and then. Adds evidence, halts on the grounds of P15, repairs nothing.

It also seeds an account at first use, closes nonces that a stranger used (P5), and answers what operators asked for.
"""

from collections.abc import Sequence

from chain.client import ChainClient
from chain.errors import Inconsistent, WrongChain
from chain.transaction import AccessList, intent_digest
from chain.types import BlockRef, ChainView
from executor.crashpoints import CrashPoint
from executor.database import Held
from executor.records import Account
from executor.store import accounts, attempts, executions, requests, reservations
from executor.store.requests import Request
from executor.store.reservations import Unseen, Witness
from executor.turn import Turn
from signer.request import JournalEntry
from signer.service import Signer

_SCAN_BLOCKS = 512
_LOOK_BACK = 256
"""How far below the oldest open nonce journal and rows are compared: older ones are closed with their witness."""


def run(turn: Turn, client: ChainClient, signer: Signer) -> str | None:
    """Compare everything; None when it agrees, else the reason why the account was halted or waits.

    Raises:
        StaleFence, FenceRefused: the signer or the database has seen a newer lease generation.
        Unavailable: no endpoint answers; nothing was concluded.
    """
    signer.raise_fence(turn.fence)
    turn.crash(CrashPoint.RECONCILE_FENCED)
    account = turn.account
    try:
        genesis = client.check_identity()
    except (WrongChain, Inconsistent) as error:
        return _stop(turn, str(error))
    with turn.database.read() as tx:
        witness = reservations.witness(tx, account.account_id)
        since = max(
            0, (witness.oldest_open if witness.oldest_open is not None else (witness.highest or 0)) - _LOOK_BACK
        )
        bound = reservations.bound_steps(tx, account.account_id, since)
        waiting = requests.select_waiting(tx, account.account_id)
        current = accounts.get(tx, account.account_id)
    view = client.view(account.address)
    entries = signer.journal(account.chain_id, account.address, since)
    ground = _ground(current, genesis, client, view, witness, bound, entries)
    turn.crash(CrashPoint.RECONCILE_SEEN)
    if ground is None and current.first_nonce is None and view.nonce_pending != view.nonce_latest:
        return _wait(turn, _why_not_seeded(view))
    if ground is not None:
        with turn.database.transaction() as tx:
            accounts.halt(tx, account.account_id, ground)
        turn.crash(CrashPoint.RECONCILE_HALTED)
    else:
        _close_foreign(turn, client, view, entries)

    def write(held: Held) -> None:
        if ground is None:
            accounts.record_reconciled(held, genesis, view.nonce_latest)
            accounts.note_attention(held.tx, account.account_id, None)
        for request in waiting:
            _carry_out(held, request, current, ground)

    turn.record(write)
    turn.crash(CrashPoint.RECONCILE_RECORDED)
    return ground


def _carry_out(held: Held, request: Request, current: Account, ground: str | None) -> None:
    """Answer one request of an operator: `ground` is what stands against opening the account."""
    if request.kind == "resume" and request.strategy is not None:
        done = requests.record_resumed(held, request.strategy)
        requests.answer(held, request.request_id, True, "resumed" if done else "it was not paused")
    elif ground is None:
        accounts.record_opened(held)
        parked = (
            executions.park_after_reopening(held, request.why)
            if held.account_state == "halted" and current.is_rewound
            else 0
        )
        told = f"open again, {parked} executions parked" if parked else "open again"
        requests.answer(held, request.request_id, True, told)
    else:
        requests.answer(held, request.request_id, False, ground)


def _ground(
    account: Account,
    genesis: bytes,
    client: ChainClient,
    view: ChainView,
    witness: Witness,
    bound: dict[int, tuple[str, int]],
    entries: Sequence[JournalEntry],
) -> str | None:
    """The first ground of P15 that holds, as one sentence. A latest nonce that went back is an ordinary reorg and none of them."""
    if account.genesis_hash is not None and account.genesis_hash != genesis:
        return f"the endpoint's genesis block 0x{genesis.hex()} is not the one this account began on, 0x{account.genesis_hash.hex()}"
    if client.code(account.address):
        return "there is code at the account's address (EIP-7702): its nonce no longer moves by its key alone"
    stray = next((e for e in entries if bound.get(e.nonce) != (e.execution_id, e.step)), None)
    if stray is not None:
        return f"the signer's journal binds nonce {stray.nonce} to step {stray.step} of {stray.execution_id}, the rows do not: restored or copied"
    if account.first_nonce is None:
        return None
    following = witness.highest + 1 if witness.highest is not None else account.first_nonce
    if view.nonce_latest > following:
        return f"the chain counts nonce {view.nonce_latest}, the rows reach {following - 1}: the key was used elsewhere or rows are lost"
    if view.final is not None and view.nonce_final is not None and view.final.number >= (witness.witness_number or 0):
        settled = account.first_nonce + witness.closed
        if view.nonce_final < settled:
            return f"at the final block {view.final.number} the chain counts nonce {view.nonce_final}, the rows closed {settled}: a reorg past finality"
    if witness.witness_number is not None:
        canonical = client.canonical_hashes([witness.witness_number])[witness.witness_number]
        if canonical is not None and canonical != witness.witness_hash:
            return f"block {witness.witness_number} that proved a closed nonce is no longer canonical: a reorg past finality"
    return None


def _close_foreign(turn: Turn, client: ChainClient, view: ChainView, entries: Sequence[JournalEntry]) -> None:
    """Close nonces the chain has passed for good without any of our transactions (P5)."""
    if view.final is None or view.nonce_final is None or turn.account.state == "halted":
        return
    with turn.database.read() as tx:
        unseen = reservations.select_unseen(tx, turn.account.account_id, view.nonce_final)
    journaled = {e.nonce: e.hashes for e in entries}
    for nonce in unseen:
        hashes = [*{*nonce.hashes, *journaled.get(nonce.nonce, ())}]
        witnesses = client.without_receipt(hashes, turn.account.address, nonce.nonce, view.final)
        if not witnesses:
            continue
        found = client.find_spending(
            turn.account.address, nonce.nonce, max(0, view.final.number - _SCAN_BLOCKS), view.final.number
        )
        if found is not None and found.hash in hashes:
            continue  # ours, and a receipt that lags
        if found is not None and _is_ours(turn, nonce, found.to, found.value_wei, found.data, found.access_list):
            with turn.database.transaction() as tx:
                accounts.halt(
                    tx,
                    turn.account.account_id,
                    f"nonce {nonce.nonce} was used by our own intent under the unknown hash 0x{found.hash.hex()}",
                )
            return
        turn.crash(CrashPoint.RECONCILE_FOREIGN_SEEN)
        _record_foreign(turn, nonce.nonce, found.hash if found else None, view.final, witnesses)


def _record_foreign(turn: Turn, nonce: int, spent_by: bytes | None, final: BlockRef, witnesses: Sequence[str]) -> None:
    def write(held: Held) -> None:
        if held.account_state == "halted":
            return
        attempts.supersede(held, [nonce])
        execution_id = reservations.close_foreign(held, nonce, spent_by, final, turn.finality_rule, witnesses)
        executions.end_settled(held, [execution_id])

    turn.record(write)
    turn.crash(CrashPoint.RECONCILE_FOREIGN_CLOSED)


def _is_ours(turn: Turn, nonce: Unseen, to: bytes | None, value_wei: int, data: bytes, access_list: AccessList) -> bool:
    digest = intent_digest(turn.account.chain_id, turn.account.address, to, value_wei, data, access_list)
    return digest in (nonce.intent_digest, turn.account.cancel_digest)


def _why_not_seeded(view: ChainView) -> str:
    """An account begins at its latest nonce, and only when nothing of it waits in a pool."""
    if view.nonce_pending is None:
        return "the node does not tell this account's pending transactions (eth_getTransactionCount at pending): begin with an endpoint that does"
    return f"pending transactions of unknown origin: {view.nonce_pending - view.nonce_latest} of this account wait in the node's pool; let them be mined or drop them"


def _stop(turn: Turn, why: str) -> str:
    """Another chain behind an endpoint halts the account (P15) and stands against opening it."""
    account_id = turn.account.account_id
    with turn.database.transaction() as tx:
        accounts.halt(tx, account_id, why)
    with turn.database.read() as tx:
        waiting = requests.select_waiting(tx, account_id)
        current = accounts.get(tx, account_id)

    def write(held: Held) -> None:
        for request in waiting:
            _carry_out(held, request, current, why)

    if waiting:
        turn.record(write)
    return why


def _wait(turn: Turn, why: str) -> str:
    with turn.database.transaction() as tx:
        accounts.note_attention(tx, turn.account.account_id, why)
    return why
