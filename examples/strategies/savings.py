"""The same amount to the same address, every week."""

from executor.strategy import Call, Context, Plan
from executor.units import parse_wei


def plan(ctx: Context) -> Plan:
    return Call(
        ctx.params["to"],
        parse_wei(ctx.params["amount"]),
        label=f"savings of {ctx.slot:%d %B %Y}" if ctx.slot else "savings",
    )
