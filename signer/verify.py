"""Reading back what a backend made, before it is stored: every field, the encoding, low s and the sender."""

from dataclasses import fields

from chain.errors import InvalidTransaction
from chain.transaction import SignedTransaction, UnsignedTransaction, decode
from chain.types import checksum
from signer.errors import BadSignature


def verify(raw: bytes, wanted: UnsignedTransaction, address: bytes) -> SignedTransaction:
    """Decode `raw` and compare. Raises BadSignature telling the first difference."""
    try:
        signed = decode(raw)
    except InvalidTransaction as error:
        raise BadSignature(f"the key of {checksum(address)} gave back bytes that are no transaction: {error}") from None
    if signed.unsigned != wanted:
        names = [
            f.name for f in fields(wanted) if f.compare and getattr(wanted, f.name) != getattr(signed.unsigned, f.name)
        ]
        raise BadSignature(f"the key of {checksum(address)} signed another {', '.join(names)} than asked for")
    if signed.sender != address:
        raise BadSignature(f"the signature is of {checksum(signed.sender)}, not of {checksum(address)}")
    return signed
