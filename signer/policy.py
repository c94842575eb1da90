"""What an account may sign at all, in its owner's words. Checked in the signer, for whatever the rows say. Pure."""

from dataclasses import dataclass

from chain.transaction import AccessList
from chain.types import checksum
from signer.request import Kind, SignRequest, reads_as_cancel


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of one account; None means no limit. Amounts in wei, fees per gas.

    A SEND or BUMP may offer fees up to cap / 1.125, a CANCEL up to the cap (P22). The tip's cap is for type 2 only: the
    gas price of types 0 and 1 is held by `max_fee_per_gas_wei`. A CANCEL is not held by `allowed_to`: it goes to the
    account itself. Transactions of types 3 and 4, and type 0 without a chain id, cannot be expressed in a request.
    """

    max_fee_per_gas_wei: int | None = None
    max_priority_fee_per_gas_wei: int | None = None
    max_value_wei: int | None = None
    max_gas: int | None = None
    allowed_to: frozenset[bytes] | None = None
    allow_create: bool = False

    def check(self, request: SignRequest, address: bytes | None = None) -> str | None:
        """One sentence saying what forbids the request; None if nothing does.

        With `address`, the account's own, a SEND or BUMP that sends nothing to it is forbidden: on chain it could not
        be told from a cancel.
        """
        tx = request.transaction
        cancel = request.kind is Kind.CANCEL
        refusal = self.check_offer(tx.gas, tx.max_fee_wei, tx.tip_wei, tx.type, cancel=cancel)
        if refusal is None and not cancel:
            refusal = self.check_call(tx.to, tx.value_wei, tx.data, tx.access_list, address)
        return refusal

    def check_offer(
        self, gas: int, max_fee_wei: int, tip_wei: int, transaction_type: int, *, cancel: bool = False
    ) -> str | None:
        """What forbids these fees and this gas limit, as one sentence; None if nothing does."""
        over = _over("fee", max_fee_wei, self.max_fee_per_gas_wei, cancel=cancel)
        if over is None and transaction_type == 2:
            over = _over("tip", tip_wei, self.max_priority_fee_per_gas_wei, cancel=cancel)
        if over is None and self.max_gas is not None and gas > self.max_gas:
            over = f"the policy allows {self.max_gas} gas, and {gas} was asked for"
        return over

    def check_call(
        self, to: bytes | None, value_wei: int, data: bytes, access_list: AccessList, address: bytes | None = None
    ) -> str | None:
        """What forbids this call, as one sentence; None if nothing does. `to` is None for a creation."""
        if self.max_value_wei is not None and value_wei > self.max_value_wei:
            return f"the policy allows a value of {self.max_value_wei} wei, and {value_wei} was asked for"
        if to is None:
            return None if self.allow_create else "the policy does not allow contract creations"
        if self.allowed_to is not None and to not in self.allowed_to:
            return f"the policy does not allow {checksum(to)} as a recipient"
        if address is not None and reads_as_cancel(to, value_wei, data, access_list, address):
            return (
                "an intent that sends nothing to its own account reads as a cancel and is not signed as anything else"
            )
        return None


def _over(what: str, offered: int, cap: int | None, *, cancel: bool) -> str | None:
    if cap is None or (offered <= cap if cancel else offered * 9 <= cap * 8):
        return None
    room = "" if cancel else " less the room that a cancel needs (cap / 1.125)"
    return f"the policy caps the {what} per gas at {cap} wei{room}, and {offered} was asked for"
