"""`fenced migrate` and `fenced apply`: the database made ready, and the configuration brought into its rows."""

from executor.cli.output import say, working
from executor.cli.session import DEFAULT_CONFIG, ConfigOption, address, configured, opened, who


def migrate(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Bring the database to this release's tables, and give it to this service.

    Safe to repeat and to run from several places at once. A database belongs to one [service] name for ever: another
    service's is refused, so that two installations never share an account. It starts nothing; an embedded database is
    started by `fenced db start`.

    Example: fenced migrate --config production.toml
    """
    loaded = configured(config)
    from executor import migration
    from executor.database import Database
    from executor.registration import claim

    url = address(loaded)
    with working("migrating"):
        before = migration.revision(url)
        migration.upgrade(url)
    database = Database(url, who(), pool_size=1)
    try:
        claimed = claim(database, loaded.service.name)
    finally:
        database.close()
    if before == migration.HEAD:
        say(f"the database is at migration {migration.HEAD} already")
    else:
        say(f"migrated: {before or 'empty'} → {migration.HEAD}")
    if claimed:
        say(f"the database now belongs to the service {loaded.service.name}")


def apply(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Register what the configuration says: accounts, and strategies with their revision.

    All or nothing, and each change is printed. A strategy that is new or changed starts now: nothing is made up for the
    past. One that is gone is retired and keeps its row. An account with open nonces cannot be dropped.

    Example: fenced apply
    """
    loaded = configured(config)
    from executor import registration

    with working("applying"), opened(loaded) as database:
        changes = registration.apply(database, loaded)
    for change in changes:
        say(f"{'•' if change.done else '!'} {change.kind} {change.name}: {change.what}")
    if not any(change.done for change in changes):
        say("nothing to do: the rows say what the configuration says")
