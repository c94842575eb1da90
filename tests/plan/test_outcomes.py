"""What a plan returns or does, and what becomes of it; each in a real child process."""

from __future__ import annotations

import re

import pytest

from executor.plan_process import PlanPool
from executor.strategy_values import NothingToDo, PlanFailed, Planned, PlannedCall, PlanOutcome

from .conftest import OTHER, Strategies

RAW = bytes.fromhex(OTHER[2:])


def run(
    pool: PlanPool, strategies: Strategies, body: str, head: str = "", seconds: float = 20, **changes: object
) -> PlanOutcome:
    (result,) = pool.plan([strategies.request(strategies.write(body, head=head), **changes)], seconds)
    return result.outcome


def test_one_call_arrives_whole(pool: PlanPool, strategies: Strategies) -> None:
    body = (
        'return Call(OTHER, 5, b"\\x01", once="invoice/1", gas=50_000, label="pay", access_list=[(OTHER, [b"k" * 32])])'
    )
    call = PlannedCall(0, "invoice/1", RAW, 5, b"\x01", ((RAW, (b"k" * 32,)),), 50_000, "pay")
    assert run(pool, strategies, body) == Planned("together", (call,))


@pytest.mark.parametrize(
    ("body", "order"),
    [
        ("return together([Call(OTHER, 1), Call(OTHER, 2)])", "together"),
        ("return in_order([Call(OTHER, 1), Call(OTHER, 2)])", "final"),
        ('return in_order((Call(OTHER, n) for n in (1, 2)), after="mined")', "mined"),
    ],
)
def test_orders(pool: PlanPool, strategies: Strategies, body: str, order: str) -> None:
    outcome = run(pool, strategies, body)
    assert isinstance(outcome, Planned)
    assert outcome.order == order
    assert [(call.step, call.value_wei) for call in outcome.calls] == [(0, 1), (1, 2)]


def test_nothing_has_a_reason(pool: PlanPool, strategies: Strategies) -> None:
    assert run(pool, strategies, 'return nothing("no invoice is due")') == NothingToDo("no invoice is due")


def test_the_context_is_what_was_asked(pool: PlanPool, strategies: Strategies) -> None:
    body = """
    assert ctx.params == {"a": 1} and ctx.input == [{"b": "2"}], "params"
    assert ctx.slot.isoformat() == "2026-09-02T10:00:00+00:00", "slot"
    assert (ctx.account, ctx.chain_id, ctx.block.number) == (ACCOUNT, 31337, 7), "chain"
    return nothing(ctx.execution_id + " " + ctx.strategy)
    """
    outcome = run(pool, strategies, body, params={"a": 1}, input=[{"b": "2"}], execution_id="pay/id/k")
    assert outcome == NothingToDo("pay/id/k pay")


BAD = {
    "float value": (
        "return Call(OTHER, 1.5)",
        r"Call.value is a float; pass a whole number of wei as int. \(pay.py:6\)",
    ),
    "bool value": ("return Call(OTHER, True)", "Call.value is a bool"),
    "2^256": ("return Call(OTHER, 2**256)", "Call.value is more than a chain can hold"),
    "negative": ("return Call(OTHER, -1)", "Call.value is below 0"),
    "mistyped": ('return Call(OTHER[:-2] + "c8")', f"wrong checksum.*{OTHER}"),
    "not an address": ('return Call("alice.eth")', "is not an address; write 0x and 40 hex digits"),
    "text data": ('return Call(OTHER, 0, "0x00")', "Call.data is text; pass bytes"),
    "bare list": ("return [Call(OTHER, 1), Call(OTHER, 2)]", r"say together\(calls\) or in_order\(calls\)"),
    "bare list of one": ("return [Call(OTHER, 1)]", "return the one Call itself"),
    "empty list": ("return []", r'return nothing\("why"\)'),
    "none": ("pass", r'the plan returned None; return nothing\("why"\)'),
    "empty together": ("return together([])", r"together\(\) is empty"),
    "101 calls": ("return together([Call(OTHER, 1)] * 101)", "more than 100 calls"),
    "dict": ("return {}", "returned a value of type dict"),
    "self cancel": ("return Call(ACCOUNT)", "reads as a cancel"),
    "creation": ('return Call(None, data=b"x", create=True)', "allow_create"),
    "to with create": ('return Call(OTHER, data=b"x", create=True)', "Call.to must be None"),
    "huge": ('return together([Call(OTHER, 0, b"x" * 131072)] * 5)', "longer than 1048576 bytes"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_plan_says_why(pool: PlanPool, strategies: Strategies, name: str) -> None:
    body, pattern = BAD[name]
    outcome = run(pool, strategies, body)
    assert isinstance(outcome, PlanFailed)
    assert outcome.kind == "bad_result"
    assert re.search(pattern, outcome.message), outcome.message


def test_creation_is_planned_where_the_policy_allows_it(pool: PlanPool, strategies: Strategies) -> None:
    outcome = run(pool, strategies, 'return Call(None, data=b"x", create=True)', allow_create=True)
    assert isinstance(outcome, Planned)
    assert outcome.calls[0].to is None


DEATHS = {
    "raise": ('raise KeyError("x" * 9999)', "raised", r"^KeyError: 'x{399} \(pay.py:6\)$"),
    "raise with a hostile str": (
        "raise type('E', (Exception,), {'__str__': lambda self: 1 / 0})()", "raised", r"^E: \(no message\) \(pay.py:6\)"),
    "own base exception": ("raise type('E', (BaseException,), {})()", "crashed", "ended with exit code 1"),
    "exit": ("sys.exit(3)", "crashed", "ended with exit code 3"),
    "exit with text": ('sys.exit("no")', "crashed", "ended with exit code 1"),
    "_exit": ("os._exit(4)", "crashed", "ended with exit code 4"),
    "kill": ("os.kill(os.getpid(), 9)", "crashed", "was killed by SIGKILL"),
    "abort": ("os.abort()", "crashed", "was killed by SIGABRT"),
    "closes everything": ("os.closerange(0, 256); time.sleep(60)", "crashed", "SIGKILL"),
    "recursion": ("return plan(ctx)", "raised", "RecursionError"),
    "memory": ("raise MemoryError", "raised", "MemoryError"),
}  # fmt: skip


@pytest.mark.parametrize("name", DEATHS)
def test_a_plan_that_ends_badly_is_told_apart(pool: PlanPool, strategies: Strategies, name: str) -> None:
    body, kind, pattern = DEATHS[name]
    outcome = run(pool, strategies, body)
    assert isinstance(outcome, PlanFailed)
    assert outcome.kind == kind
    assert re.search(pattern, outcome.message), outcome.message
    assert len(outcome.message) <= 500


@pytest.mark.parametrize(
    "body",
    [
        "time.sleep(60)",
        "while True: pass",
        "while True:\n    try:\n        time.sleep(60)\n    except BaseException:\n        pass",
        "sum(range(10**12))",
        "import signal\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(60)",
        'while True: print("x" * 1000)',
    ],
)
def test_a_plan_that_hangs_is_killed_at_its_deadline(pool: PlanPool, strategies: Strategies, body: str) -> None:
    strategies.write('return nothing("warm")', name="other")
    (result,) = pool.plan([strategies.request(strategies.write(body))], 0.5)
    assert isinstance(result.outcome, PlanFailed)
    assert result.outcome.kind == "timeout"
    assert 0.4 < result.seconds < 3


def test_a_node_that_is_not_there_is_not_the_strategys_fault(pool: PlanPool, strategies: Strategies) -> None:
    outcome = run(pool, strategies, "return Call(OTHER, ctx.chain.balance(OTHER))")
    assert isinstance(outcome, PlanFailed)
    assert outcome.kind == "unreachable"
    assert "token-0123456789" not in outcome.message


def test_the_endpoint_is_not_quoted(pool: PlanPool, strategies: Strategies) -> None:
    outcome = run(pool, strategies, 'raise ValueError(f"cannot reach {ctx.chain._url}")')
    assert isinstance(outcome, PlanFailed)
    assert "token-0123456789" not in outcome.message


IMPORTS = {
    "syntax": ("def plan(ctx:\n", r"SyntaxError: .* \(broken.py:1\)"),
    "raises": ("1 / 0\n", r"ZeroDivisionError: division by zero \(broken.py:1\)"),
    "missing": ("import no_such_module_here\n", "No module named 'no_such_module_here'"),
    "no function": ("x = 1\n", r"has no function plan; define def plan\(ctx\)"),
    "not callable": ("plan = 3\n", "has no function plan"),
    "two arguments": ("def plan(a, b): ...\n", "does not take one argument"),
    "exit": ("import sys; sys.exit(0)\n", "sys.exit"),
    "_exit": ("import os; os._exit(7)\n", "while importing broken, .*exit code 7"),
    "hang": ("import time; time.sleep(60)\n", "did not finish importing"),
}


@pytest.mark.parametrize("name", IMPORTS)
def test_check_says_what_is_wrong_with_a_module(strategies: Strategies, name: str) -> None:
    source, pattern = IMPORTS[name]
    (strategies.directory / "broken.py").write_text(source)
    with PlanPool(strategies.directory, start_seconds=2 if name == "hang" else 30) as pool:
        failed = pool.check("broken:plan")
        assert failed is not None
        assert failed.kind == "import"
        assert re.search(pattern, failed.message), failed.message
        first, second = pool.plan([strategies.request("broken:plan"), strategies.request("broken:plan")], 1)
        assert first.outcome == failed == second.outcome


def test_check_is_silent_about_a_good_plan(pool: PlanPool, strategies: Strategies) -> None:
    (strategies.directory / "package").mkdir()
    assert pool.check(strategies.write("return nothing('x')", name="package/good").replace("/", ".")) is None
    assert pool.check("package.bad:plan") is not None


def test_a_result_forged_on_the_pipe_is_checked_again(pool: PlanPool, strategies: Strategies) -> None:
    head = """
    from executor.plan_wire import frame
    def forge(value):
        for fd in range(3, 64):
            try:
                os.write(fd, frame(value))
            except OSError:
                continue
        os._exit(0)
    """
    call = f'{{"to": "{OTHER[2:].lower()}", "value": "-1", "data": "", "once": None, "gas": None, "access_list": [], "label": None}}'
    for value in (
        '[5, {"kind": "nothing", "reason": "forged"}]',
        "[]",
        "[0, 7]",
        f'[0, {{"kind": "calls", "order": "together", "calls": [{call}]}}]',
    ):
        strategies.write(f"forge({value})", name="forge", head=head)
        with PlanPool(strategies.directory) as fresh:
            (result,) = fresh.plan([strategies.request("forge:plan")], 5)
        assert isinstance(result.outcome, PlanFailed)
        assert result.outcome.kind == "bad_result", value
