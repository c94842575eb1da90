"""What operators asked for, decided from what reconcile found and carried out under hold: resume, reopen, resolve (P21, G9)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from executor.database import Held
from executor.records import Account, Acknowledged
from executor.reopening import SLOTS
from executor.store import accounts, executions, parking, requests, reservations
from executor.store.parking import Parked
from executor.store.requests import Request

Act = Callable[[Held], str]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request: refused with `text`, or granted and carried out by `act`, which tells the answer."""

    request: Request
    text: str = ""
    act: Act | None = None

    @property
    def opens(self) -> bool:
        """Whether the account is open once this is recorded."""
        return self.request.kind == "reopen" and self.act is not None

    def record(self, held: Held) -> None:
        """Carry it out and answer, in the caller's record transaction."""
        text = self.text if self.act is None else self.act(held)
        requests.answer(held, self.request.request_id, self.act is not None, text)


@dataclass(frozen=True, slots=True)
class Rewind:
    """A reopening after a rewind, decided: nonces to acknowledge, slots that came due up to `until` and get a row to be parked."""

    acknowledged: Sequence[Acknowledged]
    slots: Sequence[Mapping[str, Any]]
    longer: Sequence[str]
    until: datetime


def refused(request: Request, why: str) -> Answer:
    """What stands against it."""
    return Answer(request, why)


def closed(request: Request, account: Account) -> Answer:
    """Nothing is released while the account is halted."""
    return Answer(request, f'the account is halted: fenced reopen {account.name} --why "…" comes first')


def stale(request: Request) -> Answer:
    """A wish that is older than the restore or promotion says nothing about it."""
    return Answer(request, "asked before the database was restored, promoted or copied: ask again")


def resume(request: Request, account: Account) -> Answer:
    """Let a paused strategy make slots again, from now on."""
    strategy = request.strategy or ""
    if account.is_rewound:
        return Answer(request, f"the database was restored, promoted or copied: reopen {account.name} first")
    return Answer(request, act=lambda held: _resume(held, strategy))


def reopen(request: Request) -> Answer:
    """Open an account that agrees with signer and chain."""

    def act(held: Held) -> str:
        accounts.record_opened(held)
        return "open again"

    return Answer(request, act=act)


def reopen_rewound(request: Request, rewind: Rewind) -> Answer:
    """Open an account whose rows were rewound: acknowledge what is above them, and park what was due before (design §2)."""

    def act(held: Held) -> str:
        reservations.acknowledge(held, rewind.acknowledged, request.request_id)
        executions.insert(held.tx, rewind.slots)
        parking.raise_marks(held, rewind.until)
        parked = parking.park_all(held, rewind.until, f"{request.why} ({request.who})")
        stopped = parking.stop_ordered(held)
        executions.end_settled(held, stopped)
        accounts.record_reopened(held, rewind.until)
        return _told(rewind, parked, len(stopped))

    return Answer(request, act=act)


def resolve(request: Request, account: Account, parked: Parked, unproved: str | None) -> Answer:
    """Let a PARKED execution go on or end. `unproved` is why the hash it was paid with proves nothing, None if it does."""
    name, reason = request.execution_id or "", f"says {request.who}: {request.why}"
    resolution = {
        "paid": None if request.paid_hash is None else "0x" + request.paid_hash.hex(),
        "who": request.who,
        "why": request.why,
        "request": request.request_id,
    }
    if account.state == "halted" or account.is_rewound:
        return closed(request, account)
    if parked.state != "PARKED":
        return Answer(request, f"{name} is {parked.state}, not PARKED: there is nothing to resolve")
    if unproved is not None:
        return Answer(request, unproved)
    paid = f"paid by {resolution['paid']}" if request.paid_hash is not None else "not paid"
    if parked.reserved or request.paid_hash is not None:
        return Answer(
            request, act=lambda held: f"it is {parking.end(held, name, resolution, f'{paid}, {reason}', 'SKIPPED')} now"
        )
    if parked.bound_nonce is not None:
        return Answer(
            request,
            f"the signer's journal bound nonce {parked.bound_nonce} to it, which the chain has used: it is not signed again under this name; "
            "say --paid HASH, or trigger a run of its own with --id",
        )
    if parked.steps is None and not parked.plannable:

        def end(held: Held) -> str:
            parking.end(
                held, name, resolution, f"not paid, and its revision is no longer registered, {reason}", "CANCELLED"
            )
            return "it is CANCELLED now: its revision is no longer registered, so nobody would plan it; trigger a run of its own with --id"

        return Answer(request, act=end)

    def release(held: Held) -> str:
        parking.release(held, name, resolution, f"released as not paid, {reason}")
        return "released: it runs under its own id"

    return Answer(request, act=release)


def _resume(held: Held, strategy: str) -> str:
    return "resumed" if requests.record_resumed(held, strategy) else "it was not paused"


def _told(rewind: Rewind, parked: int, stopped: int) -> str:
    told = ["open again"]
    if rewind.acknowledged:
        told.append(f"nonces {rewind.acknowledged[0].nonce} to {rewind.acknowledged[-1].nonce} acknowledged")
    if parked:
        told.append(f"{parked} executions parked")
    if stopped:
        told.append(f"{stopped} running ones get no further step")
    if rewind.longer:
        told.append(
            f"only the newest {SLOTS} slots of {', '.join(rewind.longer)} got a row; older ones run only if somebody triggers them"
        )
    return ", ".join(told)
