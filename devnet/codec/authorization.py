"""Authorizations of set-code transactions: an account lets its calls be served by another's code (EIP-7702)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from devnet.codec import rlp_coding
from devnet.codec.fields import FieldError, address, sequence, uint8, uint64, uint256
from devnet.codec.keccak import keccak
from devnet.codec.rlp_coding import Item, integer
from devnet.codec.signature import signer

DELEGATION_PREFIX: Final = b"\xef\x01\x00"
_MAGIC: Final = b"\x05"
_MAX_NONCE: Final = 2**64 - 1


@dataclass(frozen=True)
class Authorization:
    """One signed tuple. `chain_id` 0 holds on every chain; `address` is whose code is used, zero takes it away again."""

    chain_id: int
    address: bytes
    nonce: int
    y_parity: int
    r: int
    s: int

    @cached_property
    def authority(self) -> bytes | None:
        """The account that signed; None where the tuple is invalid in itself, which a block skips over."""
        if self.nonce >= _MAX_NONCE:
            return None
        body = rlp_coding.encode((integer(self.chain_id), self.address, integer(self.nonce)))
        return signer(keccak(_MAGIC + body), self.y_parity, self.r, self.s)


def delegation(code: bytes) -> bytes | None:
    """The address a delegated account's code points at, None for any other code."""
    return code[3:] if len(code) == 23 and code.startswith(DELEGATION_PREFIX) else None


def authorization_list(item: Item) -> tuple[Authorization, ...]:
    """Read the list of a type 4 transaction. Raises FieldError."""
    found = []
    for at, entry in enumerate(sequence(item, "AuthList", "[]types.SetCodeAuthorization")):
        place = f"AuthList[{at}]"
        parts = sequence(entry, place, "types.SetCodeAuthorization")
        if len(parts) != 6:
            complaint = "too few elements" if len(parts) < 6 else "input list has too many elements"
            raise FieldError(complaint, "types.SetCodeAuthorization", place)
        found.append(
            Authorization(
                chain_id=uint256(parts[0], f"{place}.ChainID"),
                address=address(parts[1], f"{place}.Address"),
                nonce=uint64(parts[2], f"{place}.Nonce"),
                y_parity=uint8(parts[3], f"{place}.V"),
                r=uint256(parts[4], f"{place}.R"),
                s=uint256(parts[5], f"{place}.S"),
            )
        )
    return tuple(found)
