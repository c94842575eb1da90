"""Executions that are under way for long, and what each waits for: what a person must not have to find out by asking."""

from dataclasses import dataclass

from sqlalchemy import text

from executor.database import Tx

# Told by the holder of the account, and by everybody where nobody holds it.
_LONG = text("""
SELECT e.execution_id, a.name AS account, e.state, e.reason,
       CAST(extract(epoch FROM clock_timestamp() - greatest(e.due_at, e.created_at)) AS float8) AS seconds, o.nonce, o.status, o.verdict
  FROM execution e JOIN account a USING (account_id) JOIN lease l USING (account_id)
  LEFT JOIN LATERAL (
    SELECT r.nonce, t.status, (SELECT b.verdict FROM broadcast b WHERE (b.account_id, b.nonce, b.seq) = (t.account_id, t.nonce, t.seq)
                                ORDER BY b.last_at DESC LIMIT 1) AS verdict
      FROM nonce_reservation r JOIN attempt t USING (account_id, nonce)
     WHERE r.execution_id = e.execution_id AND r.state = 'OPEN' ORDER BY r.nonce, t.seq DESC LIMIT 1) o ON true
 WHERE e.state IN ('PENDING', 'PLANNED', 'RUNNING')
   AND greatest(e.due_at, e.created_at) < (SELECT clock_timestamp()) - make_interval(secs => :seconds)
   AND (l.holder = :worker OR l.expires_at <= clock_timestamp())
 ORDER BY e.due_at LIMIT :most
""")


@dataclass(frozen=True, slots=True)
class Wait:
    """An execution that fell due `seconds` ago and has not ended; `nonce` is its lowest open one, `status` its newest attempt's."""

    execution_id: str
    account: str
    state: str
    reason: str | None
    seconds: float
    nonce: int | None
    status: str | None
    verdict: str | None

    @property
    def told(self) -> str:
        """Where it stands, in one sentence."""
        where = f"{self.execution_id} is {self.state} for {self.seconds:.0f} s"
        if self.nonce is not None:
            said = f", the node said {self.verdict}" if self.verdict and self.status != "MINED" else ""
            where += f": nonce {self.nonce} is {self.status}{said}"
        return where if self.reason is None else f"{where}: {self.reason}"


def longest(tx: Tx, worker: str, seconds: float, most: int) -> list[Wait]:
    """The oldest executions older than `seconds` of the accounts that `worker` holds or nobody does."""
    return [Wait(*row) for row in tx.execute(_LONG, {"worker": worker, "seconds": seconds, "most": most})]
