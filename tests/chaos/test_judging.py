"""The engine itself: a plan that one seed decides, and a judge that sees what is lost, double, unwanted or out of order."""

from collections import Counter

import pytest

from tests.chaos import figures
from tests.chaos.census import CANCEL, Census, judge
from tests.chaos.scenario import DATABASE_FAULTS, DEVNET, WORKER_FAULTS, Scenario, faults_of, requests_of

SCENARIO = Scenario(
    workers=8,
    accounts=20,
    executions=5000,
    seconds=300,
    groups={"workers": WORKER_FAULTS, "database": DATABASE_FAULTS, "node": DEVNET},
    gap={"workers": 5, "database": 5, "node": 2},
)


def test_one_seed_decides_every_fault_and_request() -> None:
    assert faults_of(SCENARIO, 7) == faults_of(SCENARIO, 7) != faults_of(SCENARIO, 8)
    assert requests_of(SCENARIO, 7) == requests_of(SCENARIO, 7) != requests_of(SCENARIO, 8)
    assert {fault.kind for fault in faults_of(SCENARIO, 7)} == {*WORKER_FAULTS, *DATABASE_FAULTS, *DEVNET}
    assert all(1 <= fault.at < SCENARIO.seconds for fault in faults_of(SCENARIO, 7))


def test_a_single_kind_of_fault_is_the_same_in_every_company() -> None:
    alone = Scenario(8, 20, 5000, 300, {"workers": WORKER_FAULTS}, {"workers": 5})

    assert faults_of(alone, 7) == [fault for fault in faults_of(SCENARIO, 7) if fault.kind in WORKER_FAULTS]


@pytest.mark.parametrize(
    ("memos", "nonces", "told"),
    [
        ({"a#0": 1}, [0], "b#0 stands in 0"),
        ({"a#0": 1, "b#0": 2}, [0, 1, 2], "b#0 stands in 2"),
        ({"a#0": 1, "b#0": 1, "c#0": 1}, [0, 1, 2], "c#0 stands in 1"),
        ({"a#0": 1, "b#0": 1, CANCEL: 1}, [0, 1, 2], "(cancel) stands in 1"),
        ({"a#0": 1, "b#0": 1}, [0, 2], "not 0 to 1 in order"),
    ],
    ids=["lost", "twice", "unwanted", "cancelled", "hole"],
)
def test_what_is_wrong_on_chain_is_told(memos: dict[str, int], nonces: list[int], told: str) -> None:
    (trouble,) = judge(Census(Counter(memos), {"0xaa": nonces}), ["a#0", "b#0"], cancels=0)

    assert told in trouble


def test_what_was_wanted_is_no_trouble() -> None:
    counted = Census(Counter({"a#0": 1, CANCEL: 1}), {"0xaa": [0, 1], "0xbb": []})

    assert judge(counted, ["a#0"], cancels=1) == []


@pytest.mark.parametrize(("growth", "told"), [(0, 0), (3, 0), (12, 1)])
def test_a_worker_that_grows_is_told_and_one_that_was_replaced_is_not_compared(growth: int, told: int) -> None:
    size = 80 * 2**20
    memory = [(float(at), {"w0 (7)": size + growth * 2**20 * at // 30, "w1 (8)": size}) for at in range(30)]
    memory += [(30.0, {"w0 (7)": size + growth * 2**20, "w1 (9)": 2 * size})]

    assert len(figures.grown(memory)) == told
