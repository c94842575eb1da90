"""One tick of one account: settle from the right, send from the left, round again while a stage did something."""

import logging
from collections.abc import Callable
from concurrent.futures import Executor, wait
from dataclasses import dataclass, field

from chain.client import ChainClient
from chain.errors import RpcError
from chain.types import ChainView
from executor.clock import boottime
from executor.records import Account
from executor.stages import broadcast, confirm, finalize, reconcile, reserve, sign
from executor.store import accounts
from executor.telemetry import ENDED, SENT
from executor.turn import Turn
from signer.service import Signer

log = logging.getLogger("fenced.tick")
_ROUNDS = 20
_RECONCILE_SECONDS = 60.0


@dataclass(slots=True)
class Progress:
    """What this worker remembers of an account between ticks; losing it costs a repeated look, nothing else."""

    token: int = 0
    reconciled_at: float = field(default=float("-inf"))
    blocked: str | None = None
    head_hash: bytes | None = None
    nonce_latest: int = -1
    settled: bool = False


def tick(
    turn: Turn,
    client: ChainClient,
    signer: Signer,
    progress: Progress,
    senders: Executor,
    has_requests: bool,
    may_go_on: Callable[[], bool],
    may_begin: Callable[[], bool],
) -> None:
    """Do what can be done for the account now.

    `senders` runs the hand-over beside the rest. `may_go_on` is asked between stages: without trust in the lease nothing new is begun.
    `may_begin` tells whether the database's clock is believed: without, nothing is reserved or ends by its deadline.

    Raises:
        FenceRefused, StaleFence: the lease has passed to another holder.
        Unavailable: no endpoint answered; the next tick asks again.
    """
    if progress.token != turn.token:
        progress.token, progress.reconciled_at, progress.blocked, progress.settled = (
            turn.token,
            float("-inf"),
            None,
            False,
        )
    state = _state(turn)
    due = boottime() - progress.reconciled_at >= (_RECONCILE_SECONDS if progress.blocked is None else 2.0)
    if due or has_requests:
        told, progress.blocked = progress.blocked, reconcile.run(turn, client, signer)
        progress.reconciled_at = boottime()
        if progress.blocked not in {None, told}:
            log.warning(
                "reconcile found a reason to stop", extra={"account": turn.account.name, "why": progress.blocked}
            )
        state = _state(turn)
    if state.first_nonce is None:
        return
    view = client.view(turn.account.address)
    _settle(turn, client, view, progress)
    halted = state.state == "halted" or state.is_rewound
    for _ in range(_ROUNDS):
        if not may_go_on():
            return
        # What the round before has signed goes out while this one reserves and signs: the wait for the node is free.
        sending = senders.submit(broadcast.hand_over, turn, client, broadcast.select(turn, halted))
        try:
            moved = 0 if halted or not may_begin() else reserve.run(turn, client, view)
            # After a rewind not even a cancel is signed: it could kill a payment whose row is lost (P16).
            if may_go_on() and not state.is_rewound:
                moved += sign.run(turn, signer, view, halted)
        finally:
            wait([sending])
        sent = sending.result()
        SENT.labels(turn.account.name).inc(sent)
        if moved + sent == 0:
            return


def _state(turn: Turn) -> Account:
    """The account as it stands. A restored, promoted or copied database is noticed without asking the chain, which may not answer (P13)."""
    with turn.database.read() as tx:
        state = accounts.get(tx, turn.account.account_id)
    if state.is_rewound and state.state != "halted":
        with turn.database.transaction() as tx:
            halted = accounts.halt_moved(tx, [turn.account.account_id])
        for name, why in halted:
            log.critical("account halted", extra={"account": name, "why": why})
    return state


def _settle(turn: Turn, client: ChainClient, view: ChainView, progress: Progress) -> None:
    """Look at receipts only when the chain moved or something stayed unexplained."""
    if progress.settled and (view.head.hash, view.nonce_latest) == (progress.head_hash, progress.nonce_latest):
        return
    try:
        moved, unresolved = confirm.run(turn, client, view)
        ended = finalize.run(turn, client, view)
    except RpcError as error:
        # "transaction indexing is in progress": no answer, so nothing is concluded, and nothing else is held up by it.
        log.warning("the node refuses to tell about receipts", extra={"account": turn.account.name, "why": str(error)})
        progress.settled = False
        return
    if ended:
        log.info("executions ended", extra={"account": turn.account.name, "executions": ended})
    for state in ended.values():
        ENDED.labels(turn.account.name, state).inc()
    progress.settled = unresolved == 0
    progress.head_hash, progress.nonce_latest = view.head.hash, view.nonce_latest
    if unresolved and view.nonce_final is not None and moved == 0:
        progress.reconciled_at = min(progress.reconciled_at, boottime() - _RECONCILE_SECONDS + 2.0)
