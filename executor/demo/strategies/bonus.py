"""An ERC-20 transfer that looks at the chain first. All reads of one plan see the same block."""

from executor.strategy import Context, Plan, erc20_transfer, nothing

BALANCE_OF = bytes.fromhex("70a08231")


def plan(ctx: Context) -> Plan:
    """`params.amount` whole tokens to `params.to`, if the account still has them."""
    token, amount = ctx.params["token"], ctx.params["amount"] * 10**18
    owner = bytes.fromhex(ctx.account[2:]).rjust(32, b"\0")
    if int.from_bytes(ctx.chain.call(token, BALANCE_OF + owner)) < amount:
        return nothing("the account has too few tokens left")
    return erc20_transfer(token, ctx.params["to"], amount, label="bonus")
