import pytest

from policies import syntax
from policies.syntax import LONGEST_WORD, Remembered


@pytest.mark.parametrize("length", [LONGEST_WORD, LONGEST_WORD + 1, 100_000])
def test_labels_and_their_values_have_63_characters_at_most(length: int) -> None:
    assert syntax.is_label("a" * length) == (length == LONGEST_WORD)
    assert syntax.is_value("A" * length) == (length == LONGEST_WORD)


def test_names_are_looked_at_once_and_what_is_not_fine_each_time() -> None:
    looked: list[str] = []

    def is_fine(name: str) -> bool:
        looked.append(name)
        return name != "7"

    names = Remembered(is_fine, most=10)
    assert names.holds({"A"})
    assert names.holds({"A"})
    assert looked == ["A"]
    assert not names.holds({"7"})
    assert not names.holds({"7"})
    assert looked == ["A", "7", "7"]


def test_of_names_no_more_are_remembered_than_there_is_room_for() -> None:
    names = Remembered(bool, most=10)
    for i in range(20):
        assert names.holds({f"N{i}", f"M{i}", "same"})
        assert len(names) <= 10
    assert names.holds({f"N{i}" for i in range(11)})
    assert len(names) <= 10


def test_names_of_variables_are_fine_together_only_if_each_is() -> None:
    for _ in range(2):
        assert syntax.are_variables({"MODE", "LOG.LEVEL"})
        assert not syntax.are_variables({"MODE", "7"})
        assert not syntax.are_variables({"", "MODE"})
