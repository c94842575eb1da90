"""Empty → head gives the documented schema; other revisions are refused with what to do."""

import pytest

from executor import embedded, migration
from executor.errors import ConfigError
from tests.migrations.schema_document import DOCUMENT, dump
from tests.support.postgres import plain_connection


def test_the_schema_document_is_what_the_migrations_make(postgres_server: embedded.Server, empty_database: str) -> None:
    migration.upgrade(empty_database)
    with plain_connection(empty_database) as connection:
        name = connection.execute("SELECT current_database()").fetchone()
    assert name is not None
    assert dump(postgres_server, name[0]) == DOCUMENT.read_text(), "run `make schema`"


def test_a_migration_can_be_repeated(database_url: str) -> None:
    migration.upgrade(database_url)
    migration.check(database_url)


def test_an_unmigrated_database_is_refused(empty_database: str) -> None:
    with pytest.raises(ConfigError, match="run `fenced migrate`"):
        migration.check(empty_database)


@pytest.mark.parametrize(
    ("revision", "message"), [("0000", "run `fenced migrate`"), ("0003", "newer than this release's 0002")]
)
def test_other_revisions_are_refused(database_url: str, revision: str, message: str) -> None:
    with plain_connection(database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = %s", (revision,))
    with pytest.raises(ConfigError, match=message):
        migration.check(database_url)


def test_a_database_of_a_newer_release_is_not_migrated(database_url: str) -> None:
    with plain_connection(database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0003'")
    with pytest.raises(ConfigError, match="install the release that made it"):
        migration.upgrade(database_url)


def test_every_trigger_fires_always(database_url: str) -> None:
    with plain_connection(database_url) as connection:
        lax = connection.execute(
            "SELECT tgrelid::regclass::text, tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
            " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE NOT tgisinternal AND tgenabled <> 'A' AND n.nspname IN ('public', 'signer')"
        ).fetchall()
    assert lax == []
