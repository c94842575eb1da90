"""Alembic environment: forward only, one transaction for all pending revisions, DDL under a lock timeout."""

from alembic import context
from sqlalchemy import create_engine, pool, text


def run() -> None:
    url = context.config.get_main_option("sqlalchemy.url")
    engine = create_engine(url, poolclass=pool.NullPool)
    with engine.connect() as connection:
        context.configure(connection=connection, transactional_ddl=True)
        with context.begin_transaction():
            # For this transaction only: behind a pooler a session's setting would stay for others.
            connection.execute(text("SET LOCAL lock_timeout = '3s'"))
            # Two migrations at once: the second waits here and finds nothing left to do.
            connection.execute(text("SELECT pg_advisory_xact_lock(7310874312)"))
            context.run_migrations()


run()
