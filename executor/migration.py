"""Bring a database to the schema of this release (Alembic, forward only).

The statements are frozen SQL files, one folder per revision; docs/schema.sql is generated from their result.
"""

import time
from pathlib import Path

from sqlalchemy import create_engine, pool, text
from sqlalchemy.exc import OperationalError

from executor.errors import ConfigError, Unreachable

HEAD = "0002"
_LOCK_RETRIES = 5


def _location() -> Path:
    packaged = Path(__file__).parent / "migrations"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "migrations"


def run_sql(revision: str, names: list[str]) -> None:
    """Execute the frozen files of one revision, in order, in the migration's transaction."""
    from alembic import op

    for name in names:
        # The driver's own cursor: a file holds many statements and literal percent signs.
        cursor = op.get_bind().connection.cursor()
        cursor.execute((_location() / "sql" / revision / f"{name}.sql").read_text())


def upgrade(url: str) -> None:
    """Bring the database at `url` to HEAD; safe to repeat and to run from several places at once.

    Raises:
        Unreachable: the database does not answer, or a lock could not be had in five tries.
        ConfigError: the database was migrated by a newer release.
    """
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_location()).replace("%", "%%"))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    found = revision(url)
    if found is not None and found > HEAD:
        raise ConfigError(_newer(found))
    for tried in range(_LOCK_RETRIES):
        try:
            command.upgrade(config, "head")
            return
        except OperationalError as error:
            if tried == _LOCK_RETRIES - 1 or "lock timeout" not in str(error):
                raise Unreachable(f"the migration did not finish: {first_line(error)}.") from None
            time.sleep(0.5 * (tried + 1))


def revision(url: str) -> str | None:
    """The revision the database stands at, None when it was never migrated."""
    engine = create_engine(url, poolclass=pool.NullPool)
    try:
        with engine.connect() as connection:
            if connection.scalar(text("SELECT to_regclass('alembic_version')")) is None:
                return None
            found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
            return found
    except OperationalError as error:
        raise Unreachable(
            f"the database does not answer: {first_line(error)}; check [database] url and that the server runs."
        ) from None
    finally:
        engine.dispose()


def check(url: str) -> None:
    """Refuse to work on a database of another revision.

    Raises:
        ConfigError: never migrated, or at an older or newer revision than this release's.
        Unreachable: the database does not answer.
    """
    found = revision(url)
    if found is None or found < HEAD:
        raise ConfigError(
            f"the database is at migration {found or 'none'}, this release needs {HEAD}: run `fenced migrate`."
        )
    if found > HEAD:
        raise ConfigError(_newer(found))


def _newer(found: str) -> str:
    return f"the database is at migration {found}, newer than this release's {HEAD}: install the release that made it."


def first_line(error: Exception) -> str:
    """The first line of a driver's message, which carries no connection string."""
    return str(getattr(error, "orig", None) or error).strip().split("\n", maxsplit=1)[0]
