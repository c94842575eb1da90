"""G3 and G5, byte by byte: what each stored transaction says when it is read back, beside the rows it was made from.

Reading back costs most of an audit (a signature's key is recovered), so large databases are read by processes of their own.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from chain.errors import InvalidTransaction
from chain.keccak import keccak
from chain.transaction import SignedTransaction, cancel_digest, decode, intent_digest
from executor.audit.reading import Range, Reader, Slice
from executor.audit.report import Findings, Kind

_ATTEMPTS = """
SELECT a.account_id, a.nonce, a.seq, a.kind, a.status, a.gas, a.max_fee::text AS max_fee, a.tip::text AS tip, a.raw, a.hash,
       coalesce(a.intent_digest, a.cancel_digest) AS attempt_digest, r.transaction_type, r.intent_digest AS reserved_digest,
       r.execution_id, r.step, i.recipient, i.value::text AS value, i.data, nullif(i.access_list, '[]'::jsonb) AS access_list, i.digest,
       c.chain_id, c.address
  FROM (SELECT * FROM attempt t WHERE t.account_id = :account AND t.raw IS NOT NULL AND {range t.nonce} OFFSET 0) a
  JOIN nonce_reservation r ON r.account_id = :account AND {range r.nonce} AND r.nonce = a.nonce
  JOIN account c ON c.account_id = :account
  LEFT JOIN LATERAL (SELECT * FROM intent i WHERE (i.execution_id, i.step) = (r.execution_id, r.step) OFFSET 0) i ON true
"""
_UNPROVED = """
SELECT * FROM (
  SELECT i.execution_id, i.step, i.recipient, i.value::text AS value, i.data, nullif(i.access_list, '[]'::jsonb) AS access_list, i.digest,
         c.chain_id, c.address,
         (SELECT count(*) FROM nonce_reservation r JOIN LATERAL (SELECT 1 FROM attempt a WHERE (a.account_id, a.nonce) = (r.account_id, r.nonce)
             AND a.raw IS NOT NULL AND a.kind <> 'CANCEL' OFFSET 0) a ON true
           WHERE (r.execution_id, r.step) = (i.execution_id, i.step)) AS proofs
    FROM intent i JOIN account c ON c.account_id = i.account_id WHERE {range i.execution_id}) intended WHERE proofs = 0
"""
_ACCOUNT = "SELECT account_id, chain_id, address, cancel_digest FROM account WHERE account_id = :account"
_KEY = ("attempt account_id nonce seq",)
_BOTH = (*_KEY, "intent execution_id step")
_OF = "attempt {seq} of nonce {nonce} of account {account}"
_OTHER_HASH = Kind(
    "G5",
    "other-hash",
    f"{_OF} has a hash that is not keccak of its bytes: the chain is asked for another transaction",
    _KEY,
)
_OTHER_FEES = Kind(
    "G5",
    "other-fees",
    f"{_OF} was signed with other gas or fees than its row says: what it may cost is not what was decided",
    _KEY,
)
_UNREADABLE = Kind(
    "G3", "unreadable", f"{_OF} cannot be read back: {{why}}. What it does on chain cannot be told", _KEY
)
_OTHER_IDENTITY = Kind(
    "G3",
    "other-identity",
    f"{_OF} was signed with another {{what}} than its row says: it is not this nonce that it uses",
    _KEY,
)
_CANCEL_ACTS = Kind(
    "G3", "cancel-acts", f"{_OF} is a cancel and does something: it acts where nothing was to happen", _KEY
)
_NO_INTENT = Kind(
    "G3", "no-intent", f"{_OF} was signed for step {{step}} of {{execution_id}}, of which there is no intent", _KEY
)
_OTHER_CALL = Kind(
    "G3",
    "other-call",
    f"{_OF} does not do what step {{step}} of {{execution_id}} wanted: it pays something else",
    _BOTH,
)
_OTHER_DIGEST = Kind(
    "G3",
    "other-digest",
    f"{_OF} has another digest than its intent, reservation or row: the digests guard nothing (P24)",
    _BOTH,
)
_INTENT_DIGEST = Kind(
    "G3",
    "intent-digest",
    "the digest of step {step} of {execution_id} is not that of its call: another call can take its place (P24)",
    ("intent execution_id step",),
)
_READS_AS_CANCEL = Kind(
    "G3",
    "reads-as-cancel",
    "step {step} of {execution_id} sends nothing to its own account: on chain it cannot be told from a cancel",
    ("intent execution_id step",),
)
_CANCEL_DIGEST = Kind(
    "G3",
    "cancel-digest",
    "the cancel digest of account {account} is not that of nothing sent to itself: another call can pass for a cancel (P24)",
    ("account account_id",),
)
KINDS = (
    _OTHER_HASH,
    _OTHER_FEES,
    _UNREADABLE,
    _OTHER_IDENTITY,
    _CANCEL_ACTS,
    _NO_INTENT,
    _OTHER_CALL,
    _OTHER_DIGEST,
    _INTENT_DIGEST,
    _READS_AS_CANCEL,
    _CANCEL_DIGEST,
)


def read_back(url: str, account: int, part: Range) -> Findings:
    """Read every stored transaction of a range of nonces back, over a connection of its own. Raises as Reader does."""
    findings = Findings()
    with Reader(url) as reader:
        check_bytes(reader, part, account, findings)
    return findings


def check_bytes(reader: Reader, part: Range, account: int, findings: Findings) -> None:
    """Read every stored transaction of a range of nonces back; the snapshot ends before the work on it begins."""
    with reader.slice() as cut:
        rows = cut.rows(_ATTEMPTS, part, account=account)
    findings.counts["transactions_decoded"] += len(rows)
    for row in rows:
        for kind, more in _faults(row):
            told = ("account_id", "nonce", "seq", "kind", "execution_id", "step", "hash", "raw")
            findings.add(kind, {**{key: row[key] for key in told}, **more})


def check_account(cut: Slice, account: int, findings: Findings) -> None:
    """The digest that every cancel of an account names."""
    row = cut.row(_ACCOUNT, account=account)
    if cancel_digest(row["chain_id"], bytes(row["address"])) != bytes(row["cancel_digest"]):
        findings.add(_CANCEL_DIGEST, row)


def check_intents(cut: Slice, part: Range, findings: Findings) -> None:
    """The digest of every intent that no signed bytes have proved."""
    for row in cut.rows(_UNPROVED, part):
        told = {key: row[key] for key in ("execution_id", "step", "digest")}
        if _wanted_digest(row) != bytes(row["digest"]):
            findings.add(_INTENT_DIGEST, told)
        if _wanted(row) == (bytes(row["address"]), 0, b"", ()):
            findings.add(_READS_AS_CANCEL, told)


Fault = tuple[Kind, dict[str, Any]]


def _faults(row: Mapping[str, Any]) -> Iterator[Fault]:
    raw = bytes(row["raw"])
    try:
        found = decode(raw)
    except InvalidTransaction as error:
        if keccak(raw) != row["hash"]:
            yield _OTHER_HASH, {}
        yield _UNREADABLE, {"why": str(error)}
        return
    if found.hash != row["hash"]:
        yield _OTHER_HASH, {}
    yield from _identity(row, found)
    yield from _call(row, found)
    unsigned = found.unsigned
    if (unsigned.gas, unsigned.max_fee_wei, unsigned.tip_wei) != (row["gas"], int(row["max_fee"]), int(row["tip"])):
        yield _OTHER_FEES, {}


def _identity(row: Mapping[str, Any], found: SignedTransaction) -> Iterator[Fault]:
    unsigned = found.unsigned
    wanted = {
        "chain id": (unsigned.chain_id, row["chain_id"]),
        "nonce": (unsigned.nonce, row["nonce"]),
        "sender": (found.sender, bytes(row["address"])),
        "type": (unsigned.type, row["transaction_type"]),
    }
    for name, (signed, stored) in wanted.items():
        if signed != stored:
            yield _OTHER_IDENTITY, {"what": name}


def _call(row: Mapping[str, Any], found: SignedTransaction) -> Iterator[Fault]:
    unsigned, sender = found.unsigned, bytes(row["address"])
    call = (unsigned.to, unsigned.value_wei, unsigned.data, unsigned.access_list)
    if row["kind"] == "CANCEL":
        if call != (sender, 0, b"", ()):
            yield _CANCEL_ACTS, {}
        return
    if row["value"] is None:
        yield _NO_INTENT, {}
        return
    if call != _wanted(row):
        yield _OTHER_CALL, {}
        return
    digest = intent_digest(row["chain_id"], sender, *call)
    if not digest == row["reserved_digest"] == row["attempt_digest"] == row["digest"]:
        yield _OTHER_DIGEST, {}


def _wanted(row: Mapping[str, Any]) -> tuple[bytes | None, int, bytes, tuple[tuple[bytes, tuple[bytes, ...]], ...]]:
    access_list = tuple(
        (bytes.fromhex(address[2:]), tuple(bytes.fromhex(key[2:]) for key in keys))
        for address, keys in row["access_list"] or ()
    )
    return row["recipient"], int(row["value"]), bytes(row["data"]), access_list


def _wanted_digest(row: Mapping[str, Any]) -> bytes:
    return intent_digest(row["chain_id"], bytes(row["address"]), *_wanted(row))
