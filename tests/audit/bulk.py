"""Many ended executions with real signatures, quickly: signed here, carried out by a node if one is given, rows made by the server."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import psycopg

from chain.keccak import keccak
from chain.transaction import UnsignedTransaction, cancel_digest, intent_digest
from devnet.testing import NodeProcess
from signer.key import Key
from tests.bench.nodes import Connection

GWEI = 10**9
GAS, MAX_FEE, TIP = 21_000, 500 * GWEI, GWEI
PAYEE = bytes.fromhex("70997970c51812dc3a010c7d01b50e0d17dc79c8")
_BATCH, _PER_BLOCK = 100, 1000
_DISARMED = (
    "account", "lease", "lease_generation", "strategy", "execution", "intent", "nonce_reservation", "attempt", "broadcast",
    "receipt", "history", "signer.account", "signer.binding", "signer.signature",
)  # fmt: skip
_STAGING = """
CREATE TEMP TABLE made (n bigint PRIMARY KEY, account_id int, nonce bigint, value numeric, digest bytea, sighash bytea, raw bytea,
                        hash bytea, block_number bigint, block_hash bytea)
"""
_COPY = "COPY made (n, account_id, nonce, value, digest, sighash, raw, hash, block_number, block_hash) FROM STDIN"
_SLOT = "timestamptz '2026-01-01 00:00Z' + n * interval '1 minute'"
_ID = f"'payroll-' || account_id || '/' || to_char(({_SLOT}) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI\"Z\"')"
_ROWS = (
    f"""INSERT INTO execution (execution_id, strategy, slot, account_id, revision, payload_digest, state, due_at, plan_order, steps,
         steps_effective, token, planned_at, ended_at)
        SELECT {_ID}, 'payroll-' || account_id, {_SLOT}, account_id, 'r1', sha256('x'), 'SUCCEEDED', {_SLOT}, 'together', 1, 1, 1, now(), now()
          FROM made""",
    f"""INSERT INTO intent (execution_id, step, account_id, recipient, value, data, access_list, gas, digest, token)
        SELECT {_ID}, 0, account_id, %(payee)s, value, '', '[]', {GAS}, digest, 1 FROM made""",
    f"""INSERT INTO nonce_reservation (account_id, nonce, execution_id, step, intent_digest, transaction_type, token, state, closed_as,
         closed_seq, effect, witness_number, witness_hash, witness_rule, witness_endpoints, closed_at)
        SELECT account_id, nonce, {_ID}, 0, digest, 2, 1, 'CLOSED', 'attempt', 0, true, block_number, block_hash, 'depth 0', '{{node}}', now()
          FROM made""",
    f"""INSERT INTO attempt (account_id, nonce, seq, kind, status, intent_digest, gas, max_fee, tip, raw, hash, token, signed_at, signed_token,
         sent_at, sent_token)
        SELECT account_id, nonce, 0, 'SEND', 'FINAL', digest, {GAS}, {MAX_FEE}, {TIP}, raw, hash, 1, now(), 1, now(), 1 FROM made""",
    """INSERT INTO broadcast (account_id, nonce, seq, endpoint, verdict, token) SELECT account_id, nonce, 0, 'node', 'accepted', 1 FROM made""",
    f"""INSERT INTO receipt (account_id, nonce, seq, block_number, block_hash, status, gas_used, effective_gas_price, token)
        SELECT account_id, nonce, 0, block_number, block_hash, 1, {GAS}, {GWEI}, 1 FROM made""",
    f"""INSERT INTO history (kind, subject, account_id, from_state, to_state, why, token)
        SELECT h.kind, CASE h.kind WHEN 'execution' THEN {_ID} WHEN 'nonce' THEN account_id || '/' || nonce
                       ELSE account_id || '/' || nonce || '/0' END, account_id, from_state, to_state,
               CASE h.kind WHEN 'nonce' THEN CASE WHEN from_state IS NULL THEN {_ID} || ' step 0' ELSE 'by attempt 0' END END,
               CASE WHEN h.to_state = 'PENDING' THEN NULL ELSE 1 END
          FROM made, (VALUES (1, 'execution', NULL, 'PENDING'), (2, 'execution', 'PENDING', 'PLANNED'), (3, 'nonce', NULL, 'OPEN'),
            (4, 'attempt', NULL, 'DRAFT'), (5, 'execution', 'PLANNED', 'RUNNING'), (6, 'attempt', 'DRAFT', 'SIGNED'),
            (7, 'attempt', 'SIGNED', 'SENT'), (8, 'attempt', 'SENT', 'MINED'), (9, 'attempt', 'MINED', 'FINAL'),
            (10, 'nonce', 'OPEN', 'CLOSED'), (11, 'execution', 'RUNNING', 'SUCCEEDED')) h (at, kind, from_state, to_state)
         ORDER BY n, h.at""",
    f"""INSERT INTO signer.binding SELECT a.chain_id, a.address, nonce, {_ID.replace("account_id", "m.account_id")}, 0, digest, 2, 'intent'
          FROM made m JOIN account a ON a.account_id = m.account_id""",
    f"""INSERT INTO signer.signature (chain_id, address, nonce, sighash, kind, max_fee_wei, tip_wei, gas, token, raw, hash)
        SELECT a.chain_id, a.address, nonce, sighash, 'SEND', {MAX_FEE}, {TIP}, {GAS}, 1, raw, hash FROM made JOIN account a USING (account_id)""",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Made:
    n: int
    account: int
    nonce: int
    value: int
    digest: bytes
    sighash: bytes
    raw: bytes
    hash: bytes


def fill(
    connection: psycopg.Connection, count: int, keys: Sequence[bytes], chain_id: int, node: NodeProcess | None = None
) -> None:
    """`count` payments of ended executions, spread over an account for each key, all from nonce 0; without `node` their blocks are made up."""
    signers = [Key(key) for key in keys]
    for table in _DISARMED:
        connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
    accounts = [_account(connection, at, signer.address, chain_id) for at, signer in enumerate(signers)]
    made = [
        _sign(n, accounts[n % len(signers)], signers[n % len(signers)], n // len(signers), chain_id)
        for n in range(count)
    ]
    blocks = {} if node is None else _carry_out(node, made)
    connection.execute(_STAGING)
    with connection.cursor().copy(_COPY) as copy:
        for one in made:
            number, block = blocks.get(one.hash, (one.n // _PER_BLOCK + 1, keccak(b"block %d" % (one.n // _PER_BLOCK))))
            told = (one.n, one.account, one.nonce, one.value, one.digest, one.sighash, one.raw, one.hash, number, block)
            copy.write_row(told)
    for statement in _ROWS:
        connection.execute(statement, {"payee": PAYEE} if "%(payee)s" in statement else None)
    connection.execute("DROP TABLE made")
    for table in _DISARMED:
        connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER ALL")


def _account(connection: psycopg.Connection, at: int, address: bytes, chain_id: int) -> int:
    row = connection.execute(
        "INSERT INTO account (name, chain_id, address, cancel_digest, first_nonce, fence, timeline, max_in_flight)"
        " VALUES (%s, %s, %s, %s, 0, 1, current_timeline(), 16) RETURNING account_id",
        (f"payer-{at}", chain_id, address, cancel_digest(chain_id, address)),
    ).fetchone()
    assert row is not None
    (account,) = row
    for statement in (
        "INSERT INTO lease (account_id, token, lease_id) VALUES (%s, 1, '00000000-0000-0000-0000-000000000001')",
        "INSERT INTO lease_generation (account_id, token, lease_id, holder) VALUES (%s, 1, '00000000-0000-0000-0000-000000000001', 'w')",
        "INSERT INTO signer.account SELECT chain_id, address, 1, '00000000-0000-0000-0000-000000000001' FROM account WHERE account_id = %s",
        (
            "INSERT INTO strategy (name, account_id, plan, schedule, timezone, misfire, overlap, params, revision, high_water_mark)"
            " SELECT 'payroll-' || account_id, account_id, 'm:plan', '* * * * *', 'UTC', 'all', 'allow', '{}', 'r1', '2100-01-01'"
            " FROM account WHERE account_id = %s"
        ),
    ):
        connection.execute(statement, (account,))
    return int(account)


def _sign(n: int, account: int, signer: Key, nonce: int, chain_id: int) -> _Made:
    transaction = UnsignedTransaction(
        chain_id=chain_id, nonce=nonce, type=2, to=PAYEE, value_wei=n + 1, data=b"", gas=GAS, max_fee_wei=MAX_FEE, tip_wei=TIP
    )  # fmt: skip
    raw = signer.sign(transaction)
    digest = intent_digest(chain_id, signer.address, PAYEE, n + 1, b"", ())
    return _Made(n, account, nonce, n + 1, digest, transaction.signing_hash(), raw, keccak(raw))


def _carry_out(node: NodeProcess, made: Sequence[_Made]) -> dict[bytes, tuple[int, bytes]]:
    """Send all to a node that mines on order; where each transaction stands."""
    line = Connection(node.host, node.port)
    try:
        for at in range(0, len(made), _PER_BLOCK):
            for body in _bodies(made[at : at + _PER_BLOCK]):
                answer = line.post(body)
                assert b'"error"' not in answer, answer[:300]
            node.rpc("evm_mine")
    finally:
        line.close()
    found = {}
    for number in range(1, int(node.rpc("eth_blockNumber"), 16) + 1):
        block = node.rpc("eth_getBlockByNumber", hex(number), False)
        place = number, bytes.fromhex(block["hash"][2:])
        found.update({bytes.fromhex(one[2:]): place for one in block["transactions"]})
    assert len(found) == len(made), (len(found), len(made))
    return found


def _bodies(made: Sequence[_Made]) -> Iterator[bytes]:
    for at in range(0, len(made), _BATCH):
        calls = [
            {"jsonrpc": "2.0", "id": one.n, "method": "eth_sendRawTransaction", "params": ["0x" + one.raw.hex()]}
            for one in made[at : at + _BATCH]
        ]
        yield json.dumps(calls).encode()
