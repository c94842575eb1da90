"""Rewinds and copies are noticed, parked and released; the database's clock is watched. Oldest worker release: 0.2.0 (epoch 2)."""

from executor.migration import run_sql

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run_sql(revision, ["rewind", "acknowledged", "resolve", "clock_guard"])
