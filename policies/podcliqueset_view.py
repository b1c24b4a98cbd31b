"""A PodCliqueSet as the rules see it: every field as far as it can be read, the rest left out.

What is of the wrong type, or too long for a name, is None here, and rules have nothing to say about
None. So a set with a slip in one place is still held against the rules everywhere else.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from api.cliques import MAX_CLIQUES
from api.jsons import Json, JsonObject
from policies import pod_glance, reading
from policies.once import Once

CLIQUES: Final = "spec.template.cliques"
GROUPS: Final = "spec.template.podCliqueScalingGroups"
# The API server makes a generated name of this many characters more than its stem.
GENERATED: Final = "xxxxx"


class Scaling(msgspec.Struct, frozen=True):
    """Between which counts autoscaling moves."""

    path: str
    lowest: int | None
    highest: int | None


class Constraint(msgspec.Struct, frozen=True):
    """How close together pods must be, where it is written."""

    path: str
    topology: str | None
    required: str | None
    preferred: str | None
    deprecated: str | None
    has_pack: bool
    raw: JsonObject

    @property
    def must(self) -> str | None:
        """The level that must hold all pods, whichever way it is written."""
        return self.required or self.deprecated

    @property
    def must_path(self) -> str:
        """Where that level is written."""
        return f"{self.path}.pack.required" if self.required else f"{self.path}.packDomain"


class Clique(msgspec.Struct, frozen=True):
    """One role."""

    path: str
    name: str | None
    role: str | None
    replicas: int | None
    minimum: int | None
    starts_after: list[tuple[int, str]]
    scaling: Scaling | None
    constraint: Constraint | None
    pod: JsonObject
    raw: JsonObject

    @property
    def pod_path(self) -> str:
        """Where the pods' spec is."""
        return f"{self.path}.spec.podSpec"


class Group(msgspec.Struct, frozen=True):
    """Cliques that scale together."""

    path: str
    name: str | None
    cliques: list[tuple[int, str]]
    replicas: int | None
    minimum: int | None
    scaling: Scaling | None
    constraint: Constraint | None
    raw: JsonObject

    @property
    def members(self) -> frozenset[str]:
        """The names of its cliques."""
        return frozenset(name for _, name in self.cliques)


class Resolved(msgspec.Struct, frozen=True):
    """A constraint, and the binding that it means: its own, or one further up's."""

    constraint: Constraint
    topology: str | None


@dataclass(frozen=True)
class SetView:
    """A whole set."""

    name: str | None
    annotations: JsonObject
    replicas: int | None
    template: JsonObject
    cliques: tuple[Clique, ...]
    groups: tuple[Group, ...]
    constraint: Constraint | None
    updates: JsonObject

    @Once
    def clique_names(self) -> list[str | None]:
        """The names of all cliques, of those too that are too many to be looked at."""
        written = self.template.get("cliques")
        if len(reading.items(written)) == len(self.cliques):
            return [each.name for each in self.cliques]
        return reading.names(written)

    @Once
    def group_names(self) -> list[str | None]:
        """The names of all scaling groups."""
        written = self.template.get("podCliqueScalingGroups")
        if len(reading.items(written)) == len(self.groups):
            return [each.name for each in self.groups]
        return reading.names(written)

    @Once
    def known_cliques(self) -> frozenset[str] | None:
        """What a clique can be called by; None if one has no name that can be read."""
        return _known(self.clique_names, self.template.get("cliques"))

    @Once
    def known_groups(self) -> frozenset[str] | None:
        """What a group can be called by; None if one has no name that can be read."""
        return _known(self.group_names, self.template.get("podCliqueScalingGroups"))

    @Once
    def group_of(self) -> dict[str, Group]:
        """For the cliques in groups: the first group that names them."""
        homes: dict[str, Group] = {}
        for group in self.groups:
            for _, name in group.cliques:
                homes.setdefault(name, group)
        return homes

    @Once
    def doubtful(self) -> tuple[Clique, ...]:
        """The cliques in whose pods' specs rules may find something; in others they cannot.

        What is asked of every pod of a set alike, whatever the policy, is asked of these alone.
        """
        return tuple(each for each in self.cliques if not pod_glance.surely_fits(each.pod))

    @Once
    def annotated(self) -> tuple[tuple[str, JsonObject], ...]:
        """All annotations there are, each with the path of what has them, the set first."""
        own = (("metadata", self.annotations),) if self.annotations else ()
        return (*own, *self.annotated_parts)

    @Once
    def annotated_parts(self) -> tuple[tuple[str, JsonObject], ...]:
        """All annotations of the scaling groups and cliques, in the same way."""
        return tuple(
            (part.path, found)
            for part in self.parts
            if (found := part.raw.get("annotations")) and isinstance(found, dict)
        )

    @Once
    def marked(self) -> tuple[tuple[Clique, JsonObject, JsonObject], ...]:
        """The cliques that have labels or annotations for their pods, with both."""
        found: list[tuple[Clique, JsonObject, JsonObject]] = []
        for each in self.cliques:
            labels = reading.mapping(each.raw.get("labels"))
            annotations = reading.mapping(each.raw.get("annotations"))
            if labels or annotations:
                found.append((each, labels, annotations))
        return tuple(found)

    @Once
    def scaling(self) -> tuple[Scaling, ...]:
        """All autoscaling there is."""
        return tuple(part.scaling for part in self.parts if part.scaling)

    @Once
    def shares(self) -> bool:
        """Whether anything is shared, or could be."""
        if "resourceClaimTemplates" in self.template or "resourceSharing" in self.template:
            return True
        return bool([part for part in self.parts if "resourceSharing" in part.raw])

    @Once
    def tangled(self) -> bool:
        """Whether what cliques wait for has to be looked at more closely.

        It has not where each names, and no more than once, cliques that are written before it.
        """
        if len(reading.items(self.template.get("cliques"))) > len(self.cliques):
            return True
        before: set[str] = set()
        for clique in self.cliques:
            after = {name for _, name in clique.starts_after}
            if len(after) < len(clique.starts_after) or not after <= before:
                return True
            if not clique.name or clique.name in before:
                return True
            before.add(clique.name)
        return False

    @Once
    def housed(self) -> tuple[tuple[Clique, Group | None], ...]:
        """Each clique, with the group it is in."""
        return tuple((each, self.home(each)) for each in self.cliques)

    def home(self, clique: Clique) -> Group | None:
        """The group a clique is in."""
        return None if clique.name is None else self.group_of.get(clique.name)

    @Once
    def resolved(self) -> tuple[Resolved, ...]:
        """All constraints with the binding each means, from the set's down to the cliques'."""
        top = self.constraint.topology if self.constraint else None
        found = [Resolved(self.constraint, top)] if self.constraint else []
        found += [
            Resolved(group.constraint, group.constraint.topology or top)
            for group in self.groups
            if group.constraint
        ]
        for clique in self.cliques:
            if clique.constraint:
                home = self.home(clique)
                inherited = home.constraint.topology if home and home.constraint else None
                meant = clique.constraint.topology or inherited or top
                found.append(Resolved(clique.constraint, meant))
        return tuple(found)

    @Once
    def parts(self) -> tuple[Clique | Group, ...]:
        """The scaling groups and cliques."""
        return (*self.groups, *self.cliques)

    @property
    def constraints(self) -> Iterator[Constraint]:
        """All constraints, in the same order."""
        return (each.constraint for each in self.resolved)


def view(raw: JsonObject) -> SetView:
    """Look at a set, with its defaults filled in."""
    metadata = reading.mapping(raw.get("metadata"))
    spec = reading.mapping(raw.get("spec"))
    template = reading.mapping(spec.get("template"))
    # What comes after the most that are taken is counted and not looked at: it must not cost.
    cliques = reading.items(template.get("cliques"))[:MAX_CLIQUES]
    groups = reading.items(template.get("podCliqueScalingGroups"))[:MAX_CLIQUES]
    return SetView(
        _set_name(metadata),
        reading.mapping(metadata.get("annotations")),
        reading.number(spec.get("replicas")),
        template,
        tuple(_clique(f"{CLIQUES}[{i}]", reading.mapping(c)) for i, c in enumerate(cliques)),
        tuple(_group(f"{GROUPS}[{i}]", reading.mapping(g)) for i, g in enumerate(groups)),
        _constraint("spec.template", template),
        reading.mapping(spec.get("updateStrategy")),
    )


def in_order_of(raw: JsonObject, other: JsonObject) -> JsonObject:
    """Give a set with its cliques and groups in the places that those of their names have there."""
    spec, theirs = reading.mapping(raw.get("spec")), reading.mapping(other.get("spec"))
    template = reading.mapping(spec.get("template"))
    moved: JsonObject = {}
    for key in ("cliques", "podCliqueScalingGroups"):
        found = reading.items(template.get(key))
        order = reading.names(reading.mapping(theirs.get("template")).get(key))
        names = reading.names(found)
        if names != order and len(found) == len(names):
            place = {name: i for i, name in reversed([*enumerate(order)])}
            ranks = [place.get(name, len(order)) for name in names]
            moved[key] = [found[i] for i in sorted(range(len(found)), key=ranks.__getitem__)]
    return {**raw, "spec": {**spec, "template": {**template, **moved}}} if moved else raw


def _set_name(metadata: JsonObject) -> str | None:
    name = metadata.get("name")
    if name is None or name == "":
        stem = metadata.get("generateName")
        return f"{stem}{GENERATED}" if reading.name(stem) else ""
    return reading.name(name)


def _clique(path: str, raw: JsonObject) -> Clique:
    spec = reading.mapping(raw.get("spec"))
    return Clique(
        path,
        reading.name(raw.get("name")),
        reading.name(spec.get("roleName")),
        reading.number(spec.get("replicas")),
        reading.number(spec.get("minAvailable")),
        reading.listed(spec.get("startsAfter"), MAX_CLIQUES),
        _scaling(path, "spec.autoScalingConfig", spec.get("autoScalingConfig")),
        _constraint(path, raw),
        reading.mapping(spec.get("podSpec")),
        raw,
    )


def _group(path: str, raw: JsonObject) -> Group:
    return Group(
        path,
        reading.name(raw.get("name")),
        reading.listed(raw.get("cliqueNames"), MAX_CLIQUES),
        reading.number(raw.get("replicas")),
        reading.number(raw.get("minAvailable")),
        _scaling(path, "scaleConfig", raw.get("scaleConfig")),
        _constraint(path, raw),
        raw,
    )


def _scaling(holder: str, field: str, raw: Json) -> Scaling | None:
    if not isinstance(raw, dict):
        return None
    number = reading.number
    return Scaling(
        f"{holder}.{field}", number(raw.get("minReplicas")), number(raw.get("maxReplicas"))
    )


def _constraint(path: str, holder: JsonObject) -> Constraint | None:
    raw = holder.get("topologyConstraint")
    if not isinstance(raw, dict):
        return None
    pack = reading.mapping(raw.get("pack"))
    return Constraint(
        f"{path}.topologyConstraint",
        reading.name(raw.get("topologyName")) or None,
        reading.name(pack.get("required")) or None,
        reading.name(pack.get("preferred")) or None,
        reading.name(raw.get("packDomain")) or None,
        raw.get("pack") is not None,
        raw,
    )


def _known(found: list[str | None], raw: Json) -> frozenset[str] | None:
    readable = frozenset(name for name in found if name is not None)
    complete = None not in found and (raw is None or isinstance(raw, list))
    complete = complete and len(found) == len(reading.items(raw))
    return readable if complete else None
