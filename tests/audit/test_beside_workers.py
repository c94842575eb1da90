"""An audit beside a working worker sees every row in some legal state: what is half way is no violation."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from executor.audit import audit
from tests.support.devnet import start_devnet
from tests.support.service import CHAIN_ID, ETHER, Service, fresh_address

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("audit-beside-workers")]
_RUNS = 40


@pytest.fixture
def service(tmp_path: Path, database_url: str) -> Iterator[Service]:
    with start_devnet("--block-time", "0.3") as node, Service(tmp_path, node, database_url) as service:
        yield service


def test_an_audit_beside_a_working_worker_is_clean(service: Service) -> None:
    service.account()
    to = fresh_address()
    service.strategy("one", f"return Call({to!r}, {ETHER // 1000})")
    service.strategy("steps", f"return in_order([Call({to!r}, 1), Call({to!r}, 2)])")
    service.register()
    service.start_worker("first")
    asked = [service.trigger(("one", "steps")[n % 2], f"run{n}", None) for n in range(_RUNS)]
    states: set[str] = set()
    audits = 0
    while any(service.state(one) != "SUCCEEDED" for one in asked):
        report = audit(service.database_url, {CHAIN_ID: [service.node.url]})
        assert report.clean, report.violations
        states |= report.counts["executions_by_state"].keys()
        audits += 1
    assert audits > 1
    assert {"RUNNING", "SUCCEEDED"} <= states | {"SUCCEEDED"}
