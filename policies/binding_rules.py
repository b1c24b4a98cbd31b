"""What a ClusterTopologyBinding must satisfy to be stored."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from api.jsons import JsonObject
from policies import reading
from policies.policy import Policy
from policies.problems import Problem, choice
from policies.rules import Rule

LEVELS: Final = "spec.levels"
# The name that the field had once. Tools look for the path.
REFERENCES: Final = "spec.schedulerTopologyReferences"


@dataclass(frozen=True)
class BindingCase:
    """A binding to be judged, and by what policy."""

    spec: JsonObject
    policy: Policy


def has_levels(case: BindingCase) -> Iterator[Problem]:
    """Refuse a network without any level."""
    if case.spec.get("levels") == []:
        yield Problem(LEVELS, "is empty; name at least one level, the widest first")


def domains_differ(case: BindingCase) -> Iterator[Problem]:
    """Refuse two levels that sets would call the same."""
    yield from _repeated(case.spec, "domain")


def keys_differ(case: BindingCase) -> Iterator[Problem]:
    """Refuse two levels told apart by one node label."""
    yield from _repeated(case.spec, "key")


def schedulers_differ(case: BindingCase) -> Iterator[Problem]:
    """Refuse two topology objects for one scheduler."""
    seen: set[str] = set()
    for i, name in _schedulers(case.spec):
        if name in seen:
            yield Problem(_path(i), f"{name!r} has a topology object here already; take one out")
        seen.add(name)


def schedulers_are_known(case: BindingCase) -> Iterator[Problem]:
    """Refuse schedulers that no gang is placed for, since nobody would look at the object."""
    policy = case.policy
    known = {*policy.schedulers, *policy.scheduler_names, *policy.scheduler_names.values()} - {""}
    for i, name in _schedulers(case.spec):
        if name not in known:
            yield Problem(_path(i), f"gangs are not placed for {name!r}{choice(known)}")


RULES: Final[tuple[Rule[BindingCase], ...]] = (
    Rule(has_levels, ("1.6",)),
    Rule(domains_differ, ("2.8.1",)),
    Rule(keys_differ, ("2.8.2",)),
    Rule(schedulers_differ, ("2.8.3",)),
    Rule(schedulers_are_known, ("2.8.4",)),
)


def _repeated(spec: JsonObject, field: str) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for i, level in enumerate(reading.items(spec.get("levels"))):
        value = reading.mapping(level).get(field)
        if isinstance(value, str) and first.setdefault(value, i) != i:
            yield Problem(
                f"{LEVELS}[{i}].{field}",
                f"{value!r} is that of {LEVELS}[{first[value]}] already; each level needs its own",
            )


def _schedulers(spec: JsonObject) -> Iterator[tuple[int, str]]:
    for i, item in enumerate(reading.items(spec.get("schedulerTopologyBindings"))):
        name = reading.text(reading.mapping(item).get("schedulerName"))
        if name:
            yield i, name


def _path(i: int) -> str:
    return f"{REFERENCES}[{i}].schedulerName"
