"""devnet_clock: time that moves on order only, and a chain whose clock is wrong."""

from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.errors import InvalidParams
from devnet.faults.fields import an_object, flag, integer, number, optional
from devnet.node import Node

METHODS = Methods()


@METHODS.named("devnet_clock")
def clock(node: Node, params: Params) -> dict[str, object]:
    """Order time; returns what the clock says, all in seconds.

    `manual: true` stops it, so that blocks at intervals, delays and lifetimes wait for `advance`, which makes everything
    due on the way happen at its own moment, in order, before it answers; `manual: false` lets it run on from where it
    stands. `skew` is how far the chain's time is ahead of the clock (negative: behind), as with a validator whose clock is
    wrong; intervals and delays do not notice.
    """
    fields = an_object(params.optional(0) or {}, "devnet_clock", ("manual", "advance", "skew"))
    manual, advance, skew = (
        optional(fields, name, read) for name, read in (("manual", flag), ("advance", number), ("skew", integer))
    )
    if advance is not None and not (node.clock.manual if manual is None else manual):
        raise InvalidParams("advance needs a manual clock: order manual: true first")
    if manual is not None:
        node.clock.set_manual(manual=bool(manual))
    if skew is not None:
        node.clock.skew = int(skew)
    if advance is not None:
        node.clock.advance(advance)
    return {
        "manual": node.clock.manual,
        "time": node.clock.now(),
        "elapsed": node.clock.elapsed(),
        "offset": node.clock.offset,
        "skew": node.clock.skew,
    }
