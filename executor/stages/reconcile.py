"""Reconcile: rows ↔ signer's journal ↔ chain, on takeover and now and then. Adds evidence, halts on the grounds of P15, repairs nothing.

It also seeds an account at first use, closes nonces that a stranger used (P5), and answers what operators asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from chain.client import ChainClient
from chain.errors import Inconsistent, WrongChain
from chain.transaction import AccessList, intent_digest
from chain.types import BlockRef, ChainView
from executor import answering, reopening
from executor.answering import Answer, Rewind
from executor.crashpoints import CrashPoint
from executor.database import Held
from executor.records import Account, Acknowledged
from executor.reopening import Ahead
from executor.store import accounts, attempts, executions, parking, requests, reservations
from executor.store.requests import Request
from executor.store.reservations import Unseen, Witness
from executor.turn import Turn
from signer.request import JournalEntry
from signer.service import Signer

_SCAN_BLOCKS = 512
_LOOK_BACK = 256
"""How far below the oldest open nonce journal and rows are compared: older ones are closed with their witness."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """What the rows say, read after chain and journal.

    What those know of our own doing was committed before, so that these rows have it, whoever did it meanwhile. Read first,
    a holder overtaken in between would halt an account in good order.
    """

    account: Account
    witness: Witness
    bound: dict[int, tuple[str, int]]
    acknowledged: set[int]
    waiting: list[Request]


def run(turn: Turn, client: ChainClient, signer: Signer) -> str | None:
    """Compare everything; None when it agrees, else the reason why the account was halted or waits.

    Raises:
        StaleFence, FenceRefused: the signer or the database has seen a newer lease generation.
        Unavailable: no endpoint answers; nothing was concluded.
    """
    signer.raise_fence(turn.fence)
    turn.crash(CrashPoint.RECONCILE_FENCED)
    try:
        genesis = client.check_identity()
    except (WrongChain, Inconsistent) as error:
        return _stop(turn, str(error))
    since = _since(turn)
    view = client.view(turn.account.address)
    entries = signer.journal(turn.account.chain_id, turn.account.address, since)
    turn.crash(CrashPoint.RECONCILE_SEEN)
    rows = _read(turn, since)
    account = rows.account
    known = {*rows.bound, *rows.acknowledged}
    ahead = reopening.ahead(view, account.first_nonce, rows.witness.highest, known, entries)
    bent = _bent(account, genesis, client, view, rows, entries)
    ground = bent if bent is not None else ahead.ground if ahead is not None else None
    if ground is None and account.first_nonce is None and view.nonce_pending != view.nonce_latest:
        return _wait(turn, rows, _why_not_seeded(view))
    if ground is None and account.state != "halted":
        ground = bent = _close_foreign(turn, client, view, entries)
    if ground is not None:
        turn.halt(ground)
        turn.crash(CrashPoint.RECONCILE_HALTED)
    answers: list[Answer] = []
    for request in rows.waiting:
        opened = request.kind == "reopen" and any(answer.opens for answer in answers)
        answers.append(
            answering.refused(request, "a request before it has opened the account")
            if opened
            else _decide(turn, client, view, rows, bent, ahead, request)
        )
    opens = any(answer.opens for answer in answers)

    def write(held: Held) -> None:
        if ground is None or opens:
            accounts.record_reconciled(held, genesis, view.nonce_latest)
            accounts.note_attention(held.tx, account.account_id, None)
        _record_answers(held, answers)

    turn.record(write)
    turn.crash(CrashPoint.RECONCILE_RECORDED)
    return None if opens else ground


def _since(turn: Turn) -> int:
    """The nonce from which on journal and rows are compared."""
    with turn.database.read() as tx:
        witness = reservations.witness(tx, turn.account.account_id)
    newest = witness.oldest_open if witness.oldest_open is not None else (witness.highest or 0)
    return max(0, newest - _LOOK_BACK)


def _read(turn: Turn, since: int) -> _Rows:
    account_id = turn.account.account_id
    with turn.database.read() as tx:
        return _Rows(
            accounts.get(tx, account_id),
            reservations.witness(tx, account_id),
            reservations.bound_steps(tx, account_id, since),
            reservations.acknowledged(tx, account_id, since),
            requests.select_waiting(tx, account_id),
        )


def _decide(
    turn: Turn,
    client: ChainClient,
    view: ChainView,
    rows: _Rows,
    bent: str | None,
    ahead: Ahead | None,
    request: Request,
) -> Answer:
    """The answer to one request of an operator. `bent` stands against opening the account, `ahead` makes it a rewind."""
    if bent is not None:
        return _against(request, rows.account, bent)
    if request.outlived:
        return answering.stale(request)
    if request.kind == "resume":
        return answering.resume(request, rows.account)
    if request.kind == "resolve" and request.execution_id is not None:
        if ahead is not None:
            return answering.closed(request, rows.account)
        with turn.database.read() as tx:
            parked = parking.select(tx, rows.account.account_id, request.execution_id)
        unproved = None if request.paid_hash is None else reopening.unproved(client, view, request.paid_hash)
        return answering.resolve(request, rows.account, parked, unproved)
    if ahead is None and not rows.account.is_rewound:
        return answering.reopen(request)
    following = reopening.frontier(view, rows.account.first_nonce, rows.witness.highest)
    obstacle = reopening.obstacle(view, following, ahead)
    if obstacle is not None:
        return answering.refused(request, f"{ahead.ground}; {obstacle}" if ahead else obstacle)
    with turn.database.read() as tx:
        until = parking.until(tx)
    if until is None:
        return answering.refused(
            request,
            "the database's clock stepped and is not believed yet, so what was due before cannot be told: ask again",
        )
    return answering.reopen_rewound(request, _rewind(turn, client, view, ahead, until))


def _against(request: Request, account: Account, bent: str) -> Answer:
    """The answer while `bent` stands against opening the account; to some it makes no difference."""
    if request.outlived:
        return answering.stale(request)
    if request.kind == "resume":
        return answering.resume(request, account)
    return answering.closed(request, account) if request.kind == "resolve" else answering.refused(request, bent)


def _rewind(turn: Turn, client: ChainClient, view: ChainView, ahead: Ahead | None, until: datetime) -> Rewind:
    with turn.database.read() as tx:
        schedules = parking.schedules(tx, turn.account.account_id)
    slots, longer = reopening.slots_due(schedules, until)
    used = [] if ahead is None else reopening.above(client, turn.account.address, view, ahead)
    acknowledged = [Acknowledged(*row, turn.finality_rule, turn.endpoints) for row in used]
    return Rewind(acknowledged, slots, longer, until)


def _bent(
    account: Account,
    genesis: bytes,
    client: ChainClient,
    view: ChainView,
    rows: _Rows,
    entries: Sequence[JournalEntry],
) -> str | None:
    """The first ground of P15 that no reopening can heal, as one sentence. A latest nonce that went back is an ordinary reorg and none of them."""
    if account.genesis_hash is not None and account.genesis_hash != genesis:
        return f"the endpoint's genesis block 0x{genesis.hex()} is not the one this account began on, 0x{account.genesis_hash.hex()}"
    if client.code(account.address):
        return "there is code at the account's address (EIP-7702): its nonce no longer moves by its key alone"
    stray = next(
        (e for e in entries if rows.bound.get(e.nonce, (e.execution_id, e.step)) != (e.execution_id, e.step)), None
    )
    if stray is not None:
        return (
            f"the signer's journal binds nonce {stray.nonce} to step {stray.step} of {stray.execution_id}, the rows bind it to another: "
            "restored or copied"
        )
    if account.first_nonce is None:
        return None
    witness = rows.witness
    # An account begins at its latest nonce, which the final block may not have reached: only a closed nonce is known to be final.
    is_past = (
        witness.witness_number is not None and view.final is not None and view.final.number >= witness.witness_number
    )
    if is_past and view.final is not None and view.nonce_final is not None:
        settled = account.first_nonce + witness.closed
        if view.nonce_final < settled:
            return f"at the final block {view.final.number} the chain counts nonce {view.nonce_final}, the rows closed {settled}: a reorg past finality"
    if witness.witness_number is not None:
        canonical = client.canonical_hashes([witness.witness_number])[witness.witness_number]
        if canonical is not None and canonical != witness.witness_hash:
            return f"block {witness.witness_number} that proved a closed nonce is no longer canonical: a reorg past finality"
    return None


def _close_foreign(turn: Turn, client: ChainClient, view: ChainView, entries: Sequence[JournalEntry]) -> str | None:
    """Close nonces the chain has passed for good without any of our transactions (P5). The ground to halt, if one shows."""
    if view.final is None or view.nonce_final is None:
        return None
    with turn.database.read() as tx:
        unseen = reservations.select_unseen(tx, turn.account.account_id, view.nonce_final)
    journaled = {e.nonce: e.hashes for e in entries}
    for nonce in unseen:
        hashes = [*{*nonce.hashes, *journaled.get(nonce.nonce, ())}]
        witnesses = client.without_receipt(hashes, turn.account.address, nonce.nonce, view.final)
        if not witnesses:
            if lost := _lost(client, nonce, hashes, view.final):
                return f"nonce {nonce.nonce} was used by 0x{lost.hex()}, which the signer's journal has and no row does: restored or copied"
            continue
        found = client.find_spending(
            turn.account.address, nonce.nonce, max(0, view.final.number - _SCAN_BLOCKS), view.final.number
        )
        if found is not None and found.hash in hashes:
            continue  # ours, and a receipt that lags
        if found is not None and _is_ours(turn, nonce, found.to, found.value_wei, found.data, found.access_list):
            return f"nonce {nonce.nonce} was used by our own intent under the unknown hash 0x{found.hash.hex()}"
        turn.crash(CrashPoint.RECONCILE_FOREIGN_SEEN)
        _record_foreign(turn, nonce.nonce, found.hash if found else None, view.final, witnesses)
    return None


def _record_foreign(turn: Turn, nonce: int, spent_by: bytes | None, final: BlockRef, witnesses: Sequence[str]) -> None:
    def write(held: Held) -> None:
        if held.account_state == "halted":
            return
        attempts.supersede(held, [nonce])
        execution_id = reservations.close_foreign(held, nonce, spent_by, final, turn.finality_rule, witnesses)
        executions.end_settled(held, [execution_id])

    turn.record(write)
    turn.crash(CrashPoint.RECONCILE_FOREIGN_CLOSED)


def _lost(client: ChainClient, nonce: Unseen, hashes: Sequence[bytes], final: BlockRef) -> bytes | None:
    """The transaction at or below the final block that used the nonce and that only the journal knows: no row would ever close it."""
    unknown = [item for item in hashes if item not in nonce.hashes]
    mined = client.receipts(unknown)
    return next((r.hash for r in mined if r is not None and r.block.number <= final.number), None)


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
    turn.halt(why)
    rows = _read(turn, 0)
    answers = [_against(request, rows.account, why) for request in rows.waiting]
    if answers:
        turn.record(lambda held: _record_answers(held, answers))
    return why


def _record_answers(held: Held, answers: Sequence[Answer]) -> None:
    for answer in answers:
        answer.record(held)


def _wait(turn: Turn, rows: _Rows, why: str) -> str:
    """Nothing is concluded yet; who asked for a reopening is told."""
    turn.note_attention(why)
    refused = [answering.refused(request, why) for request in rows.waiting if request.kind == "reopen"]
    if refused:
        turn.record(lambda held: _record_answers(held, refused))
    return why
