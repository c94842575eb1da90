"""How a given client's pool judges: its rules and its words, as data. One profile today, geth; others are rows to add."""

from collections.abc import Mapping
from dataclasses import dataclass

from devnet.errors import INVALID_PARAMS, SERVER_ERROR, Rejected, RpcError

ETHER = 10**18


@dataclass(frozen=True, slots=True)
class Profile:
    """Pool rules and texts. `fee_cap` and `min_tip` in wei, `max_size` in bytes, `price_bump` in percent.

    `texts` maps a reason of Rejected to an error code and a template for its facts.
    """

    name: str
    price_bump: int
    min_tip: int
    fee_cap: int
    max_size: int
    requeue_orphans: bool
    texts: Mapping[str, tuple[int, str]]

    def error(self, rejected: Rejected) -> RpcError:
        """The client's answer for a refusal."""
        code, template = self.texts[rejected.reason]
        return RpcError(code, template.format(**rejected.facts))

    def bumped(self, price: int) -> int:
        """The least price that replaces `price`, rounded down as geth does; at least one wei more."""
        return max(price * (100 + self.price_bump) // 100, price + 1)


_FUNDS = "insufficient funds for gas * price + value: balance {balance}, "

GETH = Profile(
    name="geth",
    price_bump=10,
    min_tip=1,
    fee_cap=ETHER,
    max_size=131_072,
    requeue_orphans=True,
    texts={
        "undecodable": (SERVER_ERROR, "{text}"),
        "already_known": (SERVER_ERROR, "already known"),
        "nonce_too_low": (SERVER_ERROR, "nonce too low: next nonce {next}, tx nonce {nonce}"),
        "nonce_max": (SERVER_ERROR, "nonce has max value"),
        "replacement_underpriced": (SERVER_ERROR, "replacement transaction underpriced"),
        "insufficient_funds": (SERVER_ERROR, _FUNDS + "tx cost {cost}, overshot {overshot}"),
        "insufficient_funds_queued": (
            SERVER_ERROR,
            _FUNDS + "queued cost {queued}, tx cost {cost}, overshot {overshot}",
        ),
        "insufficient_funds_bumped": (
            SERVER_ERROR,
            _FUNDS + "queued cost {queued}, tx bumped {bump}, overshot {overshot}",
        ),
        "intrinsic_gas": (SERVER_ERROR, "intrinsic gas too low: gas {gas}, minimum needed {needed}"),
        "floor_gas": (SERVER_ERROR, "insufficient gas for floor data gas cost: gas {gas}, minimum needed {needed}"),
        "block_gas_limit": (SERVER_ERROR, "exceeds block gas limit"),
        "tip_above_fee_cap": (SERVER_ERROR, "max priority fee per gas higher than max fee per gas"),
        "tip_too_low": (
            SERVER_ERROR,
            "transaction gas price below minimum: gas tip cap {tip}, minimum needed {needed}",
        ),
        "fee_cap": (SERVER_ERROR, "tx fee ({fee:.2f} ether) exceeds the configured cap ({cap:.2f} ether)"),
        "wrong_chain": (SERVER_ERROR, "invalid sender: invalid chain id for signer: have {have} want {want}"),
        "unprotected": (SERVER_ERROR, "only replay-protected (EIP-155) transactions allowed over RPC"),
        "invalid_signature": (SERVER_ERROR, "invalid sender: invalid transaction v, r, s values"),
        "oversized": (SERVER_ERROR, "oversized data: transaction size {size}, limit {limit}"),
        "initcode": (SERVER_ERROR, "max initcode size exceeded: code size {size}, limit {limit}"),
        "unknown_account": (SERVER_ERROR, "unknown account"),
        "contract_creation_without_data": (INVALID_PARAMS, "contract creation without any data provided"),
    },
)

PROFILES: Mapping[str, Profile] = {GETH.name: GETH}
