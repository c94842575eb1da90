"""The wrong builds: the 39 rows of the mutation table, and wrong readings the law closes, each with where it is caught.

`law` is what a build breaks that is right in everything else, with the signer's journal and without (None: it needs the
journal). `table` is what the red team's table says. Its model read the protocol before three of the rules that its
findings led to (READING); where the table names something that only that reading can break, the row says so in `why`,
and `reading` has what the model finds under it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.model.build import ALL_FENCES, Build, Scenario

READING = {
    "foreign_evidence": "digest",
    "guard_refusal": "ignore",
    "sends_prefix": False,
    "judges_drafts": True,
    "compares_before_cancel": False,
    "halts_on_lost_bytes": False,
    "witness": "none",
}
"""Before P5 asked the journal for the hash, P6 halted on a guard refusal, broadcast took the contiguous prefix, drafts
were signed before they were judged, lost bytes halted, an operator's cancel waited for a comparison, and P14 kept a witness."""

Pair = tuple[str, str | None]
"""Kinds of violation with the signer's journal and without, as words; None where the row needs the journal."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong build: what it changes, where it is caught, and what it breaks."""

    row: str
    wrong: str
    change: Mapping[str, object]
    scenario: Scenario
    law: Pair
    table: Pair
    reading: Pair | None = None
    excused: Pair = ("", "")
    """What the table names and neither finds."""
    why: str = ""
    shown_by: str = ""
    """For those that survive by right: the row beside it that says why."""

    def build(self, *, journal: bool, reading: bool = False) -> Build:
        """The build, on the law or on the red team's reading."""
        return Build(journal=journal, **{**(READING if reading else {}), **self.change})  # type: ignore[arg-type]  # data

    @property
    def survives(self) -> bool:
        """Whether it is right after all."""
        return self.law == ("", "")


def kinds(words: str | None) -> frozenset[str]:
    """The kinds of violation that a pair's words name."""
    return frozenset(word.strip() for word in (words or "").split(",") if word.strip())


_ONE = Scenario("one execution", (1,), reorg=True)
_ALONE = Scenario("one execution, one worker", (1,), workers=1, reorg=True)
_THREADS = Scenario("threads of one holder", (1,), threads=True, reorg=True)
_BUMP = Scenario("bump", (1,), workers=1, bump=True)
_FOREIGN = Scenario("foreign use", (1,), workers=1, foreign=True, reorg=True, evict=True)
_CANCEL = Scenario("cancel", (1,), workers=1, cancel=1)
_RELEASE = Scenario("two, one is cancelled", workers=1, cancel=1)
_POLICY = Scenario("policy", (1,), workers=1, policy=True)
_RESTORED = Scenario("rows restored unseen", workers=1, restore="quiet", splits_sign=False)
_RESTORED_TWO = Scenario("rows restored unseen, two workers", (1,), restore="quiet", splits_send=True)
_RESTORED_CANCEL = Scenario("rows restored unseen, cancel", (1,), workers=1, restore="quiet", cancel=1)
_REOPENED = Scenario("reopened, a wrong word", (1,), workers=1, restore="timeline", reopen=True, wrong_word=True)
_BUMP_TWO = Scenario("bump, two workers", (1,), bump=True, reorg=True)
_BUMP_SPLIT = Scenario("bump, two workers, split sends", (1,), bump=True, splits_send=True)
_BUMP_OTHER = Scenario("two executions, bump", workers=1, bump=True, splits_sign=False)
_TAKEN = Scenario("foreign use, two workers", (1,), foreign=True, reorg=True)
_TAKEN_TWO = Scenario("foreign use of one of two", workers=1, foreign=True, reorg=True, evict=True, splits_sign=False)
_EXPIRY = Scenario("expiry", (1,), expiry=True, reorg=True)
_STEPS = Scenario("two steps together", (2,), workers=1)
_STEPS_CANCEL = Scenario("two steps together, cancel", (2,), workers=1, cancel=1, splits_sign=False)
_ORDER_CANCEL = Scenario("two steps in order, cancel", (2,), in_order=True, workers=1, cancel=1)
_ORDER = Scenario("two steps in order, reverts", (2,), in_order=True, workers=1, reorg=True, revert=True)
_REISSUE = Scenario("reissue", (1,), workers=1, reissue=True)
_DEEP = Scenario("deep reorg", deep=True, cancel=1, workers=1, splits_sign=False)
_DEEP_ONE = Scenario("deep reorg of one", (1,), deep=True, cancel=1, workers=1)
_SHARED = Scenario("rows and journal restored", workers=1, restore="timeline", shared_journal=True, splits_sign=False)
_BESIDE = Scenario("reconcile beside a takeover", (1,), splits_reconcile=True)
_DRAFT = Scenario("reopened without the journal", (1,), workers=1, restore="timeline", shared_journal=True, reopen=True)

_P6 = "P6: what the table calls stuck is halted"
_P2 = "P6, and without the journal P2: the execution ends once both nonces are closed"
_P5 = "P5: the journal knows the hash, nothing is closed as foreign"

TABLE = (
    Mutant(
        "1",
        "no fence on the reservation insert",
        {"fences": ALL_FENCES - {"reserve"}},
        _ONE,
        ("G6", "G6"),
        ("G6", "G6"),
    ),
    Mutant(
        "2",
        "no fence on attempt insert or store",
        {"fences": ALL_FENCES - {"attempt"}},
        _ONE,
        ("G6", "G6"),
        ("G6", "G6"),
    ),
    Mutant(
        "3", "no fence on verdict or outcome", {"fences": ALL_FENCES - {"outcome"}}, _ONE, ("G6", "G6"), ("G6", "G6")
    ),
    Mutant("4", "identity is the worker's name", {"identity": "name"}, _ONE, ("G6", "G6"), ("G6", "G6")),
    Mutant(
        "5",
        "token only, no lease id, database restored",
        {"identity": "token"},
        _RESTORED_TWO,
        ("G6", "G6, I7"),
        ("G6, I2, I7", "G6, I2, I7"),
        ("G6, I7, stuck", "G6, I7"),
        ("I2", "I2"),
        "bytes read before the rewind are no I2 here, the right build sends them too; " + _P5,
    ),
    Mutant("6", "no compare-and-set of the state", {"state_guard": False}, _THREADS, ("", ""), ("", ""), shown_by="8"),
    Mutant("7", "no UNIQUE (execution, step)", {"unique_step": False}, _THREADS, ("", ""), ("", ""), shown_by="8"),
    Mutant(
        "8",
        "6 and 7",
        {"state_guard": False, "unique_step": False},
        _THREADS,
        ("G2, false halt", "G2, I1, I1 silent"),
        ("G2, stuck", "G2, I1 silent, stuck"),
        ("G2, stuck", "G2, I1, I1 silent"),
        ("", "stuck"),
        _P2,
    ),
    Mutant(
        "9", "1 and 7", {"fences": ALL_FENCES - {"reserve"}, "unique_step": False}, _ONE, ("G6", "G6"), ("G6", "G6")
    ),
    Mutant(
        "10", "COMMIT's reply lost: reserve again", {"unknown_commit": "again"}, _ONE, ("", ""), ("", ""), shown_by="11"
    ),
    Mutant(
        "11",
        "10 without UNIQUE",
        {"unknown_commit": "again", "unique_step": False},
        _ALONE,
        ("G2, false halt", "G2, I1, I1 silent"),
        ("G2, stuck", "I1 silent, stuck"),
        ("G2, stuck", "G2, I1, I1 silent"),
        ("", "stuck"),
        _P2,
    ),
    Mutant(
        "12",
        "a new nonce on nonce too low",
        {"new_nonce_on": "too low", "unique_step": False},
        _ALONE,
        ("G2, false halt", "G2, I1"),
        ("G2", "G2, I1"),
    ),
    Mutant(
        "13",
        "a new nonce on a send that timed out",
        {"new_nonce_on": "timeout", "unique_step": False},
        _ALONE,
        ("G2, false halt", "G2, I1, I1 silent"),
        ("G2, stuck", "I1 silent, stuck"),
        ("G2, stuck", "G2, I1, I1 silent"),
        ("", "stuck"),
        _P2,
    ),
    Mutant(
        "14",
        "a new nonce when the node does not know the hash",
        {"new_nonce_on": "unknown hash", "unique_step": False},
        _ALONE,
        ("G2, false halt", "G2, I1, I1 silent"),
        ("G2, stuck", "I1 silent, stuck"),
        ("G2, stuck", "G2, I1, I1 silent"),
        ("", "stuck"),
        _P2,
    ),
    Mutant(
        "15",
        "the top reservation is given back while unsigned",
        {"release": "top"},
        _RELEASE,
        ("false halt", "I3"),
        ("stuck", "I3"),
        None,
        ("stuck", ""),
        "P15: the journal binds a nonce that the rows do not, halted",
    ),
    Mutant(
        "16",
        "any reservation is given back while unsigned",
        {"release": "any"},
        _RELEASE,
        ("G7, false halt, stuck", "G7, I3, stuck"),
        ("G7", "G7, I3"),
    ),
    Mutant(
        "17",
        "sent from memory before the store commits",
        {"sends_from": "memory"},
        _ALONE,
        ("I2", "I2"),
        ("I2, I7, false halt", "I2, I7, false halt"),
        ("I2, I7, false halt", "I2, I7, false halt"),
        ("", ""),
        _P5 + "; a draft is signed before it is judged",
    ),
    Mutant(
        "18",
        "a bump is sent, then stored",
        {"bump": "sent first"},
        _BUMP,
        ("I2, false halt", "I2, I7, false halt"),
        ("I2, I7, false halt", "I2, I7, false halt"),
        ("I2, I7, false halt", "I2, I7, false halt"),
        ("", ""),
        _P5,
    ),
    Mutant(
        "19",
        "signed anew in place, the bytes can change",
        {"bump": "in place"},
        _BUMP_SPLIT,
        ("I2, false halt", "I2, I7, false halt"),
        ("I2, I7, false halt", "I2, I7, false halt"),
        ("I2, I7, false halt", "I2, I7, false halt"),
        ("", ""),
        _P5,
    ),
    Mutant(
        "20",
        "a bump carries another intent",
        {"bump": "another intent"},
        _BUMP_OTHER,
        ("false halt", "I1, I1 silent, I3, I5"),
        ("", "I1 silent, I3, I5"),
        ("", "I1, I1 silent, I3, I5"),
        ("", ""),
        "the journal refuses it, and P6 halts",
    ),
    Mutant(
        "21",
        "a cancel counts when SENT",
        {"cancel_counts_when": "SENT"},
        _CANCEL,
        ("I6, false halt", "I6, false halt"),
        ("I6", "I6"),
    ),
    Mutant(
        "22",
        "an error text ends the execution",
        {"error_ends": True},
        _ALONE,
        ("I6, stuck", "I6, stuck"),
        ("I6, stuck", "I6, stuck"),
    ),
    Mutant(
        "23",
        "mined is final",
        {"finality": "mined"},
        _ALONE,
        ("I5, false halt", "I5, false halt"),
        ("I5, false halt", "I5, false halt"),
    ),
    Mutant(
        "24",
        "only the latest attempt is watched",
        {"watches": "latest"},
        _BUMP,
        ("false halt", "I7, false halt"),
        ("I7", "I7"),
        ("I7, false halt", "I7, false halt"),
        ("", ""),
        _P5,
    ),
    Mutant("25", "a nonce that is gone is success", {"gone_is_success": True}, _FOREIGN, ("I5", "I5"), ("I5", "I5")),
    Mutant(
        "26",
        "foreign is believed before finality",
        {"foreign_when": "latest"},
        _TAKEN_TWO,
        ("I7, stuck", "I7, stuck"),
        ("I7, stuck", "I7, stuck"),
    ),
    Mutant(
        "27",
        "no reconcile at takeover",
        {"reconciles_at_takeover": False},
        _TAKEN,
        ("", ""),
        ("", ""),
        shown_by="27 never",
    ),
    Mutant(
        "28",
        "the chain is ahead: follow it",
        {"follows_chain": True},
        _FOREIGN,
        ("G7, stuck", "G7, stuck"),
        ("stuck", "stuck"),
    ),
    Mutant(
        "28 restored",
        "the chain is ahead: follow it, database restored",
        {"follows_chain": True},
        _RESTORED_CANCEL,
        ("G7", "G7, I1, I1 silent, I6, I7"),
        ("I6, I7", "I1 silent"),
        ("G7, I6, I7", "G7, I1, I1 silent, I6, I7"),
        ("", ""),
        _P5,
    ),
    Mutant(
        "29",
        "the first FINAL step ends the execution",
        {"first_final_ends": True},
        _STEPS,
        ("I5, stuck", "I5, stuck"),
        ("I5", "I5"),
    ),
    Mutant(
        "30",
        "parallel steps one transaction each, a cancel between",
        {"reserves_together": False},
        _STEPS_CANCEL,
        ("stuck", "stuck"),
        ("", "stuck"),
    ),
    Mutant(
        "31",
        "a cancel ignores steps not yet reserved",
        {"cancel_stops_rest": False},
        _ORDER_CANCEL,
        ("I8", "I8"),
        ("I8", "I8"),
    ),
    Mutant(
        "32",
        "a refused draft fails the execution, its nonce left",
        {"refusal": "fail"},
        _POLICY,
        ("stuck", None),
        ("stuck", None),
    ),
    Mutant(
        "33",
        "the signer cancels only what it has signed",
        {"cancels_unseen": False},
        _POLICY,
        ("stuck", None),
        ("stuck", None),
    ),
    Mutant(
        "34",
        "SIGNED cannot become MINED",
        {"signed_may_be_mined": False},
        _ALONE,
        ("stuck", "stuck"),
        ("stuck", "stuck"),
    ),
    Mutant(
        "35",
        "a latest nonce that goes back halts",
        {"latest_back_halts": True},
        _ALONE,
        ("false halt", "false halt"),
        ("false halt", "false halt"),
    ),
    Mutant(
        "36",
        "hold refuses a holder that expired and was not superseded",
        {"expiry_refuses": True},
        _EXPIRY,
        ("", ""),
        ("", ""),
        shown_by="36 only",
    ),
    Mutant(
        "37",
        "any signed attempt is broadcast",
        {"sends_any": True},
        _BUMP_TWO,
        ("", ""),
        ("", ""),
        shown_by="37 and 24",
    ),
    Mutant(
        "38",
        "a guard refusal is closed by a CANCEL, database restored",
        {"guard_refusal": "cancel"},
        _RESTORED,
        ("", None),
        ("I6, stuck", None),
        ("I6, I7", None),
        ("stuck", ""),
        "the contiguous prefix: no bytes are out above a nonce the journal has never seen; P5: what only the journal has halts, see 38 lost",
    ),
    Mutant(
        "39",
        "a journal without UNIQUE (execution, step), database restored",
        {"journal_keys_step": False},
        _REOPENED,
        ("I1, I1 silent", None),
        ("I1", None),
        None,
        ("", ""),
        "on the law the restore alone is halted; it takes a reopening and a wrong word",
    ),
)
"""The rows of the mutation table; 28 is two scenarios."""

BESIDE = (
    Mutant(
        "27 never",
        "27, and no reconcile at any time",
        {"reconciles_at_takeover": False, "reconciles_ever": False},
        _TAKEN,
        ("stuck", "stuck"),
        ("stuck", "stuck"),
        why="takeover is only when a pass is due: it is the periodic one that is needed",
    ),
    Mutant(
        "36 only",
        "hold asks only whether the lease has expired",
        {"identity": "unexpired"},
        _EXPIRY,
        ("G6", "G6"),
        ("G6", "G6"),
        why="identity is the fence, time is only for acquiring",
    ),
    Mutant(
        "37 and 24",
        "any attempt is broadcast, the latest is watched",
        {"sends_any": True, "watches": "latest"},
        _BUMP,
        ("false halt", "I7, false halt"),
        ("false halt", "I7"),
        why="what shares a nonce may be sent in any order, because all of it is watched",
    ),
    Mutant(
        "P3",
        "an execution is parked on doubt and reissued",
        {"parks_on_doubt": True},
        _REISSUE,
        ("I1, I1 silent, stuck", "I1, I1 silent, stuck"),
        ("I1 silent", "I1 silent"),
        why="S10 of the red team",
    ),
    Mutant(
        "P13",
        "the rows and the journal go back, and nothing notices",
        {"timeline_halts": False, "sends_prefix": False},
        _SHARED,
        ("I1, I1 silent, I7", None),
        ("I1, I7", None),
        why="S7a of the red team",
    ),
    Mutant(
        "P14",
        "no witness is kept",
        {"witness": "none"},
        _DEEP_ONE,
        ("unnoticed", "unnoticed"),
        ("unnoticed", "unnoticed"),
        why="S11",
    ),
    Mutant(
        "P14 newest",
        "a changed witness is buried by the next closing",
        {"witness": "newest only"},
        _DEEP,
        ("unnoticed", "unnoticed"),
        ("unnoticed", "unnoticed"),
        why="reconcile re-reads the newest witness only, so that closing has to look at it first",
    ),
    Mutant(
        "P15 order",
        "reconcile reads the rows before chain and journal",
        {"evidence_first": False},
        _BESIDE,
        ("false halt", "false halt"),
        ("false halt", "false halt"),
        why="a holder overtaken between the two halts an account in good order",
    ),
    Mutant(
        "P5 draft",
        "a draft is judged foreign before it is signed",
        {"judges_drafts": True},
        _DRAFT,
        ("I7", None),
        ("I7", None),
        why="rows and journal restored: the signature would have shown that the bytes are ours",
    ),
    Mutant(
        "38 lost",
        "38, and a nonce used by bytes that only the journal has is waited for",
        {"guard_refusal": "cancel", "halts_on_lost_bytes": False},
        _RESTORED,
        ("stuck", None),
        ("stuck", None),
        why="what 38 leaves behind is halted by that rule alone",
    ),
    Mutant(
        "cancel unseen",
        "a cancel by an operator is answered without comparing rows, journal and chain",
        {"compares_before_cancel": False},
        _RESTORED_CANCEL,
        ("I6", None),
        ("I6", None),
        why="rows restored unseen: what they have not begun is out",
    ),
    Mutant(
        "P5 lost",
        "a nonce used by bytes that only the journal has is waited for",
        {"halts_on_lost_bytes": False},
        _RESTORED_CANCEL,
        ("stuck", None),
        ("stuck", None),
        why="rows restored unseen: the hash on the chain is in no row, so the nonce is neither ours nor a stranger's for ever",
    ),
    Mutant(
        "P17",
        "a step in order is reserved when the one before is MINED",
        {"gate": "MINED"},
        _ORDER,
        ("P17", "P17"),
        ("P17", "P17"),
        why="S4m of the red team",
    ),
    Mutant(
        "release",
        "--not-paid releases under a new execution id",
        {"release_keeps_id": False},
        _REOPENED,
        ("I1, I1 silent", None),
        ("I1", None),
        why="ADR 7: the journal's UNIQUE (execution, step) knows only the old id",
    ),
)
"""Wrong readings beside the table, among them the partners that show why six of its rows survive."""
