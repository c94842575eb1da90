"""Which crash point is reached by which scene, and what the matrix makes of it: one row for each point."""

from dataclasses import dataclass
from enum import StrEnum

from executor.crashpoints import CrashPoint
from tests.process import crash_scenes as scenes

P = CrashPoint


class Action(StrEnum):
    """What becomes of the worker at the point."""

    KILL = "kill"
    STOP = "stop"
    EXIT = "exit"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class Row:
    """How a point is reached.

    `midway`: a plan in order is struck in its second step. `refused`: a worker that is frozen there and thawed after
    another has gone on writes something stale, which must be refused; `one_step` says that only a plan of one step surely
    leaves it something to write.
    """

    scene: type[scenes.Scene] = scenes.Scene
    midway: bool = False
    refused: bool = False
    one_step: bool = False


TABLE: dict[CrashPoint, Row] = {
    P.SCHEDULE_COMPUTED: Row(scenes.Scheduled),
    P.SCHEDULE_RECORDED: Row(scenes.Scheduled),
    P.PLAN_EXPIRED: Row(scenes.Expired),
    P.PLAN_COUNTED: Row(refused=True),
    P.PLAN_MADE: Row(refused=True),
    P.PLAN_RECORDED: Row(),
    P.RESERVE_PREPARED: Row(midway=True, refused=True),
    P.RESERVE_WAITING: Row(scenes.Unfunded),
    P.RESERVE_RECORDED: Row(midway=True),
    P.RESERVE_HALTED: Row(scenes.NonceAhead),
    P.SIGN_SELECTED: Row(midway=True, refused=True),
    P.SIGN_JOURNALING: Row(midway=True),
    P.SIGN_JOURNALED: Row(midway=True, refused=True),
    P.SIGN_MADE: Row(midway=True, refused=True),
    P.SIGN_KEEPING: Row(midway=True),
    P.SIGN_KEPT: Row(midway=True, refused=True),
    P.SIGN_SIGNED: Row(midway=True, refused=True),
    P.SIGN_STORED: Row(midway=True),
    P.SIGN_HALTED: Row(scenes.JournalStray),
    P.BROADCAST_SELECTED: Row(midway=True, refused=True),
    P.BROADCAST_SENT: Row(midway=True, refused=True),
    P.BROADCAST_RECORDED: Row(midway=True),
    P.CONFIRM_SEEN: Row(midway=True, refused=True, one_step=True),
    P.CONFIRM_RECORDED: Row(midway=True),
    P.FINALIZE_SEEN: Row(midway=True, refused=True, one_step=True),
    P.FINALIZE_RECORDED: Row(midway=True),
    P.RECONCILE_FENCED: Row(refused=True),
    P.RECONCILE_SEEN: Row(refused=True),
    P.RECONCILE_HALTED: Row(scenes.CodeAtAddress),
    P.RECONCILE_FOREIGN_SEEN: Row(scenes.UsedElsewhere, refused=True),
    P.RECONCILE_FOREIGN_CLOSED: Row(scenes.UsedElsewhere, refused=True),
    P.RECONCILE_RECORDED: Row(),
    P.LEASE_SELECTED: Row(),
    P.LEASE_ACQUIRING: Row(),
    P.LEASE_ACQUIRED: Row(),
    P.LEASE_RENEWING: Row(midway=True),
    P.LEASE_RENEWED: Row(midway=True),
    P.LEASE_RETURNING: Row(scenes.OtherRevision),
    P.LEASE_RETURNED: Row(scenes.OtherRevision),
    P.LEASE_RELEASING: Row(scenes.AskedToEnd),
    P.LEASE_RELEASED: Row(scenes.AskedToEnd),
    P.RECORD_HELD: Row(midway=True),
    P.RECORD_WRITTEN: Row(midway=True),
    P.RECORD_COMMITTED: Row(midway=True),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One cell of the matrix."""

    point: CrashPoint
    action: Action
    shape: scenes.Shape

    @property
    def row(self) -> Row:
        """How the point is reached."""
        return TABLE[self.point]

    @property
    def wants_refusal(self) -> bool:
        """Whether what the worker writes after it was thawed must show as refused."""
        is_sure = self.shape is scenes.Shape.ONE or not self.row.one_step
        return self.action is Action.STOP and self.row.refused and is_sure

    def __str__(self) -> str:
        return f"{self.point} × {self.action} × {self.shape}"


def cases_of(point: CrashPoint) -> list[Case]:
    """The eight cases of a point: each action on a plan of one step and on one of three, whose kinds take turns."""
    threes = [scenes.Shape.FINAL, scenes.Shape.MINED, scenes.Shape.TOGETHER]
    if not TABLE[point].scene.can_be_together:
        threes.remove(scenes.Shape.TOGETHER)
    turn = list(CrashPoint).index(point)
    return [
        Case(point, action, shape)
        for number, action in enumerate(Action)
        for shape in (scenes.Shape.ONE, threes[(turn + number) % len(threes)])
    ]
