"""Approve a vault for an amount of a token and deposit it: the deposit waits until the approval is final."""

from executor.strategy import Call, Context, Plan, in_order, nothing

APPROVE = bytes.fromhex("095ea7b3")  # approve(address,uint256)
DEPOSIT = bytes.fromhex("6e553f65")  # deposit(uint256,address), ERC-4626


def word(value: int | str) -> bytes:
    """One argument of a call: a number, or an address."""
    return (value if isinstance(value, int) else int(value, 16)).to_bytes(32, "big")


def plan(ctx: Context) -> Plan:
    if not ctx.input:
        return nothing("no amount was given")
    amount = int(ctx.input["amount"])
    token, vault = ctx.params["token"], ctx.params["vault"]
    return in_order(
        [
            Call(token, data=APPROVE + word(vault) + word(amount), label="approve"),
            Call(vault, data=DEPOSIT + word(amount) + word(ctx.account), label="deposit"),
        ]
    )
