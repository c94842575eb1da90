"""The signer over a real journal: histories, refusals with evidence, crashes, races, fences, constraints."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from chain.transaction import decode
from signer.errors import BadSignature, StaleFence, Unavailable, UnknownAccount
from signer.request import Kind, RefusalReason, Refused, Signed
from signer.service import CRASH_POINTS, Signer
from tests.signer.conftest import CHAIN_ID, GWEI, LocalKey, World

HIGHER = {"max_fee_wei": 12 * GWEI, "tip_wei": 2 * GWEI}
HIGHEST = {"max_fee_wei": 15 * GWEI, "tip_wei": 3 * GWEI}


def one(world: World, request, fence=None):
    return world.signer.sign(fence or world.fence(), [request])[0]


def assert_guard(answer, *words: str) -> None:
    assert isinstance(answer, Refused), answer
    assert answer.reason is RefusalReason.GUARD
    for word in words:
        assert word in answer.detail


def test_a_send_is_signed_once_and_replayed_byte_for_byte(world: World) -> None:
    request = world.request()
    first = one(world, request)
    assert isinstance(first, Signed)
    assert not first.replayed
    signed = decode(first.raw)
    assert (signed.unsigned, signed.sender, signed.hash) == (request.transaction, world.address, first.hash)
    again = one(world, request)
    assert again == Signed(first.raw, first.hash, replayed=True)
    assert world.key.touched == 1


def test_a_history_of_one_nonce(world: World) -> None:
    send = one(world, world.request())
    bump = one(world, world.request(Kind.BUMP, **HIGHER))
    assert_guard(one(world, world.request(value_wei=6)), "bound to digest")
    assert_guard(one(world, world.request(Kind.BUMP, value_wei=6, **HIGHEST)), "bound to digest")
    assert_guard(one(world, world.request(Kind.BUMP, max_fee_wei=13 * GWEI, tip_wei=2 * GWEI + 1)), "not 10 % more")
    assert_guard(one(world, world.request(execution="pay/2")), "pay/1", "pay/2")
    assert_guard(one(world, world.request(nonce=1)), "bound to nonce 0")
    cancel = one(world, world.request(Kind.CANCEL, **HIGHEST))
    assert_guard(one(world, world.request(Kind.BUMP, max_fee_wei=40 * GWEI, tip_wei=9 * GWEI)), "cancelled for ever")
    assert one(world, world.request()).raw == send.raw  # what was given out may be had again
    (entry,) = world.signer.journal(CHAIN_ID, world.address)
    assert (entry.nonce, entry.execution_id, entry.step, entry.state) == (0, "pay/1", 0, "cancel")
    assert entry.digest == world.request().intent_digest
    assert entry.hashes == (send.hash, bump.hash, cancel.hash)


def test_a_cancel_of_an_unseen_nonce_binds_it_for_ever(world: World) -> None:
    assert isinstance(one(world, world.request(Kind.CANCEL)), Signed)
    assert_guard(one(world, world.request(**HIGHEST)), "cancelled for ever")
    assert_guard(one(world, world.request(nonce=1)), "bound to nonce 0")
    assert isinstance(one(world, world.request(Kind.CANCEL, **HIGHER)), Signed)


def test_a_batch_is_answered_in_order_with_one_history(world: World) -> None:
    answers = world.signer.sign(
        world.fence(),
        [
            world.request(nonce=0, execution="a"),
            world.request(nonce=1, execution="b"),
            world.request(nonce=0, execution="a"),
            world.request(Kind.BUMP, nonce=0, execution="a", **HIGHER),
            world.request(nonce=1, execution="c"),
            world.request(Kind.CANCEL, nonce=0, execution="a", **HIGHEST),
            world.request(Kind.CANCEL, nonce=2, execution="d"),
            world.request(Kind.BUMP, nonce=0, execution="a", max_fee_wei=90 * GWEI, tip_wei=30 * GWEI),
        ],
    )
    assert [type(answer) for answer in answers] == [Signed, Signed, Signed, Signed, Refused, Signed, Signed, Refused]
    assert answers[0].raw == answers[2].raw
    states = [(entry.nonce, entry.state, len(entry.hashes)) for entry in world.signer.journal(CHAIN_ID, world.address)]
    assert states == [(0, "cancel", 3), (1, "intent", 1), (2, "cancel", 1)]
    assert world.signer.journal(CHAIN_ID, world.address, since_nonce=2)[0].execution_id == "d"


def test_sixteen_conflicting_intents_for_one_nonce_have_one_winner(world: World) -> None:
    gate = threading.Barrier(16)

    def attempt(number: int):
        gate.wait()
        return [
            world.signer.sign(
                world.fence(), [world.request(nonce=nonce, execution=f"e/{number}/{nonce}", value_wei=number)]
            )[0]
            for nonce in range(20)
        ]

    with ThreadPoolExecutor(16) as pool:
        rounds = list(pool.map(attempt, range(16)))
    for nonce in range(20):
        answers = [answers[nonce] for answers in rounds]
        assert sum(isinstance(answer, Signed) for answer in answers) == 1
        assert all(isinstance(a, Signed) or a.reason is RefusalReason.GUARD for a in answers)


def test_sixteen_threads_with_the_same_request_get_the_same_bytes(world: World) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: one(world, world.request()), range(16)))
    assert len({answer.raw for answer in answers}) == 1


class Crash(Exception):
    pass


@pytest.mark.parametrize("point", CRASH_POINTS[1:])
def test_after_a_crash_the_same_request_completes_and_another_is_refused(world: World, point: str) -> None:
    def crash(at: str) -> None:
        if at == point:
            raise Crash

    with pytest.raises(Crash):
        world.another(crash=crash).sign(world.fence(), [world.request()])
    assert_guard(one(world, world.request(execution="pay/2")), "bound to step 0 of pay/1")
    assert_guard(one(world, world.request(value_wei=6)), "bound to digest")
    answer = one(world, world.request())
    assert isinstance(answer, Signed)
    assert answer.replayed == (point == "sign.kept")


def test_a_crash_before_the_orders_are_committed_leaves_nothing(world: World) -> None:
    def crash(_: str) -> None:
        raise Crash

    with pytest.raises(Crash):
        world.another(crash=crash).sign(world.fence(), [world.request()])
    assert isinstance(one(world, world.request(execution="pay/2")), Signed)


def test_a_crash_before_the_key_was_touched_leaves_nothing_to_raise_over(world: World) -> None:
    def crash(at: str) -> None:
        if at == "sign.journaled":
            raise Crash

    with pytest.raises(Crash):
        world.another(crash=crash).sign(world.fence(), [world.request()])
    assert world.key.touched == 0
    assert isinstance(one(world, world.request(Kind.CANCEL, max_fee_wei=1, tip_wei=1)), Signed)
    assert_guard(one(world, world.request()), "cancelled for ever")


def test_a_key_that_signs_differently_every_time_has_one_outcome(world: World) -> None:
    class Restless(LocalKey):
        """Gives the deterministic signature first, and another valid one of the same key afterwards."""

        def sign(self, transaction):
            from coincurve import PrivateKey
            from coincurve._libsecp256k1 import ffi, lib

            self.touched += 1
            extra = ffi.new("char[32]", self.touched.to_bytes(32, "big"))
            made = PrivateKey(b"\x07" * 32).sign_recoverable(
                transaction.signing_hash(), hasher=None, custom_nonce=(lib.secp256k1_nonce_function_rfc6979, extra)
            )
            return transaction.encode(int.from_bytes(made[:32], "big"), int.from_bytes(made[32:64], "big"), made[64])

    key = Restless()
    entered, resume = threading.Event(), threading.Event()

    def slow(point: str) -> None:
        if point == "sign.made":
            entered.set()
            resume.wait(10)

    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(world.another(crash=slow, key=key).sign, world.fence(), [world.request()])
        assert entered.wait(10)
        early = world.another(key=key).sign(world.fence(), [world.request()])[0]
        resume.set()
        assert key.touched == 2
        assert late.result()[0].raw == early.raw


def test_an_older_fence_gets_nothing_not_even_stored_bytes(world: World) -> None:
    assert isinstance(one(world, world.request(), world.fence(5)), Signed)
    assert world.signer.current_fence(CHAIN_ID, world.address) == 5
    for fence in (world.fence(4), world.fence(5, uuid.UUID(int=2))):
        (answer,) = world.signer.sign(fence, [world.request()])
        assert answer.reason is RefusalReason.STALE
        with pytest.raises(StaleFence):
            world.signer.raise_fence(fence)
    world.signer.raise_fence(world.fence(6, uuid.UUID(int=3)))
    assert one(world, world.request(), world.fence(5)).reason is RefusalReason.STALE
    assert one(world, world.request(), world.fence(6, uuid.UUID(int=3))).replayed
    assert world.signer.current_fence(CHAIN_ID, b"\x01" * 20) == 0


def test_the_policy_refuses_before_anything_is_bound(world: World) -> None:
    account = (CHAIN_ID, world.address)
    from signer.policy import Policy

    strict = Signer(world.engine, {account: world.key}, {account: Policy(max_value_wei=4)})
    (answer,) = strict.sign(world.fence(), [world.request()])
    assert answer.reason is RefusalReason.POLICY
    assert "4 wei" in answer.detail
    assert world.signer.journal(CHAIN_ID, world.address) == []
    assert isinstance(strict.sign(world.fence(), [world.request(Kind.CANCEL)])[0], Signed)
    disguised = one(world, world.request(nonce=1, execution="x", to=world.address, value_wei=0))
    assert (disguised.reason, "reads as a cancel" in disguised.detail) == (RefusalReason.POLICY, True)


def test_a_backend_that_lies_gives_nothing_out(world: World) -> None:
    from dataclasses import replace

    class Liar(LocalKey):
        def sign(self, transaction):
            return self.key.sign(replace(transaction, value_wei=transaction.value_wei + 1))

    class Stranger(LocalKey):
        def sign(self, transaction):
            return LocalKey(b"\x08" * 32).sign(transaction)

    class Broken(LocalKey):
        def sign(self, transaction):
            raise RuntimeError("secret 0707")

    for key, words in ((Liar(), "another value_wei"), (Stranger(), "the signature is of"), (Broken(), "did not sign")):
        with pytest.raises(BadSignature, match=words) as caught:
            world.another(key=key).sign(world.fence(), [world.request()])
        assert "0707" not in str(caught.value)
        assert caught.value.__cause__ is None
    assert world.signer.journal(CHAIN_ID, world.address)[0].hashes == ()
    assert isinstance(one(world, world.request()), Signed)


def test_without_a_journal_the_key_is_not_touched(world: World) -> None:
    with world.engine.begin() as connection:
        connection.execute(text("ALTER TABLE signer.signature RENAME TO lost"))
    with pytest.raises(Unavailable, match="42P01"):
        world.signer.sign(world.fence(), [world.request()])
    assert world.key.touched == 0


def test_an_unknown_account_is_told(world: World) -> None:
    empty = Signer(world.engine, {}, {})
    with pytest.raises(UnknownAccount):
        empty.sign(world.fence(), [world.request()])
    with pytest.raises(UnknownAccount):
        Signer(world.engine, {(CHAIN_ID, b"\x01" * 20): world.key}, {})
    assert empty.addresses() == []
    assert world.signer.addresses() == [(CHAIN_ID, world.address)]


def test_the_largest_numbers_come_back_exactly(world: World) -> None:
    most = (1 << 256) - 1
    request = world.request(nonce=(1 << 63) - 1, max_fee_wei=most, tip_wei=most, value_wei=most, gas=(1 << 64) - 1)
    assert isinstance(one(world, request), Signed)
    with world.engine.connect() as connection:
        row = connection.execute(text("SELECT max_fee_wei, gas, tip_wei FROM signer.signature")).one()
    assert (int(row.max_fee_wei), int(row.tip_wei), int(row.gas)) == (most, most, (1 << 64) - 1)
    assert_guard(one(world, world.request(nonce=1 << 63, execution="x")), "is above")


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("DELETE FROM signer.account", "account_no_delete"),
        ("DELETE FROM signer.binding", "binding_no_delete"),
        ("DELETE FROM signer.signature", "signature_no_delete"),
        ("DELETE FROM signer.signature WHERE false", "signature_no_delete"),
        ("TRUNCATE signer.account CASCADE", "account_no_truncate"),
        ("TRUNCATE signer.binding CASCADE", "binding_no_truncate"),
        ("TRUNCATE signer.signature", "signature_no_truncate"),
        ("UPDATE signer.account SET fence = 1", "account_fence_never_falls"),
        ("UPDATE signer.account SET lease_id = gen_random_uuid()", "account_fence_never_falls"),
        ("UPDATE signer.binding SET digest = sha256('x')", "binding_only_to_cancel"),
        ("UPDATE signer.binding SET execution_id = 'other', state = 'cancel'", "binding_only_to_cancel"),
        ("UPDATE signer.binding SET state = 'intent'", "binding_only_to_cancel"),
        ("UPDATE signer.signature SET raw = 'x'", "signature_bytes_once"),
        ("UPDATE signer.signature SET raw = NULL, hash = NULL", "signature_bytes_once"),
        ("UPDATE signer.signature SET tip_wei = 0", "signature_bytes_once"),
        (
            "INSERT INTO signer.signature SELECT chain_id, address, nonce, sha256('x'), 'BUMP', 1, 1, 21000, 1, raw, hash FROM signer.signature",
            "signature_no_bytes_at_birth",
        ),
        (
            "INSERT INTO signer.signature SELECT chain_id, address, nonce, sha256('x'), 'CANCEL', 1, 1, 21000, 1 FROM signer.signature",
            "signature_fits_state",
        ),
        (
            "INSERT INTO signer.binding SELECT chain_id, address, 1, execution_id, step, digest, tx_type, state FROM signer.binding",
            "binding_step_once",
        ),
        (
            "INSERT INTO signer.binding SELECT chain_id, address, nonce, 'x', step, digest, tx_type, state FROM signer.binding",
            "binding_pkey",
        ),
        (
            "INSERT INTO signer.signature SELECT chain_id, address, nonce, sha256('x'), 'BUMP', 'NaN', 1, 21000, 1 FROM signer.signature",
            "signature_max_fee_range",
        ),
    ],
)
def test_the_journal_refuses_by_name(world: World, statement: str, constraint: str) -> None:
    one(world, world.request(), world.fence(2))
    for setting in ("origin", "replica"):  # a replica's session skips triggers that are not ENABLE ALWAYS
        with world.engine.connect() as connection:
            connection.execute(text(f"SET session_replication_role = {setting}"))
            with pytest.raises(IntegrityError) as caught:
                connection.execute(text(statement))
            assert caught.value.orig.diag.constraint_name == constraint


def test_after_a_cancel_the_database_takes_no_other_signature(world: World) -> None:
    one(world, world.request(Kind.CANCEL))
    insert = (
        "INSERT INTO signer.signature SELECT chain_id, address, nonce, sha256('x'), 'BUMP', 1, 1, 21000, 1"
        " FROM signer.signature"
    )
    with world.engine.connect() as connection, pytest.raises(IntegrityError) as caught:
        connection.execute(text(insert))
    assert caught.value.orig.diag.constraint_name == "signature_fits_state"
