"""G8, and G9 and G10 where they end executions: none is lost, none is half done, each stands where its nonces put it (P1, P2, P3)."""

from executor.audit.reading import Check
from executor.audit.report import Kind

_KEY = ("execution execution_id",)
WAITING = """
SELECT CASE e.state WHEN 'PENDING' THEN coalesce('plan: ' || split_part(e.reason, ':', 1), 'plan')
                    WHEN 'PLANNED' THEN coalesce(split_part(e.reason, ':', 1), 'nonce')
                    WHEN 'PARKED' THEN 'operator'
                    ELSE CASE WHEN EXISTS (SELECT 1 FROM nonce_reservation r WHERE r.execution_id = e.execution_id AND r.state = 'OPEN')
                         THEN 'chain' ELSE coalesce(split_part(e.reason, ':', 1), 'nonce of the next step') END END AS key, count(*) AS found
  FROM execution e WHERE e.state IN ('PENDING', 'PLANNED', 'RUNNING', 'PARKED') GROUP BY 1 ORDER BY 1
"""
"""What every live execution waits for."""

EXECUTIONS = (
    Check(
        """
        WITH tally AS (
          SELECT e.execution_id, e.account_id, e.state, e.steps, e.steps_effective, e.plan_order, e.evidence, e.reason,
                 n.reserved, n.open, n.others, n.effective, n.reverted, n.dead, i.intents, p.paid, e.resolution IS NOT NULL AS resolved, e.stopped_at IS NOT NULL AS stopped
            FROM (SELECT * FROM execution x WHERE {range x.execution_id} OFFSET 0) e
           CROSS JOIN LATERAL (
             SELECT count(r.nonce) AS reserved, count(*) FILTER (WHERE r.state = 'OPEN') AS open,
                    count(*) FILTER (WHERE r.closed_as = 'foreign') AS others,
                    count(*) FILTER (WHERE a.kind <> 'CANCEL' AND c.status = 1) AS effective,
                    count(*) FILTER (WHERE a.kind <> 'CANCEL' AND c.status = 0) AS reverted,
                    count(*) FILTER (WHERE r.state = 'CLOSED' AND r.effect IS NOT TRUE) AS dead
               FROM nonce_reservation r
               LEFT JOIN LATERAL (SELECT kind FROM attempt t WHERE (t.account_id, t.nonce, t.seq) = (r.account_id, r.nonce, r.closed_seq) OFFSET 0) a ON true
               LEFT JOIN LATERAL (SELECT min(status) AS status FROM receipt t WHERE (t.account_id, t.nonce, t.seq) = (r.account_id, r.nonce, r.closed_seq)
                                     AND t.orphaned_at IS NULL OFFSET 0) c ON true
              WHERE r.execution_id = e.execution_id OFFSET 0) n
           CROSS JOIN LATERAL (SELECT count(*) AS intents FROM intent t WHERE t.execution_id = e.execution_id OFFSET 0) i
           CROSS JOIN LATERAL (SELECT count(*) AS paid FROM already_paid t WHERE t.execution_id = e.execution_id OFFSET 0) p),
        ruled AS (
          SELECT *, CASE WHEN others > 0 THEN 'PARKED' WHEN effective + paid = steps THEN 'SUCCEEDED' WHEN effective > 0 THEN 'PARTIAL'
                         WHEN reverted > 0 THEN 'REVERTED' ELSE 'CANCELLED' END AS ending,
                 open = 0 AND reserved > 0 AND (reserved + paid = steps OR (plan_order <> 'together' AND dead > 0)) AS over FROM tally),
        judged AS (
          SELECT *, CASE
            WHEN state IN ('PLANNED', 'RUNNING', 'SUCCEEDED', 'PARTIAL', 'REVERTED') AND intents IS DISTINCT FROM steps AND NOT resolved THEN 'plan-torn'
            WHEN state = 'PENDING' AND intents > 0 THEN 'plan-torn'
            WHEN state IN ('PENDING', 'PLANNED', 'SKIPPED', 'FAILED') AND reserved > 0 AND NOT resolved THEN 'nonce-before-running'
            WHEN state = 'RUNNING' AND reserved + paid = 0 THEN 'running-without-nonce'
            WHEN reserved > 0 AND plan_order = 'together' AND reserved + paid < steps THEN 'steps-torn'
            WHEN state = 'RUNNING' AND over THEN 'end-unrecorded'
            WHEN state = 'PARKED' AND (evidence IS NULL OR evidence = 'null' OR coalesce(reason, '') = '') THEN 'parked-without-evidence'
            WHEN state = 'PARKED' AND reserved > 0 AND (open > 0 OR (others = 0 AND NOT stopped)) THEN 'parked-early'
            WHEN state = 'PARKED' AND reserved = 0
                 AND NOT EXISTS (SELECT 1 FROM request q WHERE q.account_id = ruled.account_id AND q.kind = 'reopen' AND q.granted IS NOT FALSE)
                 AND NOT EXISTS (SELECT 1 FROM history h WHERE h.kind = 'account' AND h.account_id = ruled.account_id AND h.to_state = 'open')
            THEN 'parked-for-nothing'
            WHEN state IN ('PENDING', 'PLANNED', 'RUNNING', 'PARKED') THEN NULL
            WHEN open > 0 THEN 'ended-with-open-nonce'
            WHEN reserved + paid = 0 AND state IN ('SUCCEEDED', 'PARTIAL', 'REVERTED') AND NOT resolved THEN 'ended-without-nonce'
            WHEN (reserved > 0 OR state = 'SUCCEEDED') AND state <> ending AND NOT resolved THEN 'other-end'
            WHEN reserved > 0 AND steps_effective IS DISTINCT FROM effective THEN 'effects-miscounted' END AS fault FROM ruled)
        SELECT fault, execution_id, account_id, state, steps, steps_effective, intents, reserved, open, effective, reverted, others, paid, ending
          FROM judged WHERE fault IS NOT NULL
        """,
        Kind(
            "G8",
            "plan-torn",
            "execution {execution_id} is {state} with {intents} intents of {steps} steps: its plan was not recorded as a whole",
            (*_KEY,),
        ),
        Kind(
            "G8",
            "nonce-before-running",
            "execution {execution_id} is {state} and owns {reserved} nonces: it counts as not begun while it may be paid",
            _KEY,
        ),
        Kind(
            "G8",
            "running-without-nonce",
            "execution {execution_id} is RUNNING and no step of it has a nonce: no stage will ever take it up, it is lost",
            _KEY,
        ),
        Kind(
            "G8",
            "steps-torn",
            "execution {execution_id} owns nonces for {reserved} of its {steps} steps, which are reserved together or not at all: the rest is lost",
            _KEY,
        ),
        Kind(
            "G8",
            "end-unrecorded",
            "execution {execution_id} is RUNNING though all of its {reserved} nonces are closed: its end {ending} was lost, nothing will record it",
            _KEY,
        ),
        Kind(
            "G9",
            "parked-without-evidence",
            "execution {execution_id} is PARKED without evidence and a reason: an operator cannot decide about it",
            _KEY,
        ),
        Kind(
            "G9",
            "parked-early",
            "execution {execution_id} is PARKED with {open} of its {reserved} nonces open and {others} used by others: doubt that later evidence ends is no parking (P3)",
            _KEY,
        ),
        Kind(
            "G9",
            "parked-for-nothing",
            "execution {execution_id} is PARKED without a nonce, and its account was never reopened: nothing but a rewind parks what has not begun (P3)",
            _KEY,
        ),
        Kind(
            "G10",
            "ended-with-open-nonce",
            "execution {execution_id} is {state} while {open} of its nonces are open: what it says may still change on chain",
            _KEY,
        ),
        Kind(
            "G10",
            "ended-without-nonce",
            "execution {execution_id} is {state} and never owned a nonce: nothing was sent that could end so",
            _KEY,
        ),
        Kind(
            "G10",
            "other-end",
            "execution {execution_id} is {state}, its nonces make it {ending}: {effective} of {steps} steps took effect, {paid} were already paid, {others} nonces went to others (P2)",
            _KEY,
        ),
        Kind(
            "G10",
            "effects-miscounted",
            "execution {execution_id} is {state} with {steps_effective} effective steps, its receipts show {effective}",
            _KEY,
        ),
    ),
    Check(
        # Ids of history grow in the order of commits, because hold makes the record transactions of an account serial.
        """
        SELECT e.account_id, e.execution_id, r.step, r.nonce, e.plan_order, s.step AS before
          FROM execution e JOIN nonce_reservation r ON r.execution_id = e.execution_id AND {range r.execution_id}
         CROSS JOIN LATERAL generate_series(0, r.step - 1) AS s (step)
          LEFT JOIN LATERAL (SELECT * FROM nonce_reservation n WHERE (n.execution_id, n.step) = (e.execution_id, s.step) OFFSET 0) p ON true
          LEFT JOIN LATERAL (SELECT min(h.history_id) AS at FROM history h
             WHERE h.kind = 'nonce' AND h.subject = r.account_id || '/' || r.nonce AND h.from_state IS NULL OFFSET 0) born ON true
          LEFT JOIN LATERAL (SELECT min(h.history_id) AS at FROM history h
             WHERE (e.plan_order = 'final' AND h.kind = 'nonce' AND h.subject = p.account_id || '/' || p.nonce AND h.to_state = 'CLOSED' AND p.effect)
                OR (e.plan_order = 'mined' AND h.kind = 'attempt' AND h.to_state = 'MINED'
                    AND h.subject IN (SELECT a.account_id || '/' || a.nonce || '/' || a.seq FROM attempt a
                                       WHERE (a.account_id, a.nonce) = (p.account_id, p.nonce))) OFFSET 0) done ON true
         WHERE {range e.execution_id} AND e.plan_order <> 'together' AND e.reissue_no = 0 AND (done.at IS NULL OR done.at > born.at)
           AND NOT EXISTS (SELECT 1 FROM already_paid d WHERE (d.execution_id, d.step) = (e.execution_id, s.step))
        """,
        Kind(
            "G10",
            "step-out-of-turn",
            "step {step} of {execution_id} got nonce {nonce} before step {before} had done its part: it may act on something that never happened (P17)",
            ("nonce_reservation account_id nonce", "intent execution_id step=before"),
        ),
    ),
)
