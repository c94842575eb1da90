"""The signer: one verb over the guard, the policy, the journal and the keys, in the only safe order.

    lock and compare the fence → read → decide → record → COMMIT → sign → verify → store → COMMIT → release

What was ordered is durable before a key is touched, and only stored bytes ever leave, so that a crash anywhere leaves
each nonce with one intent and at most one answer for each signature (`sign` again completes it). There is no unguarded
path to a key.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from chain.transaction import UnsignedTransaction
from chain.types import checksum
from signer import commits, journal
from signer.backend import Backend
from signer.errors import (
    BadSignature,
    CommitUnknown,
    JournalRefused,
    SignerError,
    StaleFence,
    Unavailable,
    UnknownAccount,
)
from signer.guard import Bound, Past, Refuse, Replay, decide
from signer.policy import Policy
from signer.request import Fence, JournalEntry, Kind, RefusalReason, Refused, Signed, SignRequest
from signer.verify import verify

Account = tuple[int, bytes]
"""Chain id and address."""

CRASH_POINTS = ("sign.journaling", "sign.journaled", "sign.made", "sign.keeping", "sign.kept")
"""What the `crash` hook is called with, in this order: orders written, committed, bytes made, written, committed."""


@dataclass(slots=True)
class _Batch:
    """Decisions of one call, and what they ask the journal and the keys to do."""

    bound: dict[int, Bound]
    of_step: dict[tuple[str, int], Bound]
    answers: list[Signed | Refused | tuple[int, bytes]] = field(default_factory=list)
    bind: dict[int, Bound] = field(default_factory=dict)
    cancel: set[int] = field(default_factory=set)
    orders: list[journal.Order] = field(default_factory=list)
    wanted: dict[tuple[int, bytes], UnsignedTransaction] = field(default_factory=dict)


class Signer:
    """Holds the keys of some accounts and their journal. Safe to share between threads: an account's calls wait.

    `crash` is called at each of CRASH_POINTS and does nothing by default; fault tests end the process in it.
    """

    def __init__(
        self,
        engine: Engine,
        backends: Mapping[Account, Backend],
        policies: Mapping[Account, Policy],
        *,
        crash: Callable[[str], None] = lambda _: None,
    ) -> None:
        for (_, address), backend in backends.items():
            if backend.address != address:
                raise UnknownAccount(f"the key given for {checksum(address)} is of {checksum(backend.address)}")
        self._engine = engine
        self._backends = dict(backends)
        self._policies = dict(policies)
        self._crash = crash

    def addresses(self) -> list[Account]:
        """The accounts that can sign here: those with a key and a policy, in order."""
        return sorted(self._backends.keys() & self._policies.keys())

    def sign(self, fence: Fence, requests: Sequence[SignRequest]) -> list[Signed | Refused]:
        """Sign a batch for one account, or say for each why not, in the order of the requests.

        Later requests are judged as if the earlier ones were done. An older fence refuses all of them, also those whose
        bytes are stored; a newer one is remembered. Raises Unavailable (nothing was released: call again),
        CommitUnknown (nothing was released: drop the lease, P12), JournalRefused, UnknownAccount, BadSignature.
        """
        account = (fence.chain_id, fence.address)
        if account not in self._backends or account not in self._policies:
            raise UnknownAccount(
                f"there is no key or no policy for {checksum(fence.address)} on chain {fence.chain_id}"
            )
        if not requests:
            return []
        with self._connect() as connection:
            with commits.transaction(connection):
                newer = journal.hold(connection, fence)
                if newer is not None:
                    return [_stale(fence, newer)] * len(requests)
                batch = self._decide(connection, fence, requests)
                _record(connection, fence, batch)
                if batch.wanted:
                    self._crash("sign.journaling")
            stored: dict[tuple[int, bytes], tuple[bytes, bytes]] = {}
            if batch.wanted:
                self._crash("sign.journaled")
                made = self._make(fence, batch.wanted)
                self._crash("sign.made")
                with commits.transaction(connection):
                    stored = journal.store(connection, fence, made)
                    self._crash("sign.keeping")
                self._crash("sign.kept")
        return [Signed(*stored[item], replayed=False) if isinstance(item, tuple) else item for item in batch.answers]

    def raise_fence(self, fence: Fence) -> None:
        """Take over: from now on every older lease generation is refused (P7). The first act of reconcile.

        Raises StaleFence if a newer one, or another lease of the same token, has been here; Unavailable, CommitUnknown.
        """
        with self._connect() as connection, commits.transaction(connection):
            newer = journal.hold(connection, fence)
        if newer is not None:
            raise StaleFence(_stale(fence, newer).detail)

    def current_fence(self, chain_id: int, address: bytes) -> int:
        """The newest token the journal has seen for an account; 0 if none. Raises Unavailable."""
        with self._connect() as connection:
            return journal.current_fence(connection, chain_id, address)

    def journal(self, chain_id: int, address: bytes, since_nonce: int = 0) -> list[JournalEntry]:
        """What the journal knows about each nonce from `since_nonce` on, in order. Raises Unavailable."""
        with self._connect() as connection:
            return journal.entries(connection, chain_id, address, since_nonce)

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        """A connection whose failures are told without the rows: parameters hold signed bytes."""
        try:
            with self._engine.connect() as connection:
                yield connection
        except commits.UncleanCommit as error:
            raise CommitUnknown(f"the signer's journal: {error}") from None
        except IntegrityError as error:
            name = getattr(getattr(error.orig, "diag", None), "constraint_name", None) or "unknown"
            raise JournalRefused(f"the signer's journal refused a write by the constraint {name}", name) from None
        except DBAPIError as error:
            state = getattr(error.orig, "sqlstate", None) or type(error.orig).__name__
            raise Unavailable(f"the signer's journal did not answer or commit ({state})") from None
        except SQLAlchemyError as error:
            raise Unavailable(f"the signer's journal cannot be reached ({type(error).__name__})") from None

    def _decide(self, connection: Connection, fence: Fence, requests: Sequence[SignRequest]) -> _Batch:
        nonces = {request.transaction.nonce for request in requests if request.transaction.nonce < 1 << 63}
        steps = {(request.execution_id, request.step) for request in requests}
        known = journal.histories(connection, fence, sorted(nonces), sorted(steps))
        batch = _Batch({b.nonce: b for b in known}, {(b.execution_id, b.step): b for b in known})
        policy = self._policies[fence.chain_id, fence.address]
        for request in requests:
            batch.answers.append(_judge(batch, policy, fence, request))
        return batch

    def _make(
        self, fence: Fence, wanted: dict[tuple[int, bytes], UnsignedTransaction]
    ) -> dict[tuple[int, bytes], tuple[bytes, bytes]]:
        backend = self._backends[fence.chain_id, fence.address]
        made = {}
        for key, transaction in wanted.items():
            try:
                raw = backend.sign(transaction)
            except SignerError:
                raise
            except Exception as error:  # noqa: BLE001  (a stranger's text or traceback may show the key)
                what = type(error).__name__
                raise BadSignature(f"the key of {checksum(fence.address)} did not sign ({what})") from None
            made[key] = (raw, verify(raw, transaction, fence.address).hash)
        return made


def _judge(batch: _Batch, policy: Policy, fence: Fence, request: SignRequest) -> Signed | Refused | tuple[int, bytes]:
    """One decision; what it changes is in the batch afterwards. The bytes to come are named by (nonce, sighash)."""
    transaction, step = request.transaction, (request.execution_id, request.step)
    nonce, cancels = transaction.nonce, request.kind is Kind.CANCEL
    bound = batch.bound.get(nonce)
    decision = decide(fence, request, bound, batch.of_step.get(step))
    if isinstance(decision, Refuse):
        return Refused(RefusalReason.GUARD, decision.evidence)
    if isinstance(decision, Replay):
        return Signed(decision.raw, decision.hash, replayed=True)
    forbidden = policy.check(request, fence.address)
    if forbidden is not None:
        return Refused(RefusalReason.POLICY, forbidden)
    fees = transaction.max_fee_wei, transaction.tip_wei, transaction.gas
    if bound is None:
        bound = Bound(nonce, *step, decision.digest, transaction.type, cancels)
        batch.bind[nonce] = bound
    elif cancels and not bound.cancelled:
        bound = replace(bound, cancelled=True)
        batch.cancel.add(nonce)
    key = (nonce, decision.sighash)
    if all(past.sighash != decision.sighash for past in bound.signatures):
        batch.orders.append(journal.Order(nonce, decision.sighash, request.kind, *fees))
        past = Past(decision.sighash, request.kind, *fees, raw=None, hash=None, pending=True)
        bound = replace(bound, signatures=(*bound.signatures, past))
    batch.bound[nonce] = batch.of_step[step] = bound
    batch.wanted[key] = transaction
    return key


def _record(connection: Connection, fence: Fence, batch: _Batch) -> None:
    """Write what was decided. What is cancelled in this very call gets its earlier signatures before that."""
    journal.bind(connection, fence, list(batch.bind.values()))
    journal.order(connection, fence, [item for item in batch.orders if item.kind is not Kind.CANCEL])
    journal.cancel(connection, fence, sorted(batch.cancel))
    journal.order(connection, fence, [item for item in batch.orders if item.kind is Kind.CANCEL])


def _stale(fence: Fence, newer: int) -> Refused:
    if newer == fence.token:
        return Refused(RefusalReason.STALE, f"lease token {newer} was used here under another lease id")
    return Refused(RefusalReason.STALE, f"lease token {newer} has been here, and {fence.token} is older")
