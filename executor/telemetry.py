"""Logs as JSON lines and counters for Prometheus. No secret, no signed bytes, no locals of a traceback ever."""

import logging
import sys
from typing import TextIO

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry()
SENT = Counter(
    "fenced_transactions_handed_over", "Transactions handed to nodes, repeats included", ["account"], registry=REGISTRY
)
ENDED = Counter(
    "fenced_executions_ended", "Executions that reached an end on chain", ["account", "state"], registry=REGISTRY
)
MATERIALISED = Counter("fenced_slots", "Slots turned into executions", ["strategy", "state"], registry=REGISTRY)
PLANNED = Counter("fenced_executions_planned", "Executions whose plan was looked at", ["account"], registry=REGISTRY)
REFUSED = Counter(
    "fenced_stale_writes_refused",
    "Writes the database or signer refused to a stale worker",
    ["constraint"],
    registry=REGISTRY,
)
CLOCK_ANOMALIES = Counter(
    "fenced_db_clock_anomaly", "Times this worker saw the database's clock step", registry=REGISTRY
)
CLOCK_OFFSET = Gauge(
    "fenced_db_clock_offset_seconds",
    "This machine's wall clock minus the database's; for people, it decides nothing",
    registry=REGISTRY,
)
LEASES = Gauge("fenced_leases_held", "Accounts this worker holds", registry=REGISTRY)
TICK = Histogram("fenced_tick_seconds", "Time of one account tick", registry=REGISTRY)
FAILURES = Counter("fenced_tick_failures", "Ticks that ended with an error", ["kind"], registry=REGISTRY)


def configure_logging(stream: TextIO = sys.stderr, *, level: int = logging.INFO, worker: str = "") -> None:
    """One JSON object per line on `stream`: time (UTC), level, event, worker, and the fields of the event."""
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]

    def add_worker(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        return {"worker": worker, **event} if worker else event

    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, add_worker],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(default=str),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("fenced").setLevel(level)
