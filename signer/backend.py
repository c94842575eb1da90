"""What holds a key: anything that can sign one transaction for one address."""

from typing import Protocol

from chain.transaction import UnsignedTransaction


class Backend(Protocol):
    """A key behind one verb. There is no other: no raw hash, no message, no typed data, no authorisation.

    What `sign` returns is decoded and compared field by field before it is stored (`signer.verify`), so a backend need
    not be trusted with more than the key. It may be slow and may raise anything; the signer then gives out nothing.
    """

    @property
    def address(self) -> bytes:
        """The account, 20 bytes."""
        ...

    def sign(self, transaction: UnsignedTransaction) -> bytes:
        """The signed transaction, as it goes to a node."""
        ...
