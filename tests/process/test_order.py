"""Plans of several steps: order survives a kill, a step that fails ends the plan, a refused step leaves no hole."""

import itertools

import pytest

from tests.support.service import ETHER, Service, fresh_address

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-order")]
_VALUE = ETHER // 100
_REVERTS = "0x5f5ffd"
"""PUSH0 PUSH0 REVERT."""


def test_three_steps_in_order_survive_a_kill_between(service: Service) -> None:
    wallet = service.account()
    receivers = [fresh_address() for _ in range(3)]
    service.strategy("split", f"return in_order([Call(to, {_VALUE}) for to in {receivers!r}])")
    service.register()
    first, _ = service.start_pair("finalize.recorded:kill")
    execution = service.trigger("split", "one")
    assert first.wait_ended() == -9
    (done,) = service.reservations(execution)
    assert (done["step"], done["effect"]) == (0, True)

    service.wait_state(execution, "SUCCEEDED")

    reserved = service.reservations(execution)
    assert [(row["step"], row["nonce"], row["token"]) for row in reserved] == [(0, 0, 1), (1, 1, 2), (2, 2, 2)]
    assert [service.balance(to) for to in receivers] == [_VALUE] * 3
    for before, after in itertools.pairwise(reserved):
        assert before["closed_at"] <= after["reserved_at"]
    assert service.execution(execution)["steps_effective"] == 3
    assert service.nonce(wallet.address) == 3


def test_a_step_that_reverts_ends_an_ordered_plan_as_partial(service: Service) -> None:
    wallet = service.account()
    receiver, contract, never = fresh_address(), fresh_address(), fresh_address()
    service.node.rpc("anvil_setCode", contract, _REVERTS)
    service.strategy(
        "steps",
        f"return in_order([Call({receiver!r}, {_VALUE}), Call({contract!r}, gas=100_000), Call({never!r}, {_VALUE})])",
    )
    service.register()
    service.start_worker("only")
    execution = service.trigger("steps", "one")

    service.wait_state(execution, "PARTIAL")

    assert [(row["step"], row["effect"]) for row in service.reservations(execution)] == [(0, True), (1, False)]
    assert service.execution(execution)["steps_effective"] == 1
    assert (service.balance(receiver), service.balance(never)) == (_VALUE, 0)
    assert service.nonce(wallet.address) == 2


@pytest.mark.parametrize("node_kind", ["devnet"], indirect=True)
def test_steps_together_have_consecutive_nonces_and_one_end(service: Service) -> None:
    service.account()
    receivers = [fresh_address() for _ in range(5)]
    service.strategy("payroll", f"return together([Call(to, {_VALUE}) for to in {receivers!r}])")
    service.register()
    first, _ = service.start_pair("broadcast.sent:kill")
    execution = service.trigger("payroll", "one")
    assert first.wait_ended() == -9

    service.wait_state(execution, "SUCCEEDED")

    assert [row["nonce"] for row in service.reservations(execution)] == [0, 1, 2, 3, 4]
    assert [service.balance(to) for to in receivers] == [_VALUE] * 5
    assert all(len(raws) == 1 for raws in service.proxy.raws_by_nonce().values())


def test_a_step_the_signer_refuses_is_cancelled_on_chain(service: Service) -> None:
    wallet = service.account(max_value="1 ether")
    receiver, never = fresh_address(), fresh_address()
    service.strategy("greedy", f"return in_order([Call({receiver!r}, {_VALUE}), Call({never!r}, {2 * ETHER})])")
    rent = service.pays("rent")
    service.register()
    service.start_worker("only")
    execution = service.trigger("greedy", "one")

    service.wait_state(execution, "PARTIAL")

    attempts = service.attempts(execution)
    assert [(row["nonce"], row["kind"], row["status"]) for row in attempts] == [
        (0, "SEND", "FINAL"),
        (1, "SEND", "REFUSED"),
        (1, "CANCEL", "FINAL"),
    ]
    assert "value" in attempts[1]["reason"]
    assert (service.balance(receiver), service.balance(never)) == (_VALUE, 0)
    following = service.trigger("rent", "one")
    service.assert_paid_once(following, rent)
    assert service.nonce(wallet.address) == 3
