"""The wrong builds are told apart: each breaks what its row says, with a trace; those that survive do so by right."""

import pytest

from tests.model.build import Build
from tests.model.explore import explore
from tests.model.mutants import BESIDE, TABLE, Mutant, Pair, kinds

_ALL = (*TABLE, *BESIDE)
_BY_ROW = {mutant.row: mutant for mutant in _ALL}
_BOUNDLESS = {"12", "13", "14"}
"""Without the journal these take a new nonce for ever: their search ends with what was expected."""


_JOURNAL = pytest.mark.parametrize("journal", [True, False], ids=["journal", "no journal"])


def _expected(pair: Pair, journal: bool) -> frozenset[str]:
    words = pair[0 if journal else 1]
    if words is None:
        pytest.skip("it takes the journal to be wrong in this way")
    return kinds(words)


@_JOURNAL
@pytest.mark.parametrize("mutant", _ALL, ids=lambda m: f"{m.row}: {m.wrong}")
def test_a_wrong_build_breaks_what_its_row_says(mutant: Mutant, journal: bool) -> None:
    expected = _expected(mutant.law, journal)
    result = explore(mutant.build(journal=journal), mutant.scenario, until=expected)
    print(f"{mutant.row}: {result.states} states")
    assert result.broken >= expected
    assert expected or (result.is_complete and not result.broken)
    for kind in sorted(expected):
        assert result.traces[kind], kind
        print(result.tell(kind))


@pytest.mark.model_full
@_JOURNAL
@pytest.mark.parametrize("mutant", _ALL, ids=lambda m: f"{m.row}: {m.wrong}")
def test_a_wrong_build_breaks_nothing_else(mutant: Mutant, journal: bool) -> None:
    expected = _expected(mutant.law, journal)
    if mutant.row in _BOUNDLESS and not journal:
        pytest.skip("it takes new nonces for ever")
    assert explore(mutant.build(journal=journal), mutant.scenario).broken == expected


@pytest.mark.model_full
@_JOURNAL
@pytest.mark.parametrize("mutant", [m for m in TABLE if m.reading], ids=lambda m: f"{m.row}: {m.wrong}")
def test_on_the_reading_before_the_rules_it_breaks_what_the_table_says(mutant: Mutant, journal: bool) -> None:
    assert mutant.reading is not None
    expected = _expected(mutant.reading, journal)
    until = expected if mutant.row in _BOUNDLESS and not journal else frozenset[str]()
    result = explore(mutant.build(journal=journal, reading=True), mutant.scenario, until=until)
    assert result.broken >= expected


@pytest.mark.parametrize("mutant", _ALL, ids=lambda m: m.row)
def test_what_the_table_says_is_found_or_excused_by_a_rule(mutant: Mutant) -> None:
    for place in (0, 1):
        found = kinds(mutant.law[place]) | kinds(mutant.reading[place] if mutant.reading else "")
        missing = kinds(mutant.table[place]) - found
        assert missing == kinds(mutant.excused[place])
        if missing or mutant.reading:
            assert mutant.why


def test_the_table_is_whole() -> None:
    assert {mutant.row for mutant in TABLE} == {str(n) for n in range(1, 40)} | {"28 restored"}
    survivors = [mutant for mutant in TABLE if mutant.survives]
    assert [mutant.row for mutant in survivors] == ["6", "7", "10", "27", "36", "37"]
    for mutant in survivors:
        partner = _BY_ROW[mutant.shown_by]
        assert kinds(partner.law[0])
        # The partner is the survivor and one thing more, or it asks the same thing of the clock alone.
        assert mutant.change.items() <= partner.change.items() or mutant.row == "36"


def test_every_switch_of_a_build_is_used() -> None:
    changed = {name for mutant in _ALL for name in (*mutant.change, *(("journal",)))}
    changed |= {"foreign_evidence"}  # READING
    assert changed == set(Build.__dataclass_fields__)
