"""What a build of the protocol does (a mutant is a build that differs) and what a scenario lets happen to it."""

from dataclasses import dataclass

ALL_FENCES = frozenset({"reserve", "attempt", "outcome"})


@dataclass(frozen=True, slots=True)
class Build:
    """The defaults are the law (P1–P27); numbers in comments are rows of the mutation table."""

    fences: frozenset[str] = ALL_FENCES  # 1–3
    identity: str = "lease id"  # 4: "name", 5: "token"; "unexpired" asks the clock instead
    state_guard: bool = True  # 6
    unique_step: bool = True  # 7
    unknown_commit: str = "drop the lease"  # 10: "again"
    new_nonce_on: str = ""  # 12–14: "too low", "timeout", "unknown hash"
    release: str = ""  # 15, 16: "top", "any"
    sends_from: str = "rows"  # 17: "memory"
    bump: str = "stored first"  # 18–20: "sent first", "in place", "another intent"
    cancel_counts_when: str = "FINAL"  # 21: "SENT"
    error_ends: bool = False  # 22
    finality: str = "final"  # 23: "mined"
    watches: str = "all"  # 24: "latest"
    gone_is_success: bool = False  # 25
    foreign_when: str = "final"  # 26: "latest"
    reconciles_at_takeover: bool = True  # 27
    reconciles_ever: bool = True
    judges_drafts: bool = False
    """Whether a nonce may be closed as foreign before its draft is signed: the signature is what would tell our bytes."""
    compares_before_cancel: bool = True
    """Whether an operator's cancel is answered by a pass that compared rows, journal and chain, as other requests are."""
    halts_on_lost_bytes: bool = True
    """Whether a nonce used for good by bytes that the journal has and no row does halts: rows were lost, nobody else would end it."""
    follows_chain: bool = False  # 28
    first_final_ends: bool = False  # 29
    reserves_together: bool = True  # 30
    cancel_stops_rest: bool = True  # 31
    refusal: str = "cancel"  # 32: "fail"
    cancels_unseen: bool = True  # 33
    signed_may_be_mined: bool = True  # 34
    latest_back_halts: bool = False  # 35
    expiry_refuses: bool = False  # 36
    sends_any: bool = False  # 37
    sends_prefix: bool = True  # False is the reading of the red team's model
    guard_refusal: str = "halt"  # 38: "cancel"; "ignore" is the reading before P6
    journal: bool = True
    journal_keys_step: bool = True  # 39
    foreign_evidence: str = "journal"  # "digest" is the reading before P5 asked the journal, "hash" the one before P5
    witness: str = "checked before closing"  # "newest only", "none"
    gate: str = "FINAL"  # "MINED": P17
    timeline_halts: bool = True  # P13
    evidence_first: bool = True  # reconcile reads chain and journal before the rows
    parks_on_doubt: bool = False  # the reading before P3 and P4
    release_keeps_id: bool = True

    @property
    def is_weak(self) -> bool:
        """Whether a stale worker may get a write through somewhere, so that it is worth its while to begin one."""
        return self.fences != ALL_FENCES or self.identity != "lease id"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Bounds of a search: `executions` are their numbers of steps, "in order" or "together"; the rest is what may happen.

    Takeover, crash, pause, lost reply and lost commit are possible between any two steps, always. Steps that only matter
    where something else happens are split only where the scenario says so, the searches would be larger for nothing.
    """

    name: str
    executions: tuple[int, ...] = (1, 1)
    in_order: bool = False
    workers: int = 2
    threads: bool = False
    """Both workers are threads of one process under one lease."""
    splits_sign: bool = True
    splits_send: bool = False
    splits_reconcile: bool = False
    reorg: bool = False
    evict: bool = False
    bump: bool = False
    cancel: int = 0
    """How many of the executions an operator may cancel, the first ones."""
    foreign: bool = False
    policy: bool = False
    revert: bool = False
    deep: bool = False
    expiry: bool = False
    restore: str = ""
    """"quiet" (a copied disk, a snapshot of the machine) or "timeline" (PITR, promotion)."""
    shared_journal: bool = False
    """The signer's journal lies in the same cluster and is restored with the rows."""
    reissue: bool = False
    reopen: bool = False
    wrong_word: bool = False
    """The operator says --not-paid of what was paid."""
