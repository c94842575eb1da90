"""A first strategy: every slot sends a little ether, unless the account runs low.

A strategy decides, the executor sends. It is a pure function of its context and may be run again.
Try it with: fenced plan allowance
"""

from executor.strategy import Call, Context, Plan, nothing
from executor.units import parse_wei

KEEP_WEI = parse_wei("1 ether")


def plan(ctx: Context) -> Plan:
    """Send `params.amount` to `params.to`, keeping one ether for fees."""
    amount = parse_wei(ctx.params["amount"])
    if ctx.chain.balance(ctx.account) < amount + KEEP_WEI:
        return nothing("the account runs low")
    return Call(ctx.params["to"], amount, label="allowance")
