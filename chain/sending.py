"""Handing signed bytes to one endpoint. Every outcome is a verdict, none an exception."""

from collections.abc import Sequence

from chain.errors import ChainError, RpcError
from chain.rpc import Result, Rpc
from chain.submission import SendAnswer, Verdict, answer, detail


def send_to(rpc: Rpc, raws: Sequence[bytes], hashes: Sequence[bytes]) -> list[SendAnswer]:
    """Send in order, in as few posts as the endpoint takes; `hashes` are keccak of the bytes.

    A returned hash counts only if it is the one computed here. After a post without an answer the rest is left unsent
    in this round, AMBIGUOUS like those of the post itself.
    """
    given: list[SendAnswer] = []
    while len(given) < len(raws):
        chunk = raws[len(given) : len(given) + rpc.chunk]
        try:
            replies = rpc.batch([("eth_sendRawTransaction", ["0x" + raw.hex()]) for raw in chunk])
        except Exception as error:  # noqa: BLE001  (a send's outcome is a verdict, whatever happened)
            status = getattr(error, "status", None)
            verdict = Verdict.RATE_LIMITED if status == 429 else Verdict.AMBIGUOUS
            text = detail(str(error)) if isinstance(error, ChainError) else type(error).__name__
            given += [SendAnswer(verdict, text)] * len(chunk)
            break
        wanted = hashes[len(given) : len(given) + len(chunk)]
        given += [_verdict(reply, expected) for reply, expected in zip(replies, wanted, strict=True)]
    unsent = SendAnswer(Verdict.AMBIGUOUS, "not sent in this round: an earlier post got no answer")
    return given + [unsent] * (len(raws) - len(given))


def _verdict(reply: Result, expected: bytes) -> SendAnswer:
    if isinstance(reply, RpcError):
        return answer(reply.code, reply.message, reply.data)
    if isinstance(reply, ChainError):
        return SendAnswer(Verdict.AMBIGUOUS, detail(str(reply)))
    if reply == "0x" + expected.hex():
        return SendAnswer(Verdict.ACCEPTED, "")
    return SendAnswer(Verdict.AMBIGUOUS, detail(f"the node answered with another hash: {str(reply)[:80]}"))
