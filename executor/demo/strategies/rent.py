"""A plain transfer. The plan says what is wanted; nonce, fees, signature and repetition are the executor's."""

from executor.strategy import Call, Context, Plan
from executor.units import parse_wei


def plan(ctx: Context) -> Plan:
    """One payment of `params.amount` to `params.to`."""
    return Call(ctx.params["to"], parse_wei(ctx.params["amount"]), label="rent")
