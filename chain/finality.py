"""When a receipt may be believed for good (G10)."""

from chain.types import BlockRef


def is_final(receipt_block: int, final: BlockRef | None) -> bool:
    """Say whether a block at this height is final, given the newest final block of one consistent view.

    The caller has checked that the receipt's block is the canonical one at its height.
    """
    return final is not None and receipt_block <= final.number
