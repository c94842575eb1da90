"""G1: one schedule slot gives at most one execution, whoever made it; a reissue repeats only what took no effect (P4)."""

from executor.audit.reading import Check
from executor.audit.report import Kind

WHOLE = (
    Check(
        """
        SELECT strategy, slot, reissue_no, count(*) AS found, array_agg(execution_id ORDER BY execution_id) AS ids
          FROM execution WHERE slot IS NOT NULL GROUP BY strategy, slot, reissue_no HAVING count(*) > 1
        """,
        Kind(
            "G1",
            "slot-twice",
            "slot {slot} of strategy {strategy} has {found} executions where one is allowed, so that one due run may act {found} times",
            ("execution execution_id=ids",),
        ),
    ),
    Check(
        """
        SELECT strategy, trigger_key, reissue_no, count(*) AS found, array_agg(execution_id ORDER BY execution_id) AS ids
          FROM execution WHERE trigger_key IS NOT NULL GROUP BY strategy, trigger_key, reissue_no HAVING count(*) > 1
        """,
        Kind(
            "G1",
            "key-twice",
            "trigger key {trigger_key} of strategy {strategy} has {found} executions where one is allowed, so that one request may act {found} times",
            ("execution execution_id=ids",),
        ),
    ),
    Check(
        "SELECT name, pruned_through, high_water_mark FROM strategy WHERE pruned_through > high_water_mark",
        Kind(
            "G1",
            "pruned-above-mark",
            "strategy {name} is pruned through {pruned_through}, beyond its high-water mark {high_water_mark}: slots that were never made count as done (P20)",
            ("strategy name",),
        ),
    ),
)
EXECUTIONS = (
    Check(
        """
        SELECT execution_id, wanted FROM (
          SELECT execution_id, slot, strategy || CASE WHEN slot IS NULL THEN '/id/' || trigger_key
                 ELSE '/' || to_char(slot AT TIME ZONE 'UTC', CASE WHEN extract(second FROM slot) = 0
                      THEN 'YYYY-MM-DD"T"HH24:MI"Z"' ELSE 'YYYY-MM-DD"T"HH24:MI:SS"Z"' END) END
                 || CASE WHEN reissue_no > 0 THEN '/reissue/' || reissue_no ELSE '' END AS wanted
            FROM execution WHERE {range execution_id}) named
         WHERE execution_id IS DISTINCT FROM wanted OR slot <> date_trunc('second', slot)
        """,
        Kind(
            "G1",
            "misnamed",
            "execution {execution_id} does not carry the name of its slot or key, which is {wanted}: the same run can be made once more under its right name",
            ("execution execution_id",),
        ),
    ),
    Check(
        # A slot that lay ahead when the row was made came by an explicit trigger; the schedule makes due slots only.
        """
        SELECT execution_id, strategy, slot, high_water_mark FROM execution JOIN strategy s ON s.name = strategy
         WHERE {range execution_id} AND slot > high_water_mark AND slot <= created_at AND (schedule IS NOT NULL OR every_seconds IS NOT NULL)
        """,
        Kind(
            "G1",
            "above-mark",
            "execution {execution_id} stands above the high-water mark {high_water_mark} of strategy {strategy}, which has fallen: its slot counts as not made yet",
            ("execution execution_id", "strategy name=strategy"),
        ),
    ),
    Check(
        """
        SELECT e.execution_id, e.strategy, slot, pruned_through FROM execution e JOIN strategy s ON s.name = e.strategy
         WHERE {range e.execution_id} AND slot <= pruned_through
           AND NOT EXISTS (SELECT 1 FROM nonce_reservation r WHERE r.execution_id = e.execution_id)
        """,
        Kind(
            "G1",
            "below-pruned",
            "execution {execution_id} lies at or below {pruned_through}, the slots of strategy {strategy} that were pruned as done: a done slot was made again (P20)",
            ("execution execution_id", "strategy name=strategy"),
        ),
    ),
    Check(
        """
        SELECT e.execution_id, e.reissue_no FROM execution e
         WHERE {range e.execution_id} AND e.reissue_no > 0
           AND NOT EXISTS (SELECT 1 FROM execution o WHERE o.strategy = e.strategy AND o.reissue_no = e.reissue_no - 1
                              AND (o.slot = e.slot OR o.trigger_key = e.trigger_key))
        """,
        Kind(
            "G1",
            "reissue-of-nothing",
            "execution {execution_id} is reissue {reissue_no} of a run whose earlier execution is not there: what it repeats cannot be told (P4)",
            ("execution execution_id",),
        ),
    ),
    Check(
        """
        SELECT * FROM (
          SELECT i.execution_id, i.step, o.execution_id AS earlier,
                 CASE WHEN r.effect THEN 'reissued-effect'
                      WHEN r.state = 'OPEN' OR o.state IN ('PENDING', 'PLANNED', 'RUNNING') THEN 'reissued-live'
                      WHEN w.digest IS NOT NULL AND (w.digest, w.once) IS DISTINCT FROM (i.digest, i.once) THEN 'reissued-otherwise' END AS fault
            FROM intent i JOIN execution e USING (execution_id)
            JOIN execution o ON o.strategy = e.strategy AND o.reissue_no < e.reissue_no AND (o.slot = e.slot OR o.trigger_key = e.trigger_key)
            LEFT JOIN nonce_reservation r ON (r.execution_id, r.step) = (o.execution_id, i.step)
            LEFT JOIN intent w ON (w.execution_id, w.step) = (o.execution_id, i.step)
           WHERE {range e.execution_id} AND e.reissue_no > 0) judged WHERE fault IS NOT NULL
        """,
        Kind(
            "G1",
            "reissued-effect",
            "step {step} of {execution_id} repeats step {step} of {earlier}, which took effect: it is paid twice (P4)",
            ("intent execution_id step", "nonce_reservation execution_id=earlier step"),
        ),
        Kind(
            "G1",
            "reissued-live",
            "step {step} of {execution_id} repeats step {step} of {earlier}, which is not over and may still take effect (P4)",
            ("intent execution_id step", "execution execution_id=earlier"),
        ),
        Kind(
            "G1",
            "reissued-otherwise",
            "step {step} of {execution_id} repeats step {step} of {earlier} with another call: a reissue copies what was wanted, it plans nothing (P4)",
            ("intent execution_id step", "intent execution_id=earlier step"),
        ),
    ),
)
