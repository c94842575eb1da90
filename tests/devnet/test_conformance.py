"""The execution-apis conformance suite against our devnet on the suite's own chain; its rules of comparison.

The suite is no part of this repository. Give its `tests` folder (genesis.json, chain.rlp, a folder a method) with
`--execution-apis DIR` or EXECUTION_APIS=DIR; without it the cases are skipped.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.devnet.conformance.comparison import differences
from tests.devnet.conformance.suite import Case, in_scope, known, names, parse, start_on_suite
from tests.support.devnet import Devnet

ABSENT = "the execution-apis suite is not here: give its tests folder with --execution-apis DIR or EXECUTION_APIS=DIR"


def suite_folder(config: pytest.Config) -> Path | None:
    """Where the suite is, if it was given. A folder that is none is an error, not a skip."""
    given = config.getoption("--execution-apis", None) or os.environ.get("EXECUTION_APIS")
    if not given:
        return None
    folder = Path(given)
    folder = folder if (folder / "chain.rlp").is_file() else folder / "tests"
    if not (folder / "chain.rlp").is_file():
        raise pytest.UsageError(f"--execution-apis: {given} holds no chain.rlp")
    return folder


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case_name" not in metafunc.fixturenames:
        return
    folder = suite_folder(metafunc.config)
    if folder is None:
        metafunc.parametrize("case_name", [pytest.param("", marks=pytest.mark.skip(reason=ABSENT))], ids=["absent"])
    else:
        metafunc.parametrize("case_name", [name for name in names(folder) if in_scope(name)])


pytestmark = pytest.mark.xdist_group("conformance")  # what a case has sent, later ones see


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest) -> Path:
    given = suite_folder(request.config)
    if given is None:
        pytest.skip(ABSENT)
    return given


@pytest.fixture(scope="module")
def suite_node(folder: Path) -> Iterator[Devnet]:
    with start_on_suite(folder) as devnet:
        yield devnet


def test_the_answer_is_the_expected_one(folder: Path, suite_node: Devnet, case_name: str) -> None:
    found = parse(case_name, (folder / case_name).read_text()).run(suite_node)
    reason = known().get(case_name)
    if reason is None:
        assert not found
    else:
        assert found, f"{case_name} passes now: take it out of known.json"


def test_what_is_known_not_to_pass_is_in_scope_and_exists(folder: Path) -> None:
    assert known().keys() <= {name for name in names(folder) if in_scope(name)}
    assert all(known().values())


def answer(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def failure(code: int, message: str, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message} | more}


def test_answers_agree_to_the_last_value() -> None:
    want = answer({"a": "0x1", "b": [1, {"c": None}]})
    assert differences(want, json.loads(json.dumps(want))) == []
    assert differences(want, answer({"a": "0x2", "b": [1, {"c": None}]})) == [".result.a: 0x2, want 0x1"]
    assert differences(want, answer({"a": "0x1", "b": [1, {"c": False}]})) == [".result.b[1].c: False, want None"]
    assert differences(want, answer({"a": "0x1", "b": [1]})) == [".result.b: 1 entries, want 2"]
    assert differences(want, answer({"a": "0x1"})) == [".result.b: missing"]
    assert differences(answer({}), answer({"d": 1})) == [".result.d: not expected"]
    assert differences(answer(1), answer(True)) == [".result: True, want 1"]
    assert differences(want, None) == ["no answer"]


def test_the_text_of_an_error_is_free_and_its_code_and_data_are_not() -> None:
    want = failure(3, "execution reverted: no", data="0x01")
    assert differences(want, failure(3, "reverted", data="0x01")) == []
    assert differences(want, failure(-32000, "reverted", data="0x01")) == [".error.code: -32000, want 3"]
    assert differences(want, failure(3, "reverted", data="0x02")) == [".error.data: 0x02, want 0x01"]
    assert differences(want, answer("0x")) == [".error: missing", ".result: not expected"]


def test_a_form_is_compared_without_its_values() -> None:
    def compare(want: Any, have: Any) -> list[str]:
        return differences(answer(want), answer(have), shape_only=True)

    assert compare({"x": "0x1", "l": ["0x1"]}, {"x": "0x25", "l": ["0x2", "0x3"]}) == []
    assert compare({"x": "0x1"}, {"x": "pending"}) == [".result.x: pending, want something like 0x1"]
    assert compare({"x": "0x1"}, {"y": "0x1"}) == [".result.x: missing", ".result.y: not expected"]
    assert compare({"l": ["0x1"]}, {"l": [None]}) == [".result.l[0]: None, want something like 0x1"]
    assert compare({"0xaa": {"0": {"gas": "0x1"}}}, {"0xbb": {"7": {"gas": "0x2"}}, "0xcc": {}}) == []
    assert compare({"0xaa": {"0": {"gas": "0x1"}}}, {"0xbb": {"7": {"fee": "0x2"}}}) != []
    assert compare(0.5, 1) == []


def test_io_files_are_requests_and_answers_in_turn() -> None:
    text = '// asks\n// speconly: form only\n>> {"id":1}\n<< {"id":1,"result":"0x1"}\n\n>> {"id":2}\n<< {"id":2,"result":null}\n'
    exchanges = [({"id": 1}, {"id": 1, "result": "0x1"}), ({"id": 2}, {"id": 2, "result": None})]
    assert parse("eth_x/y.io", text) == Case("eth_x/y.io", shape_only=True, exchanges=exchanges)
    with pytest.raises(ValueError, match=r"no line of an \.io file"):
        parse("eth_x/y.io", "?? what")
