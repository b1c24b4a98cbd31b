"""All rules for sets and topology bindings, and which facts each one upholds."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from policies import (
    binding_rules,
    podcliqueset_changes,
    podcliqueset_rules,
    podcliqueset_sharing_rules,
    podcliqueset_startup_rules,
    podcliqueset_topology_rules,
    podcliqueset_warnings,
    podspec_rules,
)
from policies.binding_rules import BindingCase
from policies.podcliqueset_case import Case
from policies.podcliqueset_changes import Change
from policies.rules import Rule

# The most telling first, since a long message is cut at its end.
SET_FIRST_RULES: Final[tuple[Rule[Case], ...]] = podcliqueset_startup_rules.RULES
SET_RULES: Final[tuple[Rule[Case], ...]] = (
    *podcliqueset_rules.RULES,
    *podcliqueset_topology_rules.RULES,
    *podspec_rules.RULES,
    *podcliqueset_sharing_rules.RULES,
)
SET_CHANGE_RULES: Final[tuple[Rule[Change], ...]] = podcliqueset_changes.RULES
SET_WARNINGS: Final[tuple[Rule[Case], ...]] = podcliqueset_warnings.RULES
BINDING_RULES: Final[tuple[Rule[BindingCase], ...]] = binding_rules.RULES


ALL_RULES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    *((rule.name, rule.refs) for rule in SET_FIRST_RULES),
    *((rule.name, rule.refs) for rule in SET_RULES),
    *((rule.name, rule.refs) for rule in SET_CHANGE_RULES),
    *((rule.name, rule.refs) for rule in SET_WARNINGS),
    *((rule.name, rule.refs) for rule in BINDING_RULES),
)
"""Every rule by its name, with the numbers of what it upholds."""


def _by_ref() -> dict[str, tuple[str, ...]]:
    names: dict[str, list[str]] = {}
    for name, refs in ALL_RULES:
        for ref in refs:
            names.setdefault(ref, []).append(name)
    return {ref: tuple(found) for ref, found in names.items()}


RULEBOOK: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(_by_ref())
"""The rules by the number of what they uphold."""
