"""What commands share: the options, the configuration, and a database that is checked before anything is asked of it."""

import getpass
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from executor.config import Config
    from executor.database import Database

ConfigOption = Annotated[
    Path, typer.Option("--config", envvar="FENCED_CONFIG", help="The configuration file.", metavar="PATH")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
WhyOption = Annotated[str, typer.Option("--why", help="The reason, for the record.", metavar="TEXT")]
DEFAULT_CONFIG = Path("fenced.toml")


def configured(path: Path) -> "Config":
    """The configuration in the file at `path`. Raises ConfigError."""
    from executor.config import load

    return load(path)


def address(config: "Config") -> str:
    """The database's URL for SQLAlchemy; starts nothing. Raises ConfigError when the embedded one does not run."""
    from executor.database import normalise

    if config.database.url is not None:
        return normalise(config.database.url.reveal())
    from executor.app import database_url

    return normalise(database_url(config))


@contextmanager
def opened(config: "Config") -> Iterator["Database"]:
    """The configuration's database, at this release's migration and of this service.

    Raises:
        ConfigError: it is another service's, or at another migration.
        Unreachable: it does not answer.
    """
    from executor import migration
    from executor.database import Database
    from executor.registration import check_service

    url = address(config)
    migration.check(url)
    database = Database(url, who(), pool_size=2)
    try:
        check_service(database, config.service.name)
        yield database
    finally:
        database.close()


def who() -> str:
    """The person at the keyboard as the record names them: operating-system user and host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.geteuid())
    return f"{user}@{socket.gethostname()}"


def reason(why: str) -> str:
    """A reason with who gave it. Raises ConfigError when there is none."""
    return f"{told(why)} ({who()})"


def told(why: str) -> str:
    """The reason, on one line. Raises ConfigError when there is none."""
    from executor.errors import ConfigError

    line = " ".join(why.split())
    if not line or len(line) > 400:
        raise ConfigError("--why takes a reason of 1 to 400 characters; it is kept for the record.")
    return line
