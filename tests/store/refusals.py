"""Assert that the database refuses a statement, and by which name."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.errors import lookup

UNIQUE, CHECK, FOREIGN_KEY, NOT_NULL, LOCKED = "23505", "23514", "23503", "23502", "55P03"


@contextmanager
def refused(constraint: str | None, sqlstate: str = CHECK) -> Iterator[None]:
    """The statements inside end with this SQLSTATE and the name of this constraint."""
    with pytest.raises(lookup(sqlstate)) as caught:
        yield
    assert isinstance(caught.value, psycopg.Error)
    assert (caught.value.diag.constraint_name, caught.value.sqlstate) == (constraint, sqlstate)
