"""Keep hot wallets filled: all balances are read at one block, and only what is missing is sent."""

from executor.strategy import Call, Context, Plan, nothing, together
from executor.units import parse_wei


def plan(ctx: Context) -> Plan:
    low, full = parse_wei(ctx.params["low"]), parse_wei(ctx.params["full"])
    balances = {wallet: ctx.chain.balance(wallet) for wallet in ctx.params["wallets"]}
    calls = [Call(wallet, full - held, label="top-up") for wallet, held in balances.items() if held < low]
    return together(calls) if calls else nothing("every wallet holds enough")
