"""The way to PostgreSQL: one engine per process, short transactions, uint256 exact, and a COMMIT that is never believed blindly."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sa
from psycopg.adapt import Loader
from sqlalchemy.engine import Connection, Engine

from executor.errors import ConfigError, ExecutorError, FenceLost, StaleState, Unreachable
from signer import commits
from signer.arrays import array_literal

EPOCH = 2
"""The schema epoch of this code; hold refuses one outside the range stored in the database (P27)."""

Tx = Connection
Result = TypeVar("Result")
_PAUSES_SECONDS = (0.02, 0.04, 0.08, 0.16, 0.16, 0.16, 0.16)
_PATIENCE_SECONDS = 3.0
_FENCE = {"fence_current", "fence_required", "fence_account", "fence_high_water", "fence_epoch"}


class CommitUnknown(ExecutorError):
    """A COMMIT returned an error or a warning: whether it took effect is unknown, the lease is dropped (P12)."""


class Busy(StaleState):
    """The database gave a transaction up (deadlock, serialization, a lock or an answer not had in time); nothing was written.

    The same transaction may be tried again: what it writes was decided before it began.
    """


class Unheard(ExecutorError):
    """Hints cannot be heard on this connection; polling is the truth anyway."""


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

    `url` is SQLAlchemy's (postgresql+psycopg://…); `actor` is the name the history shows. At most `pool_size` +
    `overflow` connections are open at a time.
    """

    def __init__(self, url: str, actor: str, pool_size: int = 8, overflow: int = 24) -> None:
        self.is_pooled = False
        """Whether a connection pooler was found in between."""
        try:
            self.engine: Engine = sa.create_engine(
                normalise(url),
                pool_size=pool_size,
                max_overflow=overflow,
                pool_timeout=10,
                pool_pre_ping=False,
                hide_parameters=True,
                isolation_level="READ COMMITTED",
                connect_args={"application_name": actor[:63], **_KEEP_ALIVE},
            )
        except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError):
            raise ConfigError(
                "[database] url is not a PostgreSQL address: write postgresql://user@host/database."
            ) from None
        self._autocommit = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        sa.event.listen(self.engine, "connect", self._prepare)
        sa.event.listen(self.engine, "handle_error", _throw_away)

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A connection for short reads, each statement its own transaction."""
        with _translated(), self._autocommit.connect() as tx:
            yield tx

    @contextmanager
    def transaction(self) -> Iterator[Tx]:
        """One short transaction, committed at the end; it waits two seconds for a lock and is never idle for five.

        Raises:
            FenceRefused, Refused: a named constraint refused a write; rolled back.
            Busy: the database gave it up; rolled back.
            CommitUnknown: the COMMIT itself failed or warned (P12).
            Unreachable: the connection was lost before COMMIT.
        """
        with self._transaction() as tx:
            tx.execute(_LIMIT)
            yield tx

    def write(self, body: Callable[[Tx], Result]) -> Result:
        """A `transaction` whose `body` only puts rows; tried again whole when the database gave it up. What `body` returned.

        Raises:
            Busy: given up each time.
            FenceRefused, Refused, CommitUnknown, Unreachable: as `transaction`; never tried again here.
        """

        def once() -> Result:
            with self.transaction() as tx:
                return body(tx)

        return repeat(once)

    @contextmanager
    def hold(self, account_id: int, token: int, lease_id: Any) -> Iterator[Held]:
        """A record transaction of one account: the wall first, then the writes, then COMMIT (P8, G6)."""
        with self._transaction() as tx:
            state = tx.scalar(_HOLD, {"account": account_id, "token": token, "lease": lease_id, "epoch": EPOCH})
            yield Held(tx, account_id, token, str(state))

    @contextmanager
    def _transaction(self) -> Iterator[Tx]:
        with _translated(), self.engine.connect() as tx, commits.transaction(tx):
            yield tx

    def _prepare(self, connection: Any, _: Any) -> None:
        connection.adapters.register_loader("numeric", _IntLoader)
        if _is_behind_pooler(connection):
            # Named statements stay on one server connection, and the next transaction may have another [B101].
            connection.prepare_threshold = None
            self.is_pooled = True

    def hints(self, stop: threading.Event) -> Iterator[None]:
        """One item for each NOTIFY of triggers, requests and applies, on a connection of its own, until `stop`.

        Raises:
            Unheard: a connection pooler is in between, which passes no NOTIFY on.
            Unreachable: the connection is lost.
        """
        try:
            with psycopg.connect(self.conninfo(), autocommit=True, **_KEEP_ALIVE) as connection:
                if _is_behind_pooler(connection):
                    raise Unheard("a connection pooler is in between, which passes no NOTIFY on.")
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


_KEEP_ALIVE: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_LIMIT = sa.text(
    "SELECT set_config('lock_timeout', '2s', true), set_config('idle_in_transaction_session_timeout', '5s', true),"
    " set_config('synchronous_commit', 'on', true)"
)
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


def repeat(once: Callable[[], Result]) -> Result:
    """Do `once`, and again when the database gave its transaction up: eight times or three seconds at most.

    `once` is one whole transaction that puts rows decided before; acts are never repeated like this [B99].

    Raises Busy when it was given up each time.
    """
    begun = time.monotonic()
    for pause in _PAUSES_SECONDS:
        try:
            return once()
        except Busy:
            if time.monotonic() - begun > _PATIENCE_SECONDS:
                raise
            time.sleep(pause)
    return once()


def _is_behind_pooler(connection: Any) -> bool:
    """Whether the server process is another than the one that was named when the connection was made."""
    before, connection.autocommit = connection.autocommit, True
    (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone()
    connection.autocommit = before
    return bool(pid != connection.info.backend_pid)


def _throw_away(context: Any) -> None:
    """A server that takes no writes is not the one we want: its connections are thrown away, all of them [B96]."""
    if isinstance(context.original_exception, psycopg.errors.ReadOnlySqlTransaction):
        context.is_disconnect = True


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except commits.UncleanCommit as error:
        raise CommitUnknown(f"{error}.") from None
    except sa.exc.DBAPIError as error:
        raise _translate(error) from None
    except psycopg.Error as error:  # while a new connection was looked at, where SQLAlchemy wraps nothing
        raise _silent(str(error)) from None
    except sa.exc.TimeoutError:
        raise Unreachable("all database connections of this process are busy; it tries again.") from None


def _translate(error: sa.exc.DBAPIError) -> Exception:
    original = error.orig
    if isinstance(original, psycopg.errors.IntegrityError):
        diagnostic = original.diag
        name = diagnostic.constraint_name or "unnamed constraint"
        kind = FenceRefused if name in _FENCE else Refused
        return kind(name, str(diagnostic.message_primary), str(diagnostic.message_detail or ""))
    if isinstance(original, _GIVEN_UP):
        return Busy(
            f"the database was busy{_where(original)}: {_first_line(error)}; nothing was written, it may be tried again."
        )
    if isinstance(original, psycopg.errors.ReadOnlySqlTransaction):
        return Unreachable(
            "the database takes no writes (a standby, or switched to read-only): its connections are made anew; "
            "check that [database] url leads to the primary."
        )
    if error.connection_invalidated or isinstance(original, psycopg.OperationalError | psycopg.InterfaceError):
        return _silent(str(error.orig))
    return error


def _silent(told: str) -> Unreachable:
    first = told.strip().split("\n", maxsplit=1)[0]
    return Unreachable(f"the database does not answer: {first}; check [database] url and that the server runs.")


_GIVEN_UP = (
    psycopg.errors.LockNotAvailable,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
    psycopg.errors.QueryCanceled,
)


def _where(error: psycopg.Error) -> str:
    """Which table a lock was waited for, as far as the database tells."""
    found = re.search(r'relation "([^"]+)"', f"{error.diag.context or ''} {error.diag.message_detail or ''}")
    return f" with rows of {found[1]}" if found else ""


def _first_line(error: sa.exc.DBAPIError) -> str:
    return str(error.orig).strip().split("\n", maxsplit=1)[0]
