"""The rows, the wall and the signer's journal. Oldest worker release that may run on it: 0.1.0 (epoch 1)."""

from executor.migration import run_sql

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_sql(
        revision,
        [
            "tables",
            "hold",
            "guard",
            "transitions",
            "history",
            "signer_tables",
            "signer_functions",
            "signer_triggers",
            "installation",
        ],
    )
