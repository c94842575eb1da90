"""What took effect, counted from the blocks of the chain alone: every transaction of the run's senders, by its memo.

No row of the database is looked at; what was wanted comes from the requests the run itself made.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.support.devnet import NodeProcess

_BATCH = 50
CANCEL = "(cancel)"


@dataclass(frozen=True, slots=True)
class Census:
    """How often each memo stands in a block, and the nonces of each sender in the order of the blocks."""

    memos: Counter[str] = field(default_factory=Counter)
    nonces: dict[str, list[int]] = field(default_factory=dict)


def count_effects(node: NodeProcess, senders: Iterable[str], first_block: int) -> Census:
    """Go through all blocks from `first_block` to the head."""
    found = Census(nonces={sender.lower(): [] for sender in senders})
    head = int(node.rpc("eth_blockNumber"), 16)
    for start in range(first_block, head + 1, _BATCH):
        numbers = range(start, min(start + _BATCH, head + 1))
        for block in node.batch([("eth_getBlockByNumber", [hex(number), True]) for number in numbers]):
            for transaction in block["transactions"]:
                sender = transaction["from"].lower()
                if sender in found.nonces:
                    found.nonces[sender].append(int(transaction["nonce"], 16))
                    found.memos[_memo(transaction["input"])] += 1
    return found


def _memo(data: str) -> str:
    return bytes.fromhex(data[2:]).decode() or CANCEL


def judge(census: Census, once: Sequence[str], cancels: int) -> list[str]:
    """One sentence for each effect that is missing, double or not wanted, and for each hole between nonces."""
    wanted = Counter(once)
    wanted[CANCEL] = cancels
    troubles = [
        f"{memo} stands in {census.memos[memo]} blocks' transactions, {wanted[memo]} wanted"
        for memo in sorted(set(census.memos) | set(wanted))
        if census.memos[memo] != wanted[memo]
    ]
    troubles += [
        f"the nonces of {sender} on chain are not 0 to {len(nonces) - 1} in order"
        for sender, nonces in census.nonces.items()
        if nonces != list(range(len(nonces)))
    ]
    return troubles
