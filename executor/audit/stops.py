"""G9: what stopped says why, and only a recorded decision lets it go on."""

from executor.audit.reading import Check
from executor.audit.report import Kind

WHOLE = (
    Check(
        "SELECT account_id, name, state FROM account WHERE state <> 'open' AND coalesce(reason, '') = ''",
        Kind(
            "G9",
            "stopped-without-reason",
            "account {name} is {state} and nothing says why: an operator cannot decide about it",
            ("account account_id",),
        ),
    ),
    Check(
        """
        SELECT a.account_id, a.name, a.state, array_agg(h.walked ORDER BY h.history_id) AS told FROM account a
          JOIN (SELECT account_id, history_id, coalesce(from_state, '') || ' → ' || to_state AS walked, to_state,
                       coalesce(from_state, '') <> coalesce(lag(to_state) OVER w, 'open') AS broken,
                       last_value(to_state) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS last
                  FROM history WHERE kind = 'account' WINDOW w AS (PARTITION BY account_id ORDER BY history_id)) h USING (account_id)
         GROUP BY a.account_id, a.name, a.state HAVING bool_or(h.broken OR h.last <> a.state)
        UNION ALL
        SELECT a.account_id, a.name, a.state, ARRAY['nothing'] FROM account a
         WHERE a.state <> 'open' AND NOT EXISTS (SELECT 1 FROM history h WHERE h.kind = 'account' AND h.account_id = a.account_id)
        """,
        Kind(
            "G9",
            "account-walk",
            "account {name} is {state}, and its history does not lead there: {told}. It was stopped or opened past the records",
            ("account account_id",),
        ),
    ),
    Check(
        """
        SELECT a.account_id, a.name, h.opened, coalesce(q.granted, 0) AS granted, h.unheld FROM account a
          JOIN (SELECT account_id, count(*) AS opened, count(*) FILTER (WHERE token IS NULL) AS unheld FROM history
                 WHERE kind = 'account' AND to_state = 'open' AND from_state <> 'open' GROUP BY account_id) h USING (account_id)
          LEFT JOIN (SELECT account_id, count(*) AS granted FROM request WHERE kind = 'reopen' AND granted GROUP BY account_id) q USING (account_id)
         WHERE h.opened > coalesce(q.granted, 0) OR h.unheld > 0
        """,
        Kind(
            "G9",
            "opened-unasked",
            "account {name} was opened {opened} times, {granted} times by an operator's granted request and {unheld} times under no lease: it works on though nobody decided so",
            ("account account_id",),
        ),
    ),
    Check(
        """
        SELECT s.name, h.resumed, coalesce(q.granted, 0) AS granted FROM strategy s
          JOIN (SELECT subject, count(*) AS resumed FROM history
                 WHERE kind = 'strategy' AND from_state = 'paused' AND to_state = 'active' GROUP BY subject) h ON h.subject = s.name
          LEFT JOIN (SELECT strategy, count(*) AS granted FROM request WHERE kind = 'resume' AND granted GROUP BY strategy) q ON q.strategy = s.name
         WHERE h.resumed > coalesce(q.granted, 0)
        """,
        Kind(
            "G9",
            "resumed-unasked",
            "strategy {name} was resumed {resumed} times, {granted} times by an operator's granted request: its slots run though nobody decided so",
            ("strategy name",),
        ),
    ),
    Check(
        """
        SELECT request_id, kind, who, why FROM request
         WHERE coalesce(who, '') = '' OR coalesce(why, '') = ''
            OR (answered_at IS NULL) <> (granted IS NULL) OR (answered_at IS NULL) <> (coalesce(answer, '') = '')
        """,
        Kind(
            "G9",
            "request-half-told",
            "request {request_id} ({kind}) does not say who asked, why, or what was answered: what it moved has no recorded decision",
            ("request request_id",),
        ),
    ),
)
