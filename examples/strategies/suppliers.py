"""Pay the invoices of the input, each once in the whole installation: `once` is the invoice's name."""

from executor.strategy import Call, Context, Plan, nothing, together
from executor.units import parse_wei


def plan(ctx: Context) -> Plan:
    calls = [
        Call(invoice["to"], parse_wei(invoice["amount"]), once=f"invoice/{invoice['invoice']}", label="supplier")
        for invoice in ctx.input
    ]
    return together(calls) if calls else nothing("no invoice is due")
