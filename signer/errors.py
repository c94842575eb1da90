"""What can go wrong in the signer, by what the caller should do. A refusal is a value (`Refused`), not an error.

    SignerError
    ├── Unavailable      the journal cannot be reached or would not commit: try again, nothing was released
    │   └── CommitUnknown   a COMMIT came back with a warning or not at all: drop the lease (P12)
    ├── UnknownAccount   no key or no policy for this account: fix the configuration
    ├── StaleFence       a newer lease generation has been here: drop the lease
    ├── JournalRefused   a constraint of the journal stopped the write (its name is told): a defect, halt
    ├── KeyRefused       a key file or keystore is not safe or not the right one: the message tells what to do
    └── BadSignature     a backend gave back something else than what was asked for: halt

No message, cause or repr ever holds a key, a password or a row's parameters.
"""


class SignerError(Exception):
    """Anything that went wrong in the signer."""


class Unavailable(SignerError):
    """The journal could not be read or written. Nothing was released; the same call may be made again."""


class CommitUnknown(Unavailable):
    """Whether the journal's COMMIT took effect is unknown. Nothing was released; the lease is dropped (P12)."""


class UnknownAccount(SignerError):
    """The signer holds no key or no policy for this account."""


class StaleFence(SignerError):
    """The journal has seen a newer lease generation, or this one under another lease id."""


class JournalRefused(SignerError):
    """A constraint of the journal refused the write. `constraint` is its name."""

    def __init__(self, message: str, constraint: str) -> None:
        super().__init__(message)
        self.constraint = constraint


class KeyRefused(SignerError):
    """A key could not be taken into use."""


class BadSignature(SignerError):
    """A backend's bytes are not the transaction that was asked for, signed by the account."""
