"""G1: one schedule slot gives at most one execution. G9: what stopped says why."""

from executor.audit.reading import Check

WHOLE = (
    Check(
        "G1",
        "slot {slot} of strategy {strategy} has {found} executions: {ids}",
        """
        SELECT strategy, slot, count(*) AS found, array_agg(execution_id ORDER BY execution_id) AS ids
          FROM execution WHERE slot IS NOT NULL GROUP BY strategy, slot, reissue_no HAVING count(*) > 1
        """,
    ),
    Check(
        "G1",
        "trigger key {trigger_key} of strategy {strategy} has {found} executions: {ids}",
        """
        SELECT strategy, trigger_key, count(*) AS found, array_agg(execution_id ORDER BY execution_id) AS ids
          FROM execution WHERE trigger_key IS NOT NULL GROUP BY strategy, trigger_key, reissue_no HAVING count(*) > 1
        """,
    ),
    Check(
        "G9",
        "account {name} is {state} and nothing says why",
        "SELECT name, state FROM account WHERE state <> 'open' AND coalesce(reason, '') = ''",
    ),
)
EXECUTIONS = (
    Check(
        "G1",
        "execution {execution_id} does not carry the name of its slot or key, which is {wanted}",
        """
        SELECT execution_id, wanted FROM (
          SELECT execution_id, slot, strategy || CASE WHEN slot IS NULL THEN '/id/' || trigger_key
                 ELSE '/' || to_char(slot AT TIME ZONE 'UTC', CASE WHEN extract(second FROM slot) = 0
                      THEN 'YYYY-MM-DD"T"HH24:MI"Z"' ELSE 'YYYY-MM-DD"T"HH24:MI:SS"Z"' END) END
                 || CASE WHEN reissue_no > 0 THEN '/reissue/' || reissue_no ELSE '' END AS wanted
            FROM execution WHERE {range execution_id}) named
         WHERE execution_id IS DISTINCT FROM wanted OR slot <> date_trunc('second', slot)
        """,
    ),
    Check(
        "G1",
        "execution {execution_id} was made for a slot above the high-water mark {high_water_mark} of its strategy",
        # A slot that lay ahead when the row was made came by an explicit trigger; the schedule makes due slots only.
        """
        SELECT execution_id, slot, high_water_mark FROM execution JOIN strategy s ON s.name = strategy
         WHERE {range execution_id} AND slot > high_water_mark AND slot <= created_at AND (schedule IS NOT NULL OR every_seconds IS NOT NULL)
        """,
    ),
    Check(
        "G1",
        "execution {execution_id} lies at or below {pruned_through}, the range of slots that was pruned",
        """
        SELECT e.execution_id, slot, pruned_through FROM execution e JOIN strategy s ON s.name = e.strategy
         WHERE {range execution_id} AND slot <= pruned_through
           AND NOT EXISTS (SELECT 1 FROM nonce_reservation r WHERE r.execution_id = e.execution_id)
        """,
    ),
    Check(
        "G9",
        "execution {execution_id} is PARKED without evidence and a reason",
        """
        SELECT execution_id, reason, evidence FROM execution
         WHERE {range execution_id} AND state = 'PARKED' AND (evidence IS NULL OR evidence = 'null' OR coalesce(reason, '') = '')
        """,
    ),
    Check(
        "G9",
        "execution {execution_id} is PARKED though {open} of its {reserved} nonces are open and {others} went to others (P3)",
        """
        SELECT e.execution_id, count(*) FILTER (WHERE r.state = 'OPEN') AS open, count(*) AS reserved,
               count(*) FILTER (WHERE r.closed_as = 'foreign') AS others
          FROM execution e JOIN nonce_reservation r USING (execution_id) WHERE {range e.execution_id} AND e.state = 'PARKED'
         GROUP BY e.execution_id HAVING bool_or(r.state = 'OPEN') OR NOT coalesce(bool_or(r.closed_as = 'foreign'), false)
        """,
    ),
)
