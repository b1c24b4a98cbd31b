from collections.abc import Callable
from types import ModuleType

import pytest

from policies import (
    binding_rules,
    podcliqueset_changes,
    podcliqueset_rules,
    podcliqueset_sharing_rules,
    podcliqueset_startup_rules,
    podcliqueset_topology_rules,
    podcliqueset_warnings,
    podspec_rules,
    rulebook,
)

MODULES = [
    binding_rules,
    podcliqueset_changes,
    podcliqueset_rules,
    podcliqueset_sharing_rules,
    podcliqueset_startup_rules,
    podcliqueset_topology_rules,
    podcliqueset_warnings,
    podspec_rules,
]


def written(module: ModuleType) -> set[str]:
    """The rules of a module: public functions over a case or a change that yield problems."""
    return {
        name
        for name, value in vars(module).items()
        if isinstance(value, Callable)  # type: ignore[arg-type]
        and getattr(value, "__module__", "") == module.__name__
        and {"case", "change"} & getattr(value, "__annotations__", {}).keys()
        and name[0] != "_"
    }


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_no_rule_is_left_out_of_its_modules_tuple(module: ModuleType) -> None:
    assert written(module) == {rule.name for rule in module.RULES}


def test_no_modules_rules_are_left_out_of_the_book() -> None:
    names = [name for name, _ in rulebook.ALL_RULES]
    assert sorted(names) == sorted(rule.name for module in MODULES for rule in module.RULES)
    assert len(names) == len(set(names))


def test_the_book_has_every_row_that_something_upholds() -> None:
    rows = {
        "1.2", "1.6", "2.4",
        *(f"2.3.{i}" for i in range(1, 20)),
        *(f"2.5.{i}" for i in range(1, 7)),
        *(f"2.6.{i}" for i in range(1, 4)),
        *(f"2.8.{i}" for i in range(1, 5)),
    }  # fmt: skip
    assert {ref for ref in rulebook.RULEBOOK if not ref.startswith("2.7.")} == rows
    assert len([ref for ref in rulebook.RULEBOOK if ref.startswith("2.7.")]) == 15
    assert "names_leave_room" in rulebook.RULEBOOK["2.4"]
