"""The connection is cut around a COMMIT, before it arrived or after it took effect, at each write there is (P12, G8).

One worker per lane; each case arms one cut, asks for a payment, and waits until it is done, once.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from executor import embedded, triggering
from executor.database import CommitUnknown, Database
from executor.errors import Unreachable
from tests.support.database_proxy import DatabaseProxy, Side
from tests.support.devnet import NodeProcess
from tests.support.postgres import plain_connection
from tests.support.service import ETHER, PATIENCE_SECONDS, Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("database-cuts"), pytest.mark.timeout(300)]
WRITES = {
    "plan counted": "planning_attempts = planning_attempts + 1",
    "planned": "plan_order = r.plan_order",
    "reserved": "INSERT INTO nonce_reservation",
    "journal ordered": "INSERT INTO signer.signature",
    "journal stored": "UPDATE signer.signature",
    "signed": "signed_at = clock_timestamp()",
    "sent": "INSERT INTO broadcast",
    "mined": "INSERT INTO receipt",
    "final": "SET status = 'FINAL'",
    "reconciled": "reconciled_at = clock_timestamp()",
    "lease acquired": "INSERT INTO lease_generation",
    "lease renewed": "UPDATE lease l SET renewed_at",
    "worker seen": "INSERT INTO worker",
    "slots looked at": "UPDATE strategy SET high_water_mark",
}
"""Each write by a text that only its statement has."""
SIDES: tuple[Side, ...] = ("before", "after")
CASES = [(write, side) for write in WRITES for side in SIDES]
_AT_TAKEOVER = {"reconciled", "lease acquired"}
_WITHOUT_LEASE = {"slots looked at"}
_LANES = 4
_VALUE = ETHER // 1000


def _name(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


class Lane:
    """One installation whose worker reaches its database through a proxy of its own."""

    def __init__(
        self,
        number: int,
        directory: Path,
        node: NodeProcess,
        proxy: DatabaseProxy,
        url: str,
        cases: list[tuple[str, Side]],
    ) -> None:
        self.proxy = proxy
        self.worker = f"w{number}"
        self.left = list(cases)
        self.service = Service(directory, node, url, worker_database_url=proxy.url(_name(url)))
        self.service.account()
        self.to = self.service.pays("rent", value=_VALUE)
        if _WITHOUT_LEASE & {write for write, _ in cases}:
            self.service.strategy("clock", "return nothing('only the slots matter')", every="1s", misfire="all")
        self.paid = 0

    def begin(self) -> None:
        self.service.register()
        self.service.start_worker(self.worker)
        self.service.wait_held_by(self.worker)

    def run(self, write: str, side: Side) -> None:
        service = self.service
        before = service.value("SELECT max(token) FROM lease_generation")
        cut = self.proxy.cut(WRITES[write], side)
        if write in _AT_TAKEOVER:
            service.rows("UPDATE lease SET expires_at = clock_timestamp() - interval '1 ms' RETURNING 1")
        execution = service.trigger("rent", f"{write}-{side}".replace(" ", "-"))
        assert cut.fired.wait(PATIENCE_SECONDS), f"no such COMMIT: {write}\n{service.describe()}"
        service.wait_state(execution, "SUCCEEDED")
        self.paid += 1
        assert service.balance(self.to) == self.paid * _VALUE
        assert len(service.attempts(execution)) == 1
        if write not in _WITHOUT_LEASE:
            service.wait(
                lambda: service.value("SELECT max(token) FROM lease_generation") > before, "the lease was dropped"
            )


@pytest.fixture(scope="module")
def outcomes(
    postgres_server: embedded.Server,
    database_template: str,
    node: NodeProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[tuple[str, Side], Exception | None]]:
    """What became of each case: None, or what went wrong. The lanes are judged as wholes at the end."""
    found: dict[tuple[str, Side], Exception | None] = {}
    with ExitStack() as stack:
        lanes = []
        for number in range(_LANES):
            name = f"cuts_{number}"
            with plain_connection(postgres_server.conninfo("postgres")) as connection:
                connection.execute(f"CREATE DATABASE {name} TEMPLATE {database_template}")  # type: ignore[call-overload]
            proxy = stack.enter_context(DatabaseProxy(postgres_server))
            url = postgres_server.url(name)
            directory = tmp_path_factory.mktemp("lane")
            lanes.append(Lane(number, directory, node, proxy, url, CASES[number::_LANES]))
            stack.callback(lanes[-1].service.close)

        def work(lane: Lane) -> None:
            lane.begin()
            while lane.left:
                case = lane.left.pop(0)
                try:
                    lane.run(*case)
                    found[case] = None
                except Exception as error:
                    found[case] = error
                    raise

        with ThreadPoolExecutor(_LANES) as pool:
            works = [pool.submit(work, lane) for lane in lanes]
        for lane, work_done in zip(lanes, works, strict=True):
            failed = work_done.exception()
            if failed is None:
                lane.service.finish()
            else:
                found |= {case: AssertionError(f"the lane had failed before: {failed}") for case in lane.left}
        yield found


@pytest.mark.parametrize(("write", "side"), CASES)
def test_a_cut_connection_loses_nothing_and_repeats_nothing(
    outcomes: dict[tuple[str, Side], Exception | None], write: str, side: Side
) -> None:
    found = outcomes[write, side]
    if found is not None:
        raise found


@pytest.mark.parametrize("side", SIDES)
def test_a_trigger_whose_commit_is_unknown_says_so_and_asking_again_is_one_run(
    postgres_server: embedded.Server, database_url: str, node: NodeProcess, tmp_path: Path, side: Side
) -> None:
    with Service(tmp_path, node, database_url) as service, DatabaseProxy(postgres_server) as proxy:
        service.account()
        service.pays("rent")
        service.register()
        database = Database(proxy.url(_name(database_url)), "asker")
        cut = proxy.cut("INSERT INTO execution", side, "asker")
        with pytest.raises(CommitUnknown, match="a COMMIT did not answer"):
            triggering.trigger(database, "rent", key="one")
        assert cut.fired.is_set()
        assert triggering.trigger(database, "rent", key="one").recorded == (side == "before")
        assert service.value("SELECT count(*) FROM execution") == 1
        database.close()


def test_a_connection_that_ends_while_it_is_looked_at_is_no_answer(
    database_url: str, postgres_server: embedded.Server
) -> None:
    """SQLAlchemy wraps nothing there, and a command would end in a traceback."""
    with DatabaseProxy(postgres_server) as proxy:
        cut = proxy.cut("SELECT pg_backend_pid()", "instead")
        database = Database(proxy.url(_name(database_url)), "asker")
        with pytest.raises(Unreachable, match="does not answer"), database.read():
            pass
        assert cut.fired.is_set()
        with database.read() as tx:
            assert tx.exec_driver_sql("SELECT 1").scalar_one() == 1
        database.close()
