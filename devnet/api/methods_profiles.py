"""devnet_setProfile and devnet_poolLimits: whose pool this one behaves like, and how much it holds."""

from dataclasses import asdict, replace

from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.errors import InvalidParams
from devnet.node import Node
from devnet.txpool.profiles import profile_named

METHODS = Methods()
_LIMITS = ("global", "perSender", "queued", "queueTtl")


@METHODS.named("devnet_setProfile")
def set_profile(node: Node, params: Params) -> str:
    """Judge and answer as another client from now on, within its limits; what waits stays where it fits.

    Returns its name; without a name given, whose rules hold now.
    """
    name = params.optional(0)
    if name is None:
        return node.profile.name
    try:
        profile = profile_named(str(name))
    except ValueError as problem:
        raise InvalidParams(str(problem)) from None
    node.pool.rules.follow(profile)
    node.pool.fit()
    return profile.name


@METHODS.named("devnet_poolLimits")
def pool_limits(node: Node, params: Params) -> dict[str, object]:
    """Change how much the pool holds, and evict what is over it; gives the limits that hold now, null for none.

    `global`: slots of 32 KiB in all; `perSender`: of one sender, where geth limits the queued ones and trims the rest
    down to it; `queued`: transactions behind a gap; `queueTtl`: seconds these may wait. What is left out stays.
    """
    limits = node.pool.rules.limits
    wanted = {} if params.optional(0) is None else params.fields(0)
    for name, value in wanted.items():
        if name not in _LIMITS:
            raise InvalidParams(f"there is no limit {name}: give some of {', '.join(_LIMITS)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise InvalidParams(f"invalid limit {name}: want a number of 0 or more")
        if name != "queueTtl" and not isinstance(value, int):
            raise InvalidParams(f"invalid limit {name}: want a whole number")
        if name == "global":
            limits = replace(limits, total=int(value))
        elif name == "perSender":
            limits = limits.per_sender(int(value))
        elif name == "queued":
            limits = replace(limits, queued=int(value))
        else:
            limits = replace(limits, lifetime=value)
    node.pool.rules.limits = limits
    node.pool.fit()
    return {_camel(name): value for name, value in asdict(limits).items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
