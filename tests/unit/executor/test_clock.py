"""What becomes of the database's clock in the eyes of one worker, of several, and of one that starts in the middle of a step."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.clock import (
    AGREEING,
    BEHIND_SECONDS,
    SPACING_SECONDS,
    TOLERANCE_SECONDS,
    ClockJudge,
    ClockLook,
    ClockVerdict,
)
from executor.stages import plan
from executor.store import executions

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = 3600.0


@dataclass
class Installation:
    """A database whose clock a test sets, the row all workers share, and their judges. Real time only moves in `passes`."""

    real: float = 1000.0
    offset: float = 0.0
    max_seen: datetime = START + timedelta(seconds=1000)
    is_doubted: bool = False
    judges: dict[str, ClockJudge] = field(default_factory=dict)
    trusted: list[datetime] = field(default_factory=list)

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self.real + self.offset)

    def passes(self, seconds: float = SPACING_SECONDS) -> None:
        self.real += seconds

    def look(self, worker: str = "a", latency: float = 0.002) -> ClockVerdict:
        """A worker looks, and notes in the row what a guard would."""
        before = self.real
        self.real += latency / 2
        now, seen, doubted = self.now, self.max_seen, self.is_doubted
        self.real += latency / 2
        verdict = self.judges.setdefault(worker, ClockJudge()).judge(ClockLook(now, before, self.real, seen, doubted))
        if verdict.anomaly is not None:
            self.is_doubted = True
        if verdict.resumes:
            self.is_doubted, self.max_seen = False, now
        elif verdict.is_trusted:
            self.max_seen = max(self.max_seen, now)
        return verdict

    def looks_until_trusted(self, worker: str = "a") -> int:
        """How many looks it takes. Raises AssertionError where it takes more than ten."""
        for count in range(1, 11):
            if self.look(worker).is_trusted:
                return count
            self.passes()
        raise AssertionError("in doubt for more than ten looks")


def test_a_clock_that_runs_evenly_is_believed() -> None:
    db = Installation()
    for _ in range(100):
        assert db.look() == ClockVerdict(is_trusted=True)
        db.passes()
    assert db.now - db.max_seen < timedelta(seconds=1)


@pytest.mark.parametrize("jump", [-2 * HOUR, -5.0, 5.0, 2 * HOUR, 73 * 365 * 24 * HOUR])
def test_a_step_for_good_is_doubted_for_three_looks_however_far_it_went(jump: float) -> None:
    db = Installation()
    db.look()
    db.passes()
    db.offset = jump
    first = db.look()
    assert not first.is_trusted
    assert first.anomaly is not None
    assert f"stepped {'forward' if jump > 0 else 'back'} by {abs(jump):.1f} s" in first.anomaly
    db.passes()
    assert db.looks_until_trusted() == AGREEING
    assert not db.is_doubted
    assert abs(db.now - db.max_seen) < timedelta(seconds=1), "the newest instant seen is of after the step"
    for _ in range(10):
        assert db.look() == ClockVerdict(is_trusted=True), "told once"
        db.passes()


def test_a_glitch_forward_and_back_leaves_no_poison() -> None:
    db = Installation()
    db.look()
    db.passes()
    db.offset = 2 * HOUR
    assert not db.look().is_trusted
    db.passes()
    db.offset = 0.0
    again = db.look()
    assert again.anomaly is not None
    assert "stepped back" in again.anomaly
    db.passes()
    assert db.looks_until_trusted() == AGREEING
    assert db.max_seen <= db.now
    assert ClockJudge().judge(ClockLook(db.now, 0, 0, db.max_seen, db.is_doubted)).is_trusted, (
        "a new worker starts at once"
    )


def test_a_glitch_that_only_a_new_worker_saw_is_forgotten_with_it() -> None:
    db = Installation()
    db.look("old")
    db.offset = 2 * HOUR
    assert db.look("new").is_trusted, "there is nothing to compare with"
    db.offset = 0.0
    db.passes()
    told = db.look("old").anomaly
    assert told is not None
    assert "behind what a worker has seen before" in told
    db.passes()
    assert db.looks_until_trusted("old") == AGREEING
    assert db.max_seen <= db.now


@pytest.mark.parametrize("jump", [-2 * HOUR, 2 * HOUR])
def test_a_worker_that_starts_in_the_middle_joins_the_doubt(jump: float) -> None:
    db = Installation()
    db.look("old")
    db.passes()
    db.offset = jump
    db.look("old")
    db.passes()
    assert not db.look("new").is_trusted
    db.offset = 0.0
    db.passes()
    assert not db.look("new").is_trusted
    db.passes()
    assert db.looks_until_trusted("new") == AGREEING
    assert db.looks_until_trusted("old") <= AGREEING + 1


def test_a_worker_that_starts_after_a_step_back_with_nobody_else_alive_works_soon() -> None:
    db = Installation()
    db.look("old")
    del db.judges["old"]
    db.offset = -2 * HOUR
    first = db.look("new")
    assert first.anomaly is not None
    db.passes()
    assert db.looks_until_trusted("new") == AGREEING


def test_a_worker_that_died_in_doubt_holds_nobody_up() -> None:
    db = Installation()
    db.look("old")
    db.offset = HOUR
    db.look("old")
    del db.judges["old"]
    assert db.is_doubted
    assert not db.look("new").is_trusted
    db.passes()
    assert db.looks_until_trusted("new") == AGREEING
    assert not db.is_doubted


def test_one_worker_in_doubt_does_not_stop_another_that_saw_nothing() -> None:
    """A virtual machine that was paused counts too little, and that is its own affair."""
    db = Installation()
    db.look("fine")
    db.judges["paused"] = ClockJudge()
    db.judges["paused"].judge(ClockLook(db.now, db.real, db.real, db.max_seen, is_doubted=False))
    paused = db.judges["paused"].judge(
        ClockLook(db.now + timedelta(hours=1), db.real + 1, db.real + 1, db.max_seen, is_doubted=False)
    )
    assert paused.anomaly is not None
    db.is_doubted = True
    db.passes(HOUR)
    assert db.look("fine").is_trusted


def test_a_machine_asleep_and_a_slow_answer_are_no_steps() -> None:
    db = Installation()
    db.look()
    db.passes(HOUR)  # suspended: boottime counts it
    assert db.look().is_trusted
    db.passes(HOUR)
    assert db.look(latency=30.0).is_trusted, "the clock was read at any moment of these 30 s"
    assert db.look(latency=30.0).is_trusted


@pytest.mark.parametrize("per_minute", [-1.0, 1.0])
def test_a_slewed_clock_is_believed(per_minute: float) -> None:
    """[B89] 1 s a minute."""
    db = Installation()
    for _ in range(2000):
        assert db.look().is_trusted
        db.passes()
        db.offset += per_minute * SPACING_SECONDS / 60


def test_a_step_back_is_told_once_though_the_row_cannot_be_written() -> None:
    judge = ClockJudge()
    told = []
    for second in range(2, 20):
        now = START + timedelta(seconds=second - (HOUR if second > 2 else 0))
        told.append(judge.judge(ClockLook(now, second, second, START + timedelta(seconds=2), is_doubted=False)))
    assert sum(verdict.anomaly is not None for verdict in told) == 1
    assert told[-1] == ClockVerdict(is_trusted=True)


def test_looks_in_quick_succession_count_as_one() -> None:
    db = Installation()
    db.look()
    db.offset = HOUR
    db.look()
    for _ in range(50):
        assert not db.look(latency=0.0).is_trusted
    db.passes()
    assert db.looks_until_trusted() == AGREEING


def test_two_threads_may_hand_in_their_looks_in_the_wrong_order() -> None:
    judge = ClockJudge()
    looks = [
        ClockLook(START + timedelta(seconds=t), t, t + 0.01, START, is_doubted=False) for t in (0.0, 5.0, 2.0, 6.0)
    ]
    assert all(judge.judge(look).is_trusted for look in looks)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.floats(0.001, 30.0),
            st.one_of(st.just(0.0), st.just(0.0), st.floats(-1e8, 1e8)),
            st.floats(0.0, 3.0),
            st.booleans(),
        ),
        max_size=40,
    )
)
def test_whatever_happens_no_step_is_acted_on_at_once_and_no_doubt_lasts(
    history: Sequence[tuple[str, float, float, float, bool]],
) -> None:
    db = Installation()
    offsets: dict[str, float] = {}
    for worker, pause, jump, latency, restarts in history:
        db.passes(pause)
        db.offset += jump
        if restarts:
            db.judges.pop(worker, None)
            offsets.pop(worker, None)
        verdict = db.look(worker, latency)
        moved = abs(db.offset - offsets.get(worker, db.offset))
        if moved > TOLERANCE_SECONDS + 6.5 + 0.01 * 1300:  # both latencies, and the share of the longest history
            assert not verdict.is_trusted, "a worker acts on no step that it can see"
            assert verdict.anomaly is not None
        offsets[worker] = db.offset
    for _ in range(2 * AGREEING + 4):
        db.passes()
        verdicts = [db.look(worker) for worker in ("a", "b", "c")]
    assert all(verdict == ClockVerdict(is_trusted=True) for verdict in verdicts)
    assert not db.is_doubted
    assert (db.max_seen - db.now).total_seconds() <= BEHIND_SECONDS


def test_no_retry_is_put_off_longer_than_the_rows_are_believed() -> None:
    assert max(plan._RETRY_SECONDS) <= executions.LONGEST_RETRY_SECONDS
