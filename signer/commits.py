"""A COMMIT that is believed only when it came back clean (P12): no error, no warning, and an answer.

A synchronous wait that was cancelled ends in a COMMIT that "succeeded" with a warning, and what it wrote may be lost with
the primary. Only what the database says it gave up (a constraint, a deadlock, a serialization failure) is known not to have
taken effect.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError

_GIVEN_UP = {"40001", "40P01"}
"""Serialization failure and deadlock: the transaction is rolled back, whenever it is said."""
_ABORTED = 3
"""libpq's PQTRANS_INERROR: a COMMIT would be answered by a rollback, as if all were well."""


class UncleanCommit(Exception):
    """Whether a COMMIT took effect, and will last, is unknown; its text says what came back."""


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """One transaction on `connection`, committed at the end; an error inside rolls it back.

    Raises:
        UncleanCommit: the COMMIT failed, was not answered, or warned.
        sqlalchemy.exc.DBAPIError: a statement failed, or the COMMIT was refused and nothing was written.
    """
    begun = connection.begin()
    try:
        yield
    except BaseException:
        begun.rollback()
        raise
    driver: Any = connection.connection.driver_connection
    if driver.info.transaction_status == _ABORTED:
        begun.rollback()
        raise UncleanCommit("a failed statement was passed over, so nothing can be committed")
    warnings: list[str] = []

    def note(diagnostic: Any) -> None:
        if diagnostic.severity_nonlocalized == "WARNING":
            warnings.append(str(diagnostic.message_primary))

    driver.add_notice_handler(note)
    try:
        begun.commit()
    except DBAPIError as error:
        if isinstance(error, IntegrityError) or getattr(error.orig, "sqlstate", None) in _GIVEN_UP:
            raise
        connection.invalidate()
        raise UncleanCommit(f"a COMMIT did not answer: {str(error.orig).strip().splitlines()[0]}") from None
    finally:
        driver.remove_notice_handler(note)
    if warnings:
        raise UncleanCommit(f"a COMMIT came back with a warning: {warnings[0]}")
