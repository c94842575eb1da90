"""The errors of the executor, split by what the caller must do about them.

    ExecutorError
    ├── ConfigError    wrong usage or configuration: a person edits something   (exit code 2)
    ├── NotFine        the thing asked about is not fine                        (exit code 1)
    ├── Unreachable    database or node did not answer: ask again later         (exit code 3)
    ├── FenceLost      another holder has the account: drop the lease, go on with other accounts
    ├── StaleState     the row moved since it was read: read again
    └── Conflict       the same id was asked for with another payload: nothing was recorded

Every message is one sentence that says what is wrong and what to do. No message carries a secret.
"""

from __future__ import annotations


class ExecutorError(Exception):
    """Base of all errors the executor raises on purpose.

    `exit_code` is what the command line ends with when the error reaches it.
    """

    exit_code: int = 1


class ConfigError(ExecutorError):
    """The configuration, a schedule or a command is wrong; the sentence names the key."""

    exit_code = 2


class NotFine(ExecutorError):
    """The thing asked about exists and is not fine; the sentence says what needs a person."""

    exit_code = 1


class Unreachable(ExecutorError):
    """The database or a node could not be asked; nothing is known about the answer."""

    exit_code = 3


class FenceLost(ExecutorError):
    """The database or signer refused a write because another lease generation holds the account (G6)."""

    exit_code = 1


class StaleState(ExecutorError):
    """A compare-and-set found another state than the one read before; nothing was written."""

    exit_code = 1


class Conflict(ExecutorError):
    """An execution with this id exists with another payload; nothing was written."""

    exit_code = 1
