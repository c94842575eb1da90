"""Scenes of the crash matrix: installations in which two workers surely reach a point, and what must have come of it.

A scene is laid (accounts, strategies, rows), opened (workers start; something happens until the point is reached), mended
once the worker there was struck, and judged by the chain: each step of each execution took effect as often as it should.
"""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from executor import operations
from executor.tenure import EXIT_UNTRUSTED
from tests.support.service import ETHER, Service, Wallet, fresh_address
from tests.support.worker_process import WorkerProcess

SECONDS = 90.0
"""How long a case waits for anything."""
_VALUE = ETHER // 100
_ENOUGH_FOR_ONE = _VALUE * 5 // 4
"""For a step and its gas, not for two."""


class Shape(StrEnum):
    """The kinds of plan."""

    ONE = "one step"
    FINAL = "three in order, after final"
    MINED = "three in order, after mined"
    TOGETHER = "three together"

    @property
    def is_ordered(self) -> bool:
        """Whether a step waits for the one before."""
        return self in {Shape.FINAL, Shape.MINED}


class Scene:
    """A payment that waits when two workers start, both armed. With `midway` a plan in order is struck in its second step."""

    settings: ClassVar[dict[str, str | int]] = {}
    """Of the strategy."""
    can_be_together: ClassVar[bool] = True

    def __init__(self, service: Service, arming: str, shape: Shape, midway: bool) -> None:
        self.service, self.shape = service, shape
        self.marker = service.directory / "crashed"
        self.wallet: Wallet
        self.receivers = [fresh_address() for _ in range(1 if shape is Shape.ONE else 3)]
        self.executions: list[str] = []
        self.foreign = 0
        service.expected_ends.add(EXIT_UNTRUSTED)
        self._arming = arming
        self._midway = midway and shape.is_ordered

    # What a scene may do otherwise

    def lay(self) -> None:
        """What there is before a worker starts."""
        self.wallet = self.service.account()
        self.service.strategy("rent", self.plan(), **self.settings)
        self.service.register()

    def open(self) -> None:
        """Bring the point about."""
        if self._midway:
            self.set_balance(_ENOUGH_FOR_ONE)
            self.marker.touch()
        self.trigger("one")
        self.start("first")
        self.start("second")
        if self._midway:
            self.wait(self._is_first_step_through, "the first step is through")
            self.marker.unlink()
            self.set_balance(100 * ETHER)

    def mend(self) -> None:
        """Put right what the scene had put wrong."""

    def settle(self) -> None:
        """Wait until everything has ended as it should."""
        for execution in self.executions:
            self.wait(lambda e=execution: self.service.execution(e)["ended_at"] is not None, f"{execution} ends")
            assert self.service.state(execution) == "SUCCEEDED", self.service.execution(execution)["reason"]

    def judge(self) -> None:
        """By the chain: every step of every execution took effect exactly once, and nothing else used the key."""
        paid = [self.service.balance(to) for to in self.receivers]
        assert paid == [_VALUE * len(self.executions)] * len(self.receivers), f"paid {paid}"
        nonce = self.service.nonce(self.wallet.address)
        assert nonce == len(self.receivers) * len(self.executions) + self.foreign, f"nonce {nonce}"
        for execution in self.executions:
            reserved = self.service.reservations(execution)
            assert [(r["step"], r["effect"]) for r in reserved] == [(s, True) for s in range(len(self.receivers))]

    # Parts

    def plan(self) -> str:
        """The body of the strategy."""
        calls = ", ".join(f"Call({to!r}, {_VALUE})" for to in self.receivers)
        match self.shape:
            case Shape.ONE:
                return f"return {calls}"
            case Shape.TOGETHER:
                return f"return together([{calls}])"
            case Shape.FINAL:
                return f"return in_order([{calls}])"
            case Shape.MINED:
                return f'return in_order([{calls}], after="mined")'

    def start(self, name: str) -> WorkerProcess:
        """Start a worker that is armed; whichever reaches the point first is struck."""
        return self.service.start_worker(name, self._arming, marker=self.marker)

    def trigger(self, key: str) -> str:
        """Ask for a run that must succeed."""
        self.executions.append(self.service.trigger("rent", key))
        return self.executions[-1]

    def set_balance(self, wei: int) -> None:
        """Give the wallet this much."""
        self.service.node.rpc("anvil_setBalance", self.wallet.address, hex(wei))

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Wait for long. A worker that ended itself because it was too slow for its lease is started again, as a service would be."""

        def look() -> object:
            for worker in [w for w in self.service.workers if w.exit_code == EXIT_UNTRUSTED]:
                self.service.workers.remove(worker)
                self.start(worker.name)
            return condition()

        self.service.wait(look, what, SECONDS)

    def wait_seeded(self) -> None:
        """Wait until a worker has taken the account for the first time and compared everything."""
        self.wait(lambda: self.service.account_row()["first_nonce"] is not None, "the account is reconciled")

    def reopen(self) -> None:
        """Let an operator open the halted account again, and wait until the holder has done it."""
        self.wait(lambda: self.service.account_row()["state"] == "halted", "the account is halted")
        asked = operations.ask_reopen(self.service.database, "treasury", "it was a false alarm", "test")
        answer = "SELECT granted FROM request WHERE request_id = %s AND answered_at IS NOT NULL"
        self.wait(lambda: self.service.value(answer, asked.request_id) is not None, "the request is answered")
        assert self.service.value(answer, asked.request_id), self.service.rows("SELECT * FROM request")

    def _is_first_step_through(self) -> bool:
        (first, *_) = [*self.service.reservations(self.executions[0]), {"state": None}]
        if self.shape is Shape.FINAL:
            return bool(first["state"] == "CLOSED")
        return [a["status"] for a in self.service.attempts(self.executions[0])[:1]] in (["MINED"], ["FINAL"])


class Scheduled(Scene):
    """Slots of a schedule fall due; once something was paid, the strategy is paused and what runs ends."""

    settings: ClassVar[dict[str, str | int]] = {"every": "2s", "misfire": "latest"}

    def open(self) -> None:
        self.start("first")
        self.start("second")

    def settle(self) -> None:
        succeeded = "SELECT execution_id FROM execution WHERE state = 'SUCCEEDED'"
        self.wait(lambda: self.service.rows(succeeded), "a slot is paid")
        operations.pause(self.service.database, "rent", "the test has seen enough")
        self.wait(lambda: self.service.value("SELECT bool_and(ended_at IS NOT NULL) FROM execution"), "all slots ended")
        self.executions = [row["execution_id"] for row in self.service.rows(succeeded)]
        other = self.service.rows(
            "SELECT execution_id, state FROM execution WHERE state NOT IN ('SUCCEEDED', 'SKIPPED')"
        )
        assert other == []


class Expired(Scene):
    """Beside the payment an execution of another strategy whose start deadline passes before a worker is there."""

    def lay(self) -> None:
        self.wallet = self.service.account()
        self.never = fresh_address()
        self.service.strategy("late", f"return Call({self.never!r}, {_VALUE})", start_deadline="1s")
        self.service.strategy("rent", self.plan())
        self.service.register()

    def open(self) -> None:
        late = self.service.trigger("late", "one")
        over = "SELECT expires_at <= clock_timestamp() FROM execution WHERE execution_id = %s"
        self.wait(lambda: self.service.value(over, late), "the start deadline passes")
        super().open()

    def judge(self) -> None:
        super().judge()
        assert self.service.state("late/id/one") == "SKIPPED"
        assert self.service.balance(self.never) == 0


class Unfunded(Scene):
    """The wallet has nothing, so that the payment waits."""

    def open(self) -> None:
        self.set_balance(0)
        super().open()

    def mend(self) -> None:
        self.set_balance(100 * ETHER)


class CodeAtAddress(Scene):
    """There is code at the wallet's address when the first holder looks."""

    def open(self) -> None:
        self.service.node.rpc("anvil_setCode", self.wallet.address, "0x00")
        super().open()

    def mend(self) -> None:
        self.service.node.rpc("anvil_setCode", self.wallet.address, "0x")
        self.reopen()


class NonceAhead(Scene):
    """The chain counts more than the rows when the payment is to get its nonce, and takes that back later."""

    def open(self) -> None:
        self.start("first")
        self.start("second")
        self.wait_seeded()
        self.service.node.rpc("anvil_setNonce", self.wallet.address, hex(3))
        self.trigger("one")

    def mend(self) -> None:
        self.service.node.rpc("anvil_setNonce", self.wallet.address, hex(0))
        self.reopen()


class JournalStray(Scene):
    """The signer has bound the first nonce to something else than the rows say, until a superuser takes that away."""

    def open(self) -> None:
        self.start("first")
        self.start("second")
        self.wait_seeded()
        self._as_superuser(
            "INSERT INTO signer.binding (chain_id, address, nonce, execution_id, step, digest, tx_type, state)"
            " SELECT chain_id, address, 0, 'stray/id/one', 0, sha256('stray'), 2, 'intent' FROM signer.account"
        )
        self.trigger("one")

    def mend(self) -> None:
        self._as_superuser("DELETE FROM signer.binding WHERE execution_id = 'stray/id/one'")
        self.reopen()

    def _as_superuser(self, statement: str) -> None:
        kept = "SELECT tgname AS name, tgenabled FROM pg_trigger WHERE tgrelid = 'signer.binding'::regclass AND tgenabled = 'A'"
        always = [row["name"] for row in self.service.rows(kept)]
        with self.service.database.transaction() as tx:
            tx.exec_driver_sql("ALTER TABLE signer.binding DISABLE TRIGGER ALL")
            assert tx.exec_driver_sql(statement).rowcount == 1
            tx.exec_driver_sql("ALTER TABLE signer.binding ENABLE TRIGGER ALL")
            for name in always:
                tx.exec_driver_sql(f"ALTER TABLE signer.binding ENABLE ALWAYS TRIGGER {name}")


class UsedElsewhere(Scene):
    """The nonce of the first payment is used behind the executor's back, whose own bytes never reach the node."""

    can_be_together = False
    """The other nonces would wait for ever."""

    def open(self) -> None:
        self.service.proxy.refuse_sends()
        self.parked = self.service.trigger("rent", "zero")
        self.start("first")
        self.start("second")
        self.wait(lambda: self.service.proxy.sent, "the first payment is to be sent")
        self.service.node.rpc("eth_sendRawTransaction", "0x" + self.wallet.sign(0, fresh_address()).hex())
        self.foreign = 1

    def mend(self) -> None:
        self.wait(lambda: self.service.state(self.parked) == "PARKED", f"{self.parked} waits for a person")
        self.service.proxy.allow_sends()
        self.trigger("one")

    def judge(self) -> None:
        super().judge()
        assert self.service.state(self.parked) == "PARKED"
        assert [r["closed_as"] for r in self.service.reservations(self.parked)] == ["foreign"]


class OtherRevision(Scene):
    """The first worker has an older revision of the strategy than the payment and gives the account back."""

    def open(self) -> None:
        self.start("first")
        self.service.wait_held_by("first", SECONDS)
        module: Path = self.service.directory / "rent.py"
        module.write_text(module.read_text() + "\n# a new revision\n")
        self.service.register()
        self.trigger("one")

    def mend(self) -> None:
        self.start("second")


class AskedToEnd(Scene):
    """The holder is asked to end, which is when leases are released."""

    def open(self) -> None:
        super().open()
        holder = "SELECT holder FROM lease WHERE expires_at > clock_timestamp()"
        self.wait(lambda: self.service.value(holder), "a worker holds the account")
        name = self.service.value(holder)
        next(worker for worker in self.service.workers if worker.name == name).terminate()
