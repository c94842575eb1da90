"""The demo's story: a worker is killed at the worst moment, another one sleeps through losing its lease."""

import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TypeVar

from executor import operations
from executor.audit import audit, render
from executor.demo import processes, scene
from executor.demo.processes import Process
from executor.demo.scene import BONUS_TOKENS, LEASE_SECONDS, RENT_ETHER, WALLET, Scene
from executor.demo.telling import Teller
from executor.demo.witness import Ledger, Line, Rows
from executor.errors import ExecutorError, NotFine
from executor.units import format_wei, parse_wei

T = TypeVar("T")
_PATIENCE = 60.0
_REMOVAL_SECONDS = 5.0


def run(*, keep: bool = False) -> int:
    """Play the demo; the exit code: 0, 1 when something was not as promised, 130 after Ctrl-C.

    Everything lies in a temporary folder, which is removed unless `keep` or something went wrong.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    teller = Teller()
    folder = scene.make_folder()
    try:
        teller.say(f"An embedded PostgreSQL and a devnet with a block a second are starting in {folder}.")
        with scene.opened(folder, teller) as stage:
            clean = _Story(stage, teller).play()
        code = 0 if clean else 1
    except KeyboardInterrupt:
        teller.plain("Interrupted: every process is stopped, the folder is removed.")
        code = 130
    except ExecutorError as error:
        teller.plain(f"fenced demo: {error}", "red")
        code = 1
    if code == 1 or keep:
        teller.plain(f"The logs are in {folder}.")
    else:
        _remove(folder)
    return code


def _remove(folder: Path) -> None:
    """Remove everything; again while a database that was interrupted as it started still writes."""
    deadline = time.monotonic() + _REMOVAL_SECONDS
    shutil.rmtree(folder, ignore_errors=True)
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
        shutil.rmtree(folder, ignore_errors=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # once is enough: what follows is the cleaning up
    raise KeyboardInterrupt


class _Story:
    def __init__(self, stage: Scene, teller: Teller) -> None:
        self._stage, self._teller = stage, teller
        self._rows, self._ledger = Rows(stage.database), Ledger(stage.rpc, WALLET)
        self._gone: list[Process] = []

    def play(self) -> bool:
        """Tell it from beginning to end; whether every promise was kept."""
        say = self._teller.say
        say(
            f"They are up. One wallet, {WALLET[:10]}…, two strategies: rent (a plain transfer of {RENT_ETHER} ETH every 5 s) "
            f"and bonus (an ERC-20 transfer of {BONUS_TOKENS} DEMO every 10 s)."
        )
        first = self._enter("worker-1", "sign.stored:kill")
        self._wait_holder("worker-1")
        second = self._enter("worker-2", "reserve.prepared:stop")
        say(
            f"worker-1 holds the wallet's lease, {LEASE_SECONDS} s at a time. worker-2 has the same configuration and the "
            "same key, and waits. Slots fall on the clock, whoever works."
        )
        done = self._wait("the first payment to be final", lambda: _with(self._rows.lines(), state="SUCCEEDED"))[0]
        say(
            f"{done.strategy} of slot {_clock(done)} went out as nonce {done.nonce} and is in block {done.block_number}."
        )
        self._wait_ready("worker-2")
        self._kill(first)
        third = self._enter("worker-3", "")
        self._wait_ready("worker-3")
        say("worker-3 has joined and waits too.")
        self._oversleep(second)
        return self._close(third, second)

    def _kill(self, victim: Process) -> None:
        self._stage.arm(victim.name)
        self._gone.append(victim)
        self._wait("worker-1 to be killed between storing and sending", lambda: victim.ended)
        killed_at = time.monotonic()
        stored = _with(self._rows.lines(), status="SIGNED")
        received = self._ledger.received()
        if not stored or any(line.nonce in received for line in stored):
            raise NotFine("worker-1 did not end between storing and sending.")
        self._teller.say(
            f"worker-1 was killed (SIGKILL) after the signed bytes of {_nonces(stored)} were committed and before they were "
            "sent. Nobody was told. A cron job would now pay again, or never.",
            "yellow",
        )
        wanted = {line.nonce for line in stored}
        self._wait(
            f"worker-2 to take over and send {_nonces(stored)}",
            lambda: wanted <= {line.nonce for line in self._rows.lines() if line.sent_by == "worker-2"},
        )
        after = time.monotonic() - killed_at
        received = self._ledger.received()
        for line in stored:
            if set(received[line.nonce or 0]) != {line.raw}:
                raise NotFine(f"nonce {line.nonce} went out with other bytes than worker-1 had stored.")
        self._teller.say(
            f"worker-2 took the lease over and {after:.1f} s after the kill sent the very bytes that worker-1 had stored "
            f"({_short(stored[0].hash)}): read from the table, not planned, reserved or signed again. Same bytes, same hash: "
            "a chain takes them once, however often they arrive.",
            "green",
        )

    def _oversleep(self, sleeper: Process) -> None:
        say = self._teller.say
        self._stage.arm(sleeper.name)
        self._wait("worker-2 to be paused just before it reserves a nonce", lambda: sleeper.paused)
        say(
            "worker-2 is paused (SIGSTOP; a long garbage collection or a moved virtual machine look like this). It had "
            "checked its lease, planned a payment and was about to reserve the next nonce for it.",
            "yellow",
        )
        self._wait_holder("worker-3")
        mine = self._wait(
            "worker-3 to send that payment",
            lambda: _with(self._rows.lines(), planned_by=sleeper.name, sent_by="worker-3"),
        )[0]
        say(
            f"The lease ran out, worker-3 took it and has sent {mine.strategy} of slot {_clock(mine)} as nonce {mine.nonce}."
        )
        sleeper.resume()
        refusal = self._wait(
            "worker-2 to wake up and be refused",
            lambda: [found for found in self._rows.refusals() if found.worker == "worker-2"],
        )[0]
        say(
            f"worker-2 woke up and went on where it had stopped: reserve a nonce for the same slot. The database refused "
            f"({refusal.constraint}: {refusal.detail}). With a lock and a timeout this would have been the second payment.",
            "green",
        )

        following = self._wait(
            "the next slot",
            lambda: [line for line in _with(self._rows.lines(), state="SUCCEEDED") if line.slot > mine.slot],
        )[0]
        say(
            f"worker-2 stands by again; {following.strategy} of slot {_clock(following)} went out as nonce {following.nonce}, "
            "as if nothing had happened."
        )

    def _close(self, *remaining: Process) -> bool:
        for strategy in ("rent", "bonus"):
            operations.pause(self._stage.database, strategy, "the demo ends")
        self._wait("the last payments to be final", lambda: self._rows.live() == 0)
        lines, received = self._rows.lines(), self._ledger.received()
        sent = [line for line in lines if line.nonce is not None]
        for line in sent:
            if set(received.get(line.nonce or 0, ())) != {line.raw}:
                raise NotFine(f"the node got other bytes for nonce {line.nonce} than the table has.")
        if set(received) != {line.nonce for line in sent}:
            raise NotFine("the node got transactions that the table does not have.")
        arrivals = sum(map(len, received.values()))
        self._teller.say(
            f"Both strategies are paused. The node's own ledger: {arrivals} arrivals, {len(received)} different transactions, "
            f"one per nonce, each byte for byte the stored one. {self._owned(sent)}"
        )
        self._gone.extend(remaining)
        processes.stop(remaining, 10)
        self._table(lines)
        return self._audit()

    def _owned(self, sent: Sequence[Line]) -> str:
        """What the receivers have, against what the executions say."""
        rents, bonuses = len(_with(sent, strategy="rent")), len(_with(sent, strategy="bonus"))
        paid = self._ledger.balance(scene.LANDLORD)
        tokens = self._ledger.tokens(self._stage.token, scene.CREW) // 10**18
        if paid != rents * parse_wei(f"{RENT_ETHER} ether") or tokens != bonuses * BONUS_TOKENS:
            raise NotFine(f"{format_wei(paid)} and {tokens} DEMO arrived for {rents} rents and {bonuses} bonuses.")
        return f"The landlord has {rents} × {RENT_ETHER} ETH, the crew {bonuses} × {BONUS_TOKENS} DEMO: nothing twice, nothing lost."

    def _table(self, lines: Sequence[Line]) -> None:
        self._teller.plain()
        self._teller.table(
            ("slot", "strategy", "nonce", "hash", "block", "outcome", "planned by", "signed by", "sent by"),
            [
                [
                    _clock(line),
                    line.strategy,
                    *(_text(value) for value in (line.nonce, line.hash, line.block_number, line.state)),
                    *(_text(value) for value in (line.planned_by, line.signed_by, line.sent_by)),
                ]
                for line in lines
            ],
        )

    def _audit(self) -> bool:
        report = audit(self._stage.url, {scene.CHAIN_ID: [self._stage.endpoint]})
        self._teller.plain()
        if not report.clean:
            self._teller.plain(render(report), "red")
            return False
        counts = report.counts
        refused = sum(counts["stale_writes_refused"].values())
        self._teller.plain(
            f"audit: {counts['executions']} executions, {counts['transactions_mined']} transactions, each mined exactly once, "
            f"{'no hole' if not counts['holes'] else 'HOLES'} in the nonces, {refused} stale write{'s' * (refused != 1)} refused "
            f"by the database, {len(report.violations)} violations ({self._teller.seconds:.0f} s)",
            "bold green",
        )
        return True

    def _enter(self, name: str, crash: str) -> Process:
        return self._stage.worker(name, crash)

    def _wait_holder(self, name: str) -> None:
        self._wait(f"{name} to take the lease", lambda: self._rows.holder() == name)

    def _wait_ready(self, name: str) -> None:
        self._wait(f"{name} to come up", lambda: self._rows.ready(name))

    def _wait(self, what: str, look: Callable[[], T | None]) -> T:
        return self._teller.wait(what, look, _PATIENCE, lambda: self._stage.watch(*self._gone))


def _with(lines: Sequence[Line], **wanted: str) -> list[Line]:
    return [line for line in lines if all(getattr(line, name) == value for name, value in wanted.items())]


def _nonces(lines: Sequence[Line]) -> str:
    numbers = [str(line.nonce) for line in lines]
    return f"nonce{'s' * (len(numbers) > 1)} " + " and ".join(numbers)


def _clock(line: Line) -> str:
    return f"{line.slot:%H:%M:%S}"


def _short(value: bytes | None) -> str:
    return "-" if value is None else f"0x{value.hex()[:6]}…"


def _text(value: bytes | int | str | None) -> str:
    return _short(value) if isinstance(value, bytes | None) else str(value)
