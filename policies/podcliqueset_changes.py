"""What of a PodCliqueSet may not change while it lives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from api import names
from api.jsons import Json, JsonObject
from api.podcliqueset import StartupType
from policies import reading
from policies.podcliqueset_view import CLIQUES, GROUPS, Clique, Constraint, Group, SetView
from policies.problems import Problem
from policies.rules import Rule

# Tools look for these words.
IMMUTABLE: Final = "field is immutable"
LONGEST_SHOWN: Final = 60
Part = TypeVar("Part", Clique, Group)
_ORDERED: Final = (StartupType.IN_ORDER.value, StartupType.EXPLICIT.value)


@dataclass(frozen=True)
class Change:
    """A set before and after, both with their defaults filled in."""

    old: SetView
    new: SetView

    def cliques(self) -> Iterator[tuple[Clique, Clique]]:
        """Give the cliques that are in both."""
        return _paired(self.old.cliques, self.new.cliques)

    def groups(self) -> Iterator[tuple[Group, Group]]:
        """Give the scaling groups that are in both."""
        return _paired(self.old.groups, self.new.groups)


def cliques_stay(change: Change) -> Iterator[Problem]:
    """Refuse cliques that come, go or change their name; and their places, where they count."""
    old, new = change.old.clique_names, change.new.clique_names
    moved = list(_membership(CLIQUES, "cliques", old, new))
    yield from moved
    ordered = change.new.template.get("cliqueStartupType") in _ORDERED
    if not moved and ordered and old != new:
        yield Problem(
            CLIQUES,
            f"{IMMUTABLE}: with this startup type the order of cliques counts; it was "
            f"{_shown([*old])}",
        )


def groups_stay(change: Change) -> Iterator[Problem]:
    """Refuse scaling groups that come, go or change their name."""
    old, new = change.old.group_names, change.new.group_names
    yield from _membership(GROUPS, "scaling groups", old, new)


def clique_fields_stay(change: Change) -> Iterator[Problem]:
    """Refuse what a clique's running pods could not follow."""
    for old, new in change.cliques():
        before, after = old.raw.get("spec"), new.raw.get("spec")
        for field in ("roleName", "minAvailable", "startsAfter"):
            yield from _kept(f"{new.path}.spec", field, before, after)
        yield from _kept(new.path, "resourceSharing", old.raw, new.raw)


def scheduler_stays(change: Change) -> Iterator[Problem]:
    """Refuse another scheduler than the one that bound the pods there are."""
    for old, new in change.cliques():
        yield from _kept(new.pod_path, "schedulerName", old.pod, new.pod)


def startup_type_stays(change: Change) -> Iterator[Problem]:
    """Refuse another order for pods that have started."""
    old, new = change.old.template, change.new.template
    yield from _kept("spec.template", "cliqueStartupType", old, new)


def group_fields_stay(change: Change) -> Iterator[Problem]:
    """Refuse what a scaling group's gangs could not follow."""
    for old, new in change.groups():
        for field in ("cliqueNames", "minAvailable", "resourceSharing"):
            yield from _kept(new.path, field, old.raw, new.raw)


def shared_devices_stay(change: Change) -> Iterator[Problem]:
    """Refuse other devices than those that pods hold."""
    for field in ("resourceClaimTemplates", "resourceSharing"):
        yield from _kept("spec.template", field, change.old.template, change.new.template)


def constraints_stay(change: Change) -> Iterator[Problem]:
    """Refuse another closeness than pods were placed by, but let old spellings be mended."""
    pairs = [("spec.template", change.old.constraint, change.new.constraint)]
    pairs += [(new.path, old.constraint, new.constraint) for old, new in change.groups()]
    pairs += [(new.path, old.constraint, new.constraint) for old, new in change.cliques()]
    for path, old, new in pairs:
        before = old.raw if old else None
        if reading.alike(before, new.raw if new else None) or _mends(old, new):
            continue
        yield Problem(
            f"{path}.topologyConstraint",
            f"{IMMUTABLE}; it was {_shown(before)}: put it back, or make the set anew",
        )


def nvlink_groups_stay(change: Change) -> Iterator[Problem]:
    """Refuse another NVLink group than pods were placed in."""
    parts: list[tuple[Clique | Group, Clique | Group]] = [*change.groups(), *change.cliques()]
    pairs: list[tuple[str, Json, Json]] = [
        (new.path, old.raw.get("annotations"), new.raw.get("annotations")) for old, new in parts
    ]
    key = names.MNNVL_ANNOTATION
    for path, old, new in [("metadata", change.old.annotations, change.new.annotations), *pairs]:
        was, now = reading.mapping(old).get(key), reading.mapping(new).get(key)
        if was != now:
            yield _changed(f"{path}.annotations[{key}]", was)


RULES: Final[tuple[Rule[Change], ...]] = (
    Rule(cliques_stay, ("2.7.clique-count", "2.7.clique-name", "2.7.clique-order")),
    Rule(groups_stay, ("2.7.group-set",)),
    Rule(
        clique_fields_stay,
        ("2.7.role-name", "2.7.min-available", "2.7.starts-after", "2.7.clique-sharing"),
    ),
    Rule(scheduler_stays, ("2.7.scheduler-name",)),
    Rule(startup_type_stays, ("2.7.startup-type",)),
    Rule(group_fields_stay, ("2.7.group-cliques", "2.7.group-minimum", "2.7.group-sharing")),
    Rule(shared_devices_stay, ("2.7.claim-templates", "2.7.set-sharing")),
    Rule(constraints_stay, ("2.5.6",)),
    Rule(nvlink_groups_stay, ("2.6.3",)),
)


def _paired(old: Sequence[Part], new: Sequence[Part]) -> Iterator[tuple[Part, Part]]:
    """Give what is of one name in both; where a name is there twice, in the order they come."""
    before: dict[str | None, list[Part]] = {}
    for part in reversed(old):
        before.setdefault(part.name, []).append(part)
    for part in new:
        of_that_name = before.get(part.name) if part.name else None
        if of_that_name:
            yield of_that_name[-1], part
            if len(of_that_name) > 1:
                of_that_name.pop()


def _membership(
    path: str, what: str, old: list[str | None], new: list[str | None]
) -> Iterator[Problem]:
    # A name that cannot be read is a problem of its own; with it nothing can be said here.
    if None in old or None in new:
        return
    before, after = frozenset(old), frozenset(new)
    said = [f"{name!r} is new" for name in new if name not in before]
    said += [f"{name!r} is missing" for name in old if name not in after]
    if not said and len(old) != len(new):
        said = [f"there were {len(old)}, and now {len(new)}"]
    if said:
        yield Problem(
            path,
            f"{IMMUTABLE}: {what} cannot be added, removed or renamed, and {', '.join(said[:5])}; "
            "make another set for that",
        )


def _kept(path: str, field: str, old: Json, new: Json) -> Iterator[Problem]:
    was, now = reading.mapping(old).get(field), reading.mapping(new).get(field)
    if not reading.alike(was, now):
        yield _changed(f"{path}.{field}", was)


def _changed(path: str, was: Json) -> Problem:
    fix = "take it out again" if was is None else "put it back"
    return Problem(path, f"{IMMUTABLE}; it was {_shown(was)}: {fix}, or make the set anew")


def _mends(old: Constraint | None, new: Constraint | None) -> bool:
    """Tell whether packDomain only became pack.required, or got the binding it lacked."""
    if old is None or new is None or old.deprecated is None:
        return False
    kept: JsonObject = {**new.raw, "packDomain": old.deprecated}
    if new.deprecated is None and new.required == old.deprecated:
        pack = dict(reading.mapping(new.raw.get("pack")))
        del pack["required"]
        kept["pack"] = pack
    elif new.deprecated != old.deprecated:
        return False
    if old.topology is None:
        kept["topologyName"] = old.raw.get("topologyName")
    return reading.alike(kept, old.raw)


def _shown(value: Json) -> str:
    if value is None or value in ("", [], {}):
        return "left out"
    if isinstance(value, str | int | float):
        line = repr(value)
    else:
        # Not spelled out in full: it can be as large and as deep as anybody likes.
        inside = (
            [f"{key}: {inner}" for key, inner in value.items() if isinstance(inner, str)]
            if (isinstance(value, dict))
            else [item for item in value[:LONGEST_SHOWN] if isinstance(item, str)]
        )
        line = ", ".join(inside) or "other than this"
    return line if len(line) <= LONGEST_SHOWN else f"{line[: LONGEST_SHOWN - 1]}…"
