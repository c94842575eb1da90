"""Broadcast: stored bytes to every endpoint, and the same bytes again until they are mined (G4, G5).

The attempts table is the only source of bytes. Every answer is a verdict; none of them ends anything.
"""

import logging
from collections.abc import Mapping, Sequence

from chain.client import ChainClient
from chain.keccak import keccak
from chain.submission import SendAnswer, Verdict
from executor.crashpoints import CrashPoint
from executor.database import Held
from executor.errors import StaleState
from executor.records import Sendable
from executor.store import attempts
from executor.turn import Turn

log = logging.getLogger("fenced.broadcast")
_BATCH = 1000
_SOON_SECONDS = 1.0
_SPREAD = 0.3
_TAKEN = (Verdict.ACCEPTED, Verdict.ALREADY_KNOWN)


def run(turn: Turn, client: ChainClient, halted: bool) -> int:
    """Hand over what is due; how many attempts were handed over."""
    return hand_over(turn, client, select(turn, halted))


def select(turn: Turn, halted: bool) -> list[Sendable]:
    """What is due of the contiguous prefix of signed nonces, in order.

    Ask before this tick writes bytes of its own: those of a COMMIT that warned are rows like others, and nobody may act on
    them (P12).
    """
    longest = max(_SOON_SECONDS, turn.rebroadcast_seconds)
    with turn.database.read() as tx:
        return list(attempts.select_sendable(tx, turn.account.account_id, _BATCH, halted, _SOON_SECONDS, longest))


def hand_over(turn: Turn, client: ChainClient, due: Sequence[Sendable]) -> int:
    """Give these bytes to every endpoint and record what was said; how many attempts were handed over."""
    if not due:
        return 0
    for sendable in due:
        _check_bytes(sendable)
    turn.crash(CrashPoint.BROADCAST_SELECTED)
    answers = client.send([sendable.raw for sendable in due])
    turn.crash(CrashPoint.BROADCAST_SENT)
    # Bytes that no node has taken are due again soon, the others after the rebroadcast interval.
    taken = [any(given[i].verdict in _TAKEN for given in answers.values()) for i in range(len(due))]
    # Never in step with a provider's counting: a round that came exactly each second met the same refusal for ever [B55].
    early = 1 - _SPREAD * turn.dice.random()
    waits = [early * (turn.rebroadcast_seconds if is_taken else _SOON_SECONDS) for is_taken in taken]
    verdicts = [
        (sendable.nonce, sendable.seq, endpoint, answer.verdict.value, answer.detail)
        for endpoint, given in answers.items()
        for sendable, answer in zip(due, given, strict=True)
    ]

    def write(held: Held) -> None:
        attempts.record_sent(held, [(s.nonce, s.seq, wait) for s, wait in zip(due, waits, strict=True)])
        attempts.record_verdicts(held, verdicts)

    turn.record(write)
    turn.crash(CrashPoint.BROADCAST_RECORDED)
    _tell(turn, due, answers)
    return len(due)


def _tell(turn: Turn, due: Sequence[Sendable], answers: Mapping[str, Sequence[SendAnswer]]) -> None:
    said = {
        f"{s.execution_id} nonce {s.nonce}": {e: str(given[i].verdict) for e, given in answers.items()}
        for i, s in enumerate(due)
    }
    log.info("bytes handed over", extra={"account": turn.account.name, "executions": said})


def _check_bytes(sendable: Sendable) -> None:
    if keccak(sendable.raw) != sendable.hash:
        raise StaleState(
            f"the stored bytes of nonce {sendable.nonce} do not have their stored hash; nothing is sent: run `fenced audit`."
        )
