"""Broadcast: stored bytes to every endpoint, and the same bytes again until they are mined (G4, G5).

The attempts table is the only source of bytes. Every answer is a verdict; none of them ends anything.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta

from eth_hash.auto import keccak

from chain.client import ChainClient
from chain.submission import SendAnswer
from executor.crashpoints import CrashPoint
from executor.errors import StaleState
from executor.records import Sendable
from executor.store import attempts
from executor.turn import Turn

log = logging.getLogger("fenced.broadcast")
_BATCH = 1000
_SOON = timedelta(seconds=1)


def run(turn: Turn, client: ChainClient, halted: bool) -> int:
    """Hand over what is due of the contiguous prefix of signed nonces, in order; how many were handed over."""
    with turn.database.read() as tx:
        due = attempts.select_sendable(
            tx, turn.account.account_id, _BATCH, timedelta(seconds=turn.rebroadcast_seconds), _SOON, halted
        )
    if not due:
        return 0
    for sendable in due:
        _check_bytes(sendable)
    answers = client.send([sendable.raw for sendable in due])
    turn.crash(CrashPoint.BROADCAST_SENT)
    verdicts = [
        (sendable.nonce, sendable.seq, endpoint, answer.verdict.value, answer.detail)
        for endpoint, given in answers.items()
        for sendable, answer in zip(due, given, strict=True)
    ]
    with turn.hold() as held:
        attempts.record_sent(held, [(s.nonce, s.seq) for s in due if s.status == "SIGNED"])
        attempts.record_verdicts(held, verdicts)
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
