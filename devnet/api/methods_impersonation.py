"""anvil_ and hardhat_ methods that let accounts send without their keys."""

from typing import Any

from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.encoding import parse_data
from devnet.node import Node

METHODS = Methods()


@METHODS.named("anvil_impersonateAccount", "hardhat_impersonateAccount")
def impersonate_account(node: Node, params: Params) -> None:
    """Have eth_sendTransaction take an account at its word, a contract too (EIP-3607 aside)."""
    node.impersonation.addresses.add(params.address(0))


@METHODS.named("anvil_stopImpersonatingAccount", "hardhat_stopImpersonatingAccount")
def stop_impersonating_account(node: Node, params: Params) -> None:
    """Ask for an account's key again; what it has sent stays."""
    node.impersonation.addresses.discard(params.address(0))


@METHODS.named("anvil_impersonateSignature")
def impersonate_signature(node: Node, params: Params) -> None:
    """Have ECRECOVER name an account for a signature (65 bytes: r, s, v), whatever was signed.

    Both come as two parameters or, as with anvil, as a pair.
    """
    pair = Params(params.items(0)) if isinstance(params.optional(0), list) else params
    signature = parse_data(pair.required(0), "signature", 65)
    node.world.given_signatures[signature] = pair.address(1)


@METHODS.named("anvil_autoImpersonateAccount", "hardhat_autoImpersonateAccount")
def auto_impersonate_account(node: Node, params: Params) -> None:
    """Take every account at its word, or only the listed ones again."""
    node.impersonation.everyone = params.flag(0)


@METHODS.named("devnet_impersonation")
def impersonation(node: Node, _params: Params) -> dict[str, Any]:
    """Who may send without a key: every account, or the listed ones."""
    return {
        "everyone": node.impersonation.everyone,
        "accounts": sorted("0x" + address.hex() for address in node.impersonation.addresses),
    }
