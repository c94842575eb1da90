"""G3 and G5, byte by byte: what each stored transaction says when it is read back, beside the rows it was made from."""

from collections.abc import Iterator, Mapping
from typing import Any

from chain.errors import InvalidTransaction
from chain.keccak import keccak
from chain.transaction import SignedTransaction, decode, intent_digest
from executor.audit.reading import Check, Range, Slice
from executor.audit.report import Findings

_ATTEMPTS = """
SELECT a.account_id, a.nonce, a.seq, a.kind, a.status, a.gas, a.max_fee::text AS max_fee, a.tip::text AS tip, a.raw, a.hash,
       coalesce(a.intent_digest, a.cancel_digest) AS attempt_digest, r.transaction_type, r.intent_digest AS reserved_digest,
       r.execution_id, r.step, i.recipient, i.value::text AS value, i.data, i.access_list, i.digest, c.chain_id, c.address
  FROM attempt a JOIN nonce_reservation r USING (account_id, nonce) JOIN account c USING (account_id)
  LEFT JOIN intent i USING (execution_id, step)
 WHERE a.account_id = :account AND a.raw IS NOT NULL AND {range r.nonce}
"""
_OTHER_HASH = "has a hash that is not keccak of its bytes"
_UNRESERVED = """
SELECT i.execution_id, i.step, i.recipient, i.value::text AS value, i.data, i.access_list, i.digest, c.chain_id, c.address
  FROM intent i JOIN account c USING (account_id)
 WHERE {range i.execution_id} AND NOT EXISTS (SELECT 1 FROM attempt a JOIN nonce_reservation r USING (account_id, nonce)
   WHERE (r.execution_id, r.step) = (i.execution_id, i.step) AND a.raw IS NOT NULL AND a.kind <> 'CANCEL')
"""
WHOLE = (
    Check(
        "G5",
        "the transaction {hash} is stored as {found} attempts: {attempts}",
        """
        SELECT hash, count(*) AS found, array_agg(account_id || '/' || nonce || '/' || seq ORDER BY account_id, nonce, seq) AS attempts
          FROM attempt WHERE hash IS NOT NULL GROUP BY hash HAVING count(*) > 1
        """,
    ),
)
NONCES = (
    Check(
        "G5",
        "attempt {seq} of nonce {nonce} of account {account_id} is {status} and has {has} signed bytes",
        """
        SELECT a.account_id, a.nonce, a.seq, a.status, CASE WHEN a.raw IS NULL THEN 'no' ELSE 'already' END AS has FROM attempt a
         WHERE a.account_id = :account AND {range a.nonce}
           AND CASE WHEN a.status IN ('SIGNED', 'SENT', 'MINED', 'FINAL') THEN a.raw IS NULL OR a.hash IS NULL
                    WHEN a.status IN ('DRAFT', 'REFUSED') THEN a.raw IS NOT NULL END
        """,
    ),
    Check(
        "G3",
        "attempt {seq} of nonce {nonce} of account {account_id} names another intent than its nonce",
        """
        SELECT a.account_id, a.nonce, a.seq, a.kind, a.intent_digest, r.intent_digest AS reserved, i.digest AS wanted
          FROM attempt a JOIN nonce_reservation r USING (account_id, nonce) JOIN account c USING (account_id)
          LEFT JOIN intent i USING (execution_id, step)
         WHERE a.account_id = :account AND {range a.nonce}
           AND (i.digest IS DISTINCT FROM r.intent_digest OR coalesce(a.intent_digest, a.cancel_digest) IS DISTINCT FROM
                CASE WHEN a.kind = 'CANCEL' THEN c.cancel_digest ELSE r.intent_digest END)
        """,
    ),
)


def check_bytes(cut: Slice, part: Range, account: int, findings: Findings) -> int:
    """Read every stored transaction of a range of nonces back; how many there were."""
    rows = cut.rows(_ATTEMPTS, part, account=account)
    for row in rows:
        for promise, why in _faults(row):
            told = {
                key: row[key] for key in ("account_id", "nonce", "seq", "kind", "execution_id", "step", "hash", "raw")
            }
            findings.add(promise, "attempt {seq} of nonce {nonce} of account {account_id} {why}", {**told, "why": why})
    return len(rows)


def check_intents(cut: Slice, part: Range, findings: Findings) -> None:
    """The digest of every intent that no signed bytes have proved."""
    for row in cut.rows(_UNRESERVED, part):
        if _wanted_digest(row) != bytes(row["digest"]):
            told = {key: row[key] for key in ("execution_id", "step", "digest")}
            findings.add("G3", "the digest of step {step} of {execution_id} is not that of its call", told)


def _faults(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    raw = bytes(row["raw"])
    try:
        found = decode(raw)
    except InvalidTransaction as error:
        if keccak(raw) != row["hash"]:
            yield "G5", _OTHER_HASH
        yield "G3", f"cannot be read back: {error}"
        return
    if found.hash != row["hash"]:
        yield "G5", _OTHER_HASH
    yield from _identity(row, found)
    yield from _call(row, found)
    unsigned = found.unsigned
    if (unsigned.gas, unsigned.max_fee_wei, unsigned.tip_wei) != (row["gas"], int(row["max_fee"]), int(row["tip"])):
        yield "G5", "was signed with other gas or fees than its row says"


def _identity(row: Mapping[str, Any], found: SignedTransaction) -> Iterator[tuple[str, str]]:
    unsigned = found.unsigned
    wanted = {
        "chain id": (unsigned.chain_id, row["chain_id"]),
        "nonce": (unsigned.nonce, row["nonce"]),
        "sender": (found.sender, bytes(row["address"])),
        "type": (unsigned.type, row["transaction_type"]),
    }
    for name, (signed, stored) in wanted.items():
        if signed != stored:
            yield "G3", f"was signed with another {name} than its row says"


def _call(row: Mapping[str, Any], found: SignedTransaction) -> Iterator[tuple[str, str]]:
    unsigned, sender = found.unsigned, bytes(row["address"])
    call = (unsigned.to, unsigned.value_wei, unsigned.data, unsigned.access_list)
    if row["kind"] == "CANCEL":
        if call != (sender, 0, b"", ()):
            yield "G3", "is a cancel and does something"
        return
    if row["value"] is None:
        yield "G3", "has no intent"
        return
    if call != _wanted(row):
        yield "G3", "does not do what its intent says"
        return
    digest = intent_digest(row["chain_id"], sender, *call)
    if not digest == row["reserved_digest"] == row["attempt_digest"] == row["digest"]:
        yield "G3", "has another digest than its intent, reservation or row"


def _wanted(row: Mapping[str, Any]) -> tuple[bytes | None, int, bytes, tuple[tuple[bytes, tuple[bytes, ...]], ...]]:
    access_list = tuple(
        (bytes.fromhex(address[2:]), tuple(bytes.fromhex(key[2:]) for key in keys))
        for address, keys in row["access_list"]
    )
    return row["recipient"], int(row["value"]), bytes(row["data"]), access_list


def _wanted_digest(row: Mapping[str, Any]) -> bytes:
    return intent_digest(row["chain_id"], bytes(row["address"]), *_wanted(row))
