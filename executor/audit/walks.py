"""G8 in the history: every execution, nonce and attempt came along the arrows of P1 from its birth to where it stands, and the
generation that moved it is the one its row names (G6).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from executor.audit.reading import Range, Slice
from executor.audit.report import Findings, Kind

ARROWS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "execution": {
        "": ("PENDING", "SKIPPED"),
        "PENDING": ("PLANNED", "SKIPPED", "FAILED", "CANCELLED", "PARKED"),
        "PLANNED": ("RUNNING", "SKIPPED", "FAILED", "CANCELLED", "PARKED"),
        "RUNNING": ("SUCCEEDED", "PARTIAL", "REVERTED", "CANCELLED", "PARKED"),
        # By an operator's recorded word only, which is judged apart.
        "PARKED": ("PENDING", "PLANNED", "SKIPPED", "CANCELLED", "PARTIAL"),
    },
    "nonce": {"": ("OPEN",), "OPEN": ("CLOSED",)},
    "attempt": {
        "": ("DRAFT",),
        "DRAFT": ("SIGNED", "REFUSED", "SUPERSEDED"),
        "SIGNED": ("SENT", "MINED", "SUPERSEDED"),
        "SENT": ("MINED", "SUPERSEDED"),
        "MINED": ("SENT", "FINAL", "SUPERSEDED"),
    },
}
_WALK = """LEFT JOIN LATERAL (
  SELECT string_agg(coalesce(h.from_state, '') || '>' || h.to_state || '@' || coalesce(h.token::text, ''), ' ' ORDER BY h.history_id) AS walk,
         min(h.why) FILTER (WHERE h.from_state IS NULL) AS born_as
    FROM history h WHERE h.kind = '{kind}' AND h.subject = {subject} OFFSET 0) h ON true"""
_EXECUTIONS = f"""
SELECT e.execution_id, e.account_id, e.state, e.resolution IS NOT NULL AS resolved, h.walk
  FROM (SELECT * FROM execution x WHERE {{range x.execution_id}} OFFSET 0) e {_WALK.format(kind="execution", subject="e.execution_id")}
"""  # noqa: S608  (constants of this page)
_NONCES = f"""
SELECT r.account_id, r.nonce, r.state, r.execution_id, r.step, r.token, h.walk, h.born_as
  FROM (SELECT * FROM nonce_reservation x WHERE x.account_id = :account AND {{range x.nonce}} OFFSET 0) r
  {_WALK.format(kind="nonce", subject="r.account_id || '/' || r.nonce")}
"""  # noqa: S608  (constants of this page)
_ATTEMPTS = f"""
SELECT t.account_id, t.nonce, t.seq, t.status AS state, t.token, t.signed_token, t.sent_token, h.walk
  FROM (SELECT * FROM attempt x WHERE x.account_id = :account AND {{range x.nonce}} OFFSET 0) t
  {_WALK.format(kind="attempt", subject="t.account_id || '/' || t.nonce || '/' || t.seq")}
"""  # noqa: S608  (constants of this page)

_EXECUTION, _NONCE, _ATTEMPT = (
    "execution execution_id",
    "nonce_reservation account_id nonce",
    "attempt account_id nonce seq",
)
_EXECUTION_WALK = Kind(
    "G8",
    "execution-walk",
    "execution {execution_id} is {state}, and its history does not lead there along the arrows of P1: {told}",
    (_EXECUTION,),
)
_NONCE_WALK = Kind(
    "G8",
    "nonce-walk",
    "nonce {nonce} of account {account} is {state}, and its history does not lead there along the arrows of P1: {told}",
    (_NONCE,),
)
_ATTEMPT_WALK = Kind(
    "G8",
    "attempt-walk",
    "attempt {seq} of nonce {nonce} of account {account} is {state}, and its history does not lead there along the arrows of P1: {told}",
    (_ATTEMPT,),
)
_REPOINTED = Kind(
    "G2",
    "nonce-re-pointed",
    "nonce {nonce} of account {account} belongs to step {step} of {execution_id}, its history was born for {born_as}: one of the two may be paid by the other's nonce",
    (_NONCE,),
)
_PARKED_LEFT = Kind(
    "G9",
    "parked-left",
    "execution {execution_id} was PARKED and is {state} without a recorded resolution: nobody said that it may go on",
    (_EXECUTION,),
)
_EXECUTION_UNHELD = Kind(
    "G6",
    "execution-unheld",
    "execution {execution_id} was moved by nobody's lease generation: {told}",
    (_EXECUTION,),
)
_NONCE_HOLDER = Kind(
    "G6",
    "nonce-other-holder",
    "nonce {nonce} of account {account} names generation {token} as its maker, its history says: {told}",
    (_NONCE,),
)
_ATTEMPT_HOLDER = Kind(
    "G6",
    "attempt-other-holder",
    "attempt {seq} of nonce {nonce} of account {account} names generations {token}, {signed_token} and {sent_token} for draft, bytes and hand-over, its history says: {told}",
    (_ATTEMPT,),
)
KINDS = (
    _EXECUTION_WALK,
    _NONCE_WALK,
    _ATTEMPT_WALK,
    _REPOINTED,
    _PARKED_LEFT,
    _EXECUTION_UNHELD,
    _NONCE_HOLDER,
    _ATTEMPT_HOLDER,
)


def check_executions(cut: Slice, part: Range, findings: Findings) -> None:
    """The walks of a range of executions."""
    for row in cut.rows(_EXECUTIONS, part):
        steps = _steps(row["walk"])
        if not _leads(ARROWS["execution"], steps, row["state"]):
            _tell(findings, _EXECUTION_WALK, row)
            continue
        if row["state"] != "PARKED" and not row["resolved"] and any(before == "PARKED" for before, _, _ in steps):
            _tell(findings, _PARKED_LEFT, row)
        if any(before and token is None for before, _, token in steps):
            _tell(findings, _EXECUTION_UNHELD, row)


def check_nonces(cut: Slice, part: Range, account: int, findings: Findings) -> None:
    """The walks of a range of nonces and of their attempts."""
    for row in cut.rows(_NONCES, part, account=account):
        steps = _steps(row["walk"])
        if not _leads(ARROWS["nonce"], steps, row["state"]):
            _tell(findings, _NONCE_WALK, row)
            continue
        if row["born_as"] != f"{row['execution_id']} step {row['step']}":
            _tell(findings, _REPOINTED, row)
        if steps[0][2] != row["token"] or any(token is None for _, _, token in steps):
            _tell(findings, _NONCE_HOLDER, row)
    for row in cut.rows(_ATTEMPTS, part, account=account):
        steps = _steps(row["walk"])
        if not _leads(ARROWS["attempt"], steps, row["state"]):
            _tell(findings, _ATTEMPT_WALK, row)
        elif any(token is None for _, _, token in steps) or _holders(steps) != (
            row["token"],
            row["signed_token"],
            row["sent_token"],
        ):
            _tell(findings, _ATTEMPT_HOLDER, row)


Step = tuple[str, str, int | None]


def _steps(walk: str | None) -> list[Step]:
    """From where, to where, and the token of the generation that did it."""
    return list(_read(walk or ""))


def _read(walk: str) -> Iterator[Step]:
    for step in walk.split(" ") if walk else ():
        arrow, _, token = step.partition("@")
        before, _, after = arrow.partition(">")
        yield before, after, int(token) if token else None


def _leads(arrows: Mapping[str, tuple[str, ...]], steps: list[Step], state: str) -> bool:
    at = ""
    for before, after, _ in steps:
        if before != at or after not in arrows.get(before, ()):
            return False
        at = after
    return at == state and bool(steps)


def _holders(steps: list[Step]) -> tuple[int | None, int | None, int | None]:
    """Who drafted, who signed, and who first handed over: seen mined counts as handed over, if that was not recorded."""
    signed = next((token for _, after, token in steps if after == "SIGNED"), None)
    sent = next((token for _, after, token in steps if after in ("SENT", "MINED")), None)
    return steps[0][2], signed, sent


def _tell(findings: Findings, kind: Kind, row: Mapping[str, Any]) -> None:
    told = (row["walk"] or "nothing").replace(">", " → ").replace("@", " by ").strip()
    findings.add(kind, {**row, "told": told})
