"""G7 and G10 beside the chain: what the rows call final stands in canonical blocks, and no nonce is used that they do not know."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from executor.audit.node import Mined, Node
from executor.audit.reading import Range, Reader
from executor.audit.report import Findings, Kind
from executor.errors import Unreachable

_ACCOUNT = """
SELECT a.account_id, a.name, a.address, a.first_nonce, a.genesis_hash, a.state, a.attention, count(r.nonce) AS reserved,
       max(r.nonce) FILTER (WHERE r.state = 'CLOSED') AS closed, count(*) FILTER (WHERE r.closed_as = 'foreign') AS others,
       (SELECT count(*) FROM acknowledged_nonce k WHERE k.account_id = :account) AS acknowledged
  FROM account a LEFT JOIN nonce_reservation r ON r.account_id = :account WHERE a.account_id = :account GROUP BY a.account_id
"""
_ATTEMPTS = """
SELECT r.account_id, r.nonce, r.execution_id, r.step, t.seq, t.status, t.hash, r.state, r.closed_as, r.closed_seq, r.witness_number, r.witness_hash,
       r.witness_rule, c.block_number, c.block_hash, c.status AS receipt_status
  FROM nonce_reservation r
  LEFT JOIN (SELECT nonce, seq, status, hash FROM attempt WHERE account_id = :account AND {range nonce} AND hash IS NOT NULL) t ON t.nonce = r.nonce
  LEFT JOIN LATERAL (SELECT block_number, block_hash, status FROM receipt c
     WHERE (c.account_id, c.nonce, c.seq) = (r.account_id, r.nonce, t.seq) AND c.orphaned_at IS NULL OFFSET 0) c ON true
 WHERE r.account_id = :account AND {range r.nonce} ORDER BY r.nonce, t.seq
"""
_NEWEST = """
SELECT nonce, witness_rule, witness_number FROM nonce_reservation WHERE account_id = :account AND state = 'CLOSED'
 ORDER BY witness_number DESC NULLS LAST, nonce DESC LIMIT 1
"""
_ROW = ("account account_id",)
_NONCE = ("nonce_reservation account_id nonce",)
_ATTEMPT = (*_NONCE, "attempt account_id nonce seq")
_ABOVE = Kind(
    "G7",
    "used-above",
    "the chain counts {above} nonces of account {name} above every reservation, and it is not halted: the key was used elsewhere, or rows were lost",
    _ROW,
)
_OUTSIDE = Kind(
    "G7",
    "used-outside",
    "{outside} nonces of account {name} carry transactions on chain that are not ours, and nothing says so: a step waits for a nonce that is gone",
    _ROW,
)
_UNCOUNTED = Kind(
    "G10",
    "closed-uncounted",
    "nonce {closed} of account {name} is CLOSED, and the chain counts {count} at the final block {final}: its end was declared early",
    _ROW,
)
_SHALLOW = Kind(
    "G10",
    "witness-shallow",
    "block {witness_number} proved nonce {nonce} of account {name} final, and {witness_rule} reaches only {final} now: it was not final",
    _NONCE,
)
_GENESIS = Kind(
    "G9",
    "other-genesis",
    "account {name} began on the chain of genesis {genesis_hash}, the endpoint serves {genesis}, and the account is not halted",
    _ROW,
)
_MINED_BESIDE = Kind(
    "G10",
    "mined-beside",
    "nonce {nonce} of account {account} is CLOSED by something else, and its attempt {seq} stands in block {number}: what happened is not what was recorded",
    _ATTEMPT,
)
_NOT_ON_CHAIN = Kind(
    "G10",
    "not-on-chain",
    "nonce {nonce} of account {account} is CLOSED by attempt {seq}, which stands in no canonical block: step {step} of {execution_id} did not happen",
    _ATTEMPT,
)
_OTHER_BLOCK = Kind(
    "G10",
    "other-block",
    "attempt {seq} of nonce {nonce} of account {account} stands in block {number}, its receipt row names another block {block_number}: it was believed on another branch",
    _ATTEMPT,
)
_OTHER_STATUS = Kind(
    "G10",
    "other-status",
    "attempt {seq} of nonce {nonce} of account {account} has status {on_chain} on chain, its receipt row {receipt_status}: its effect is recorded wrongly",
    _ATTEMPT,
)
_WITNESS_GONE = Kind(
    "G10",
    "witness-gone",
    "block {witness_number}, which proved nonce {nonce} of account {account} final, is not canonical: the chain was reorganised past finality (P14)",
    _NONCE,
)
KINDS = (
    _ABOVE,
    _OUTSIDE,
    _UNCOUNTED,
    _SHALLOW,
    _GENESIS,
    _MINED_BESIDE,
    _NOT_ON_CHAIN,
    _OTHER_BLOCK,
    _OTHER_STATUS,
    _WITNESS_GONE,
)


def check_account(reader: Reader, node: Node, account: int, parts: Sequence[Range], findings: Findings) -> None:
    """Compare one account with its chain. The count of nonces is asked before the rows, so rows are never behind it.

    Raises Unreachable when the chain does not answer.
    """
    with reader.slice() as cut:
        address = bytes(cut.row("SELECT address FROM account WHERE account_id = :account", account=account)["address"])
    head = node.head()
    latest = node.nonce(address, head)
    with reader.slice() as cut:
        row = cut.row(_ACCOUNT, account=account)
    if row["first_nonce"] is None:
        return
    genesis = node.block_hashes([0])[0]
    if (
        row["genesis_hash"] is not None
        and genesis not in (None, bytes(row["genesis_hash"]))
        and row["state"] != "halted"
    ):
        findings.add(_GENESIS, {**row, "genesis": genesis})
    mined = 0
    for part in parts:
        with reader.slice() as cut:
            rows = cut.rows(_ATTEMPTS, part, account=account)
        mined += _Part(node, findings).check(rows, head)
    findings.counts["transactions_on_chain"] += mined
    _count_nonces(row, latest, mined, findings)
    if row["closed"] is not None:
        _check_final(reader, node, row, findings)


def _count_nonces(row: Mapping[str, Any], latest: int, mined: int, findings: Findings) -> None:
    used = latest - row["first_nonce"]
    told = {
        **row,
        "latest": latest,
        "mined": mined,
        "outside": used - mined - row["others"] - row["acknowledged"],
        "above": used - row["reserved"] - row["acknowledged"],
    }
    if told["outside"] <= 0:
        return
    if row["state"] == "halted" or (row["attention"] and told["above"] <= 0):
        findings.notices.append(
            f"account {row['name']}: {told['outside']} nonces were used outside this installation; it is known ({row['state']})."
        )
    else:
        findings.add(_ABOVE if told["above"] > 0 else _OUTSIDE, told)


def _check_final(reader: Reader, node: Node, row: Mapping[str, Any], findings: Findings) -> None:
    """Every CLOSED nonce is used at the newest block that its rule calls final now."""
    with reader.slice() as cut:
        witness = cut.row(_NEWEST, account=row["account_id"])
    final = final_block(node, witness["witness_rule"])
    if final is None:
        findings.not_checked.append(
            f"G10: account {row['name']} names a finality rule that is not known here: {witness['witness_rule']}."
        )
        return
    told = {**row, **witness, "final": final}
    if witness["witness_number"] is not None and final < witness["witness_number"]:
        findings.add(_SHALLOW, told)
        return
    try:
        count = node.nonce(bytes(row["address"]), final)
    except Unreachable as error:
        findings.not_checked.append(f"G7: nonce of account {row['name']} at block {final}: {error}")
        return
    if count <= row["closed"]:
        findings.add(_UNCOUNTED, {**told, "count": count})


def final_block(node: Node, rule: str | None) -> int | None:
    """The newest block that is final by a stored rule: safe, finalized or `depth N`. None for a rule that is none of these."""
    if rule in ("safe", "finalized"):
        return node.tagged(rule) or 0
    depth = re.fullmatch(r"depth (\d+)", rule or "")
    return None if depth is None else max(0, node.head() - int(depth[1]))


class _Part:
    """The attempts of one range of nonces beside their receipts."""

    def __init__(self, node: Node, findings: Findings) -> None:
        self._node = node
        self._findings = findings

    def check(self, rows: Sequence[Mapping[str, Any]], head: int) -> int:
        """How many nonces carry one of our transactions in a block up to `head`."""
        receipts = self._node.receipts([bytes(row["hash"]) for row in rows if row["hash"] is not None])
        closed = [row for row in rows if row["state"] == "CLOSED"]
        numbers = {r.number for r in receipts.values() if r} | {
            number for row in closed for number in (row["block_number"], row["witness_number"]) if number is not None
        }
        self._canonical = self._node.block_hashes(sorted(numbers))
        mined: dict[int, bytes] = {}
        for row in rows:
            found = receipts.get(bytes(row["hash"])) if row["hash"] is not None else None
            if found is not None and self._canonical[found.number] == found.block_hash:
                if found.number <= head:
                    mined[row["nonce"]] = bytes(row["hash"])
            else:
                found = None
            if row["state"] == "CLOSED":
                self._closed(row, found)
        self._witnesses(closed)
        self._findings.counts["receipts_compared"] += len(closed)
        return len(mined)

    def _closed(self, row: Mapping[str, Any], found: Mined | None) -> None:
        if row["closed_as"] != "attempt" or row["closed_seq"] != row["seq"]:
            if found is not None:
                self._findings.add(_MINED_BESIDE, {**row, "number": found.number})
        elif found is None:
            self._findings.add(_NOT_ON_CHAIN, row)
        elif (found.number, found.block_hash) != (row["block_number"], row["block_hash"]):
            self._findings.add(_OTHER_BLOCK, {**row, "number": found.number})
        elif found.status != row["receipt_status"]:
            self._findings.add(_OTHER_STATUS, {**row, "on_chain": found.status})

    def _witnesses(self, closed: Sequence[Mapping[str, Any]]) -> None:
        """P14: the block that proved a closing is still the canonical one at its height."""
        told: set[tuple[int, bytes]] = set()
        for row in closed:
            number, kept = row["witness_number"], row["witness_hash"]
            if number is None or kept is None or (number, bytes(kept)) in told:
                continue
            told.add((number, bytes(kept)))
            if self._canonical[number] != kept:
                self._findings.add(_WITNESS_GONE, row)
