"""The way to PostgreSQL: one engine per process, short transactions, uint256 exact, and a COMMIT that is never believed blindly."""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.adapt import Loader
from sqlalchemy.engine import Connection, Engine

from executor.errors import ConfigError, ExecutorError, FenceLost, StaleState, Unreachable
from signer.arrays import array_literal

EPOCH = 2
"""The schema epoch of this code; hold refuses one outside the range stored in the database (P27)."""

Tx = Connection
_FENCE = {"fence_current", "fence_required", "fence_account", "fence_high_water", "fence_epoch"}


class CommitUnknown(ExecutorError):
    """A COMMIT returned an error or a warning: whether it took effect is unknown, the lease is dropped (P12)."""


class Busy(StaleState):
    """The database gave a transaction up for others' sake (deadlock, serialization, a lock not had in time); nothing was written.

    The same transaction may be tried again: what it writes was decided before it began.
    """


class Refused(StaleState):
    """The database refused a write by a named constraint; nothing of the transaction was written.

    `constraint` is the name, `detail` the database's evidence.
    """

    def __init__(self, constraint: str, message: str, detail: str) -> None:
        super().__init__(f"{message} ({constraint}).")
        self.constraint = constraint
        self.detail = detail or message


class FenceRefused(FenceLost):
    """The wall refused the write: another generation holds the account (G6). Carries the constraint and its evidence."""

    def __init__(self, constraint: str, message: str, detail: str) -> None:
        super().__init__(f"{message} ({constraint}).")
        self.constraint = constraint
        self.detail = f"{message}: {detail}" if detail else message


@dataclass(frozen=True, slots=True)
class Held:
    """Proof that this transaction passed `hold` for one account; guarded writes ask for it, so the type checker refuses an unfenced one."""

    tx: Tx
    account_id: int
    token: int
    account_state: str


class _IntLoader(Loader):
    """NUMERIC without a fraction as int: Decimal's default context rounds a uint256."""

    def load(self, data: Any) -> int:
        return int(bytes(data))


class Rows:
    """A batch of rows for one statement: `unnest` of one array per column, one text for every batch size.

    `columns` maps names to PostgreSQL types; uint256 accepts only int in range, so that nothing is rounded on the way.
    """

    def __init__(self, **columns: str) -> None:
        self._columns = columns
        arrays = ", ".join(
            f"CAST(:{name} AS {'numeric' if kind == 'uint256' else kind}[])" for name, kind in columns.items()
        )
        self.sql = f"unnest({arrays}) AS r({', '.join(columns)})"

    def bind(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """The parameters for `rows`. Raises TypeError or ValueError for what is not a uint256 in a uint256 column."""
        bound = {name: [row[name] for row in rows] for name in self._columns}
        for name, kind in self._columns.items():
            if kind == "uint256":
                for value in bound[name]:
                    if value is not None and type(value) is not int:
                        raise TypeError(f"{name} is a whole number, not {type(value).__name__}")
                    if value is not None and not 0 <= value < 1 << 256:
                        raise ValueError(f"{name} is outside uint256")
        return {name: array_literal(self._columns[name], values) for name, values in bound.items()}


class Database:
    """The connections of one process.

    `url` is SQLAlchemy's (postgresql+psycopg://…); `actor` is the name the history shows.
    """

    def __init__(self, url: str, actor: str, pool_size: int = 8) -> None:
        try:
            self.engine: Engine = sa.create_engine(
                normalise(url),
                pool_size=pool_size,
                max_overflow=24,
                pool_timeout=10,
                pool_pre_ping=False,
                isolation_level="READ COMMITTED",
                connect_args={
                    "application_name": actor[:63],
                    "connect_timeout": 5,
                    "keepalives_idle": 5,
                    "keepalives_interval": 2,
                    "tcp_user_timeout": 10_000,
                },
            )
        except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError):
            raise ConfigError(
                "[database] url is not a PostgreSQL address: write postgresql://user@host/database."
            ) from None
        self._autocommit = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        sa.event.listen(self.engine, "connect", _prepare)

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A connection for short reads, each statement its own transaction."""
        with _translated(), self._autocommit.connect() as tx:
            yield tx

    @contextmanager
    def transaction(self) -> Iterator[Tx]:
        """One short transaction, committed at the end.

        Raises:
            FenceRefused, Refused: a named constraint refused a write; rolled back.
            CommitUnknown: the COMMIT itself failed or warned (P12).
            Unreachable: the connection was lost before COMMIT.
        """
        with _translated(), self.engine.connect() as tx:
            transaction = tx.begin()
            try:
                yield tx
            except BaseException:
                transaction.rollback()
                raise
            warnings: list[str] = _notices(tx)
            warnings.clear()
            try:
                transaction.commit()
            except sa.exc.DBAPIError as error:
                if isinstance(error.orig, psycopg.errors.IntegrityError):
                    raise
                tx.invalidate()
                raise CommitUnknown(f"a COMMIT did not answer: {_first_line(error)}.") from None
            if warnings:
                raise CommitUnknown(f"a COMMIT came back with a warning: {warnings[0]}.")

    @contextmanager
    def hold(self, account_id: int, token: int, lease_id: Any) -> Iterator[Held]:
        """A record transaction of one account: the wall first, then the writes, then COMMIT (P8, G6)."""
        with self.transaction() as tx:
            state = tx.scalar(_HOLD, {"account": account_id, "token": token, "lease": lease_id, "epoch": EPOCH})
            yield Held(tx, account_id, token, str(state))

    def hints(self, stop: threading.Event) -> Iterator[None]:
        """One item for each NOTIFY of triggers, requests and applies, on a connection of its own, until `stop`.

        Raises Unreachable when the connection is lost.
        """
        try:
            with psycopg.connect(self.conninfo(), autocommit=True) as connection:
                connection.execute("LISTEN fenced")
                while not stop.is_set():
                    for _ in connection.notifies(timeout=1.0):
                        yield
        except psycopg.Error as error:
            raise Unreachable(f"the database does not answer: {str(error).strip().splitlines()[0]}.") from None

    def conninfo(self) -> str:
        """The address for a connection outside the pool; may hold a password."""
        return self.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()


_HOLD = sa.text("SELECT hold(:account, :token, :lease, :epoch)")


def normalise(url: str) -> str:
    """The same address with the driver we use."""
    return re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", url)


def expect(found: int, wanted: int, what: str) -> None:
    """Compare the number of rows a guarded write changed with what it named.

    Raises:
        StaleState: they differ; the caller's transaction rolls back.
    """
    if found != wanted:
        raise StaleState(f"{what}: {wanted} rows were expected to change, {found} would have.")


def _prepare(connection: Any, _: Any) -> None:
    connection.adapters.register_loader("numeric", _IntLoader)
    warnings: list[str] = []
    connection.fenced_warnings = warnings

    def notice(diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.severity_nonlocalized == "WARNING":
            warnings.append(str(diagnostic.message_primary))

    connection.add_notice_handler(notice)


def _notices(tx: Tx) -> list[str]:
    found: list[str] = tx.connection.dbapi_connection.fenced_warnings  # type: ignore[union-attr]  # set by _prepare on each connection
    return found


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise _translate(error) from None
    except sa.exc.TimeoutError:
        raise Unreachable("all database connections of this process are busy; it tries again.") from None


def _translate(error: sa.exc.DBAPIError) -> Exception:
    original = error.orig
    if isinstance(original, psycopg.errors.IntegrityError):
        diagnostic = original.diag
        name = diagnostic.constraint_name or "unnamed constraint"
        kind = FenceRefused if name in _FENCE else Refused
        return kind(name, str(diagnostic.message_primary), str(diagnostic.message_detail or ""))
    if isinstance(
        original,
        psycopg.errors.LockNotAvailable | psycopg.errors.DeadlockDetected | psycopg.errors.SerializationFailure,
    ):
        return Busy(f"the database was busy with the same rows: {_first_line(error)}; it tries again.")
    if isinstance(original, psycopg.OperationalError | psycopg.InterfaceError):
        return Unreachable(
            f"the database does not answer: {_first_line(error)}; check [database] url and that the server runs."
        )
    return error


def _first_line(error: sa.exc.DBAPIError) -> str:
    return str(error.orig).strip().split("\n", maxsplit=1)[0]
