"""Fixtures every test may ask for: the real PostgreSQL and databases on it."""

from tests.support.postgres import database_template, database_url, empty_database, make_database, postgres_server

__all__ = ["database_template", "database_url", "empty_database", "make_database", "postgres_server"]
