"""Reading the rows: short REPEATABLE READ READ ONLY slices, so that no long snapshot bloats the tables that are written most."""

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy import text
from sqlalchemy.engine import Connection

from executor.audit.report import Findings, Kind
from executor.errors import ConfigError, Unreachable

SLICE = 10_000
"""How many executions, or nonces of one account, are read in one snapshot."""

_RANGE = re.compile(r"\{range ([\w.]+)\}")


class Check:
    """One statement that returns the rows which break a promise.

    `sql` may contain `{range COLUMN}`, which narrows a scan to the slice at hand. With several kinds each row says in
    its column `fault` which one it is.
    """

    def __init__(self, sql: str, *kinds: Kind) -> None:
        self.sql = sql
        self.kinds = kinds
        self._named = {kind.name: kind for kind in kinds}

    def kind(self, row: dict[str, Any]) -> Kind:
        """What a returned row is."""
        return self.kinds[0] if len(self.kinds) == 1 else self._named[row["fault"]]


@dataclass(frozen=True, slots=True)
class Range:
    """Keys above `low` up to `high`, without an upper end if that is None. The empty text is below every execution id."""

    low: Any
    high: Any

    def condition(self, column: str) -> str:
        """The range as SQL, with the parameters low and high."""
        return f"{column} > :low" + ("" if self.high is None else f" AND {column} <= :high")


class Slice:
    """One snapshot."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, part: Range | None = None, **parameters: Any) -> list[dict[str, Any]]:
        """All rows of a statement, of one range of keys; parameters it does not name are left out."""
        if part is not None:
            sql = _RANGE.sub(lambda found: part.condition(found[1]), sql)
            parameters |= {"low": part.low, "high": part.high}
        wanted = {name: value for name, value in parameters.items() if re.search(rf":{name}\b", sql)}
        result = self._connection.execute(text(sql), wanted)
        names = list(result.keys())
        return [dict(zip(names, row, strict=True)) for row in result]

    def row(self, sql: str, **parameters: Any) -> dict[str, Any]:
        """The only row of a statement."""
        (found,) = self.rows(sql, **parameters)
        return found

    def run(self, checks: Sequence[Check], findings: Findings, part: Range | None = None, **parameters: Any) -> None:
        """Run checks in this snapshot and note what they return."""
        for check in checks:
            for row in self.rows(check.sql, part, **parameters):
                findings.add(check.kind(row), row)


class Reader:
    """The way to the database; reads only.

    Raises ConfigError for an address that is not PostgreSQL's. Use it as a context manager.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self._engine = sa.create_engine(
                re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", url),
                pool_size=1,
                isolation_level="REPEATABLE READ",
                # No named statements: behind a connection pooler the next transaction may have another server connection.
                connect_args={"application_name": "fenced audit", "connect_timeout": 5, "prepare_threshold": None},
            )
        except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError):
            raise ConfigError(
                "the database url is not a PostgreSQL address: write postgresql://user@host/database."
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.dispose()

    @contextmanager
    def slice(self) -> Iterator[Slice]:
        """One snapshot, as short as what is done in it.

        Raises:
            Unreachable: the database does not answer.
            ConfigError: it was never migrated.
        """
        try:
            with self._engine.connect().execution_options(postgresql_readonly=True) as connection, connection.begin():
                # It is the audit's own connection. Large sorts of a slice stay in memory. Tables without statistics are
                # planned as if they were small, and nested loops then compare every row with every other (335 s for
                # 100,000 signatures): joins are hashed, and what shall be looked up by key says LATERAL … OFFSET 0.
                connection.execute(
                    text("SET LOCAL work_mem = '64MB'; SET LOCAL enable_nestloop = off; SET LOCAL jit = off")
                )
                yield Slice(connection)
        except (sa.exc.OperationalError, sa.exc.InterfaceError) as error:
            raise Unreachable(
                f"the database does not answer: {_first_line(error)}; check that it runs and ask again."
            ) from None
        except sa.exc.ProgrammingError as error:
            if getattr(error.orig, "sqlstate", None) not in ("42P01", "42703", "3F000"):
                raise
            raise ConfigError(
                f"the database is not at this release's migration ({_first_line(error)}): run `fenced migrate`."
            ) from None

    def ranges(self, sql: str, bottom: Any, **parameters: Any) -> list[Range]:
        """Cut a table into slices: `sql` returns every SLICE-th key in order."""
        with self.slice() as cut:
            keys = [bottom, *(row["key"] for row in cut.rows(sql, every=SLICE, **parameters)), None]
        return [Range(low, high) for low, high in itertools.pairwise(keys)]


def _first_line(error: sa.exc.DBAPIError) -> str:
    return str(error.orig).strip().split("\n", maxsplit=1)[0]
