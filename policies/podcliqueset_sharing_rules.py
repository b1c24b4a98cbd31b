"""Devices that pods of a set share: the templates written in line, and who shares what."""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from api.cliques import MAX_CLIQUES
from api.jsons import Json, JsonObject
from api.sharing import MAX_CLAIM_TEMPLATES, MAX_SHARED, SharingScope
from policies import reading
from policies.podcliqueset_case import Case
from policies.problems import Problem, choice
from policies.rules import Rule

TEMPLATES: Final = "spec.template.resourceClaimTemplates"


@dataclass(frozen=True, slots=True)
class _Filter:
    """One list of a filter, and what its names are to be taken from."""

    path: str
    names: Json
    known: frozenset[str] | None
    what: str


def claim_templates_ask_for_devices(case: Case) -> Iterator[Problem]:
    """Refuse claim templates without a name of their own, or that ask for nothing."""
    seen: set[str] = set()
    for i, raw in enumerate(_templates(case)):
        template = reading.mapping(raw)
        name = reading.name(template.get("name"))
        if name is not None:
            if not name:
                yield Problem(f"{TEMPLATES}[{i}].name", "is empty; name the template")
            elif name in seen:
                yield Problem(
                    f"{TEMPLATES}[{i}].name", f"there is another template {name!r}; rename one"
                )
            seen.add(name)
        yield from _requests(f"{TEMPLATES}[{i}].templateSpec", template.get("templateSpec"))


def sharing_is_plain(case: Case) -> Iterator[Problem]:
    """Refuse sharing without a name, of one thing twice, or of a template that is elsewhere."""
    in_line = {name for name in reading.names(_templates(case)) if name}
    for path, raw in _lists(case):
        seen: set[str] = set()
        for i, item in enumerate(reading.items(raw)[:MAX_SHARED]):
            sharing = reading.mapping(item)
            yield from _sharing(f"{path}[{i}]", sharing, in_line)
            name = reading.name(sharing.get("name"))
            if name:
                if name in seen:
                    yield Problem(
                        f"{path}[{i}].name", f"{name!r} is shared here already; take one out"
                    )
                seen.add(name)


def set_filters_name_parts(case: Case) -> Iterator[Problem]:
    """Refuse a filter of the set's sharing that lets nothing in, or names nothing there is."""
    path = "spec.template.resourceSharing"
    shared = reading.items(case.set.template.get("resourceSharing"))
    for i, item in enumerate(shared[:MAX_SHARED]):
        raw = reading.mapping(item).get("filter")
        if not isinstance(raw, dict):
            continue
        inside = f"{path}[{i}].filter"
        cliques, groups = raw.get("childCliqueNames"), raw.get("childScalingGroupNames")
        if cliques in (None, []) and groups in (None, []):
            yield Problem(
                inside,
                "lets nothing in; name cliques in childCliqueNames or scaling groups in "
                "childScalingGroupNames, or leave the filter out",
            )
        known = case.set.known_cliques
        yield from _strangers(_Filter(f"{inside}.childCliqueNames", cliques, known, "clique"))
        known = case.set.known_groups
        yield from _strangers(
            _Filter(f"{inside}.childScalingGroupNames", groups, known, "scaling group")
        )


def group_filters_name_members(case: Case) -> Iterator[Problem]:
    """Refuse a filter of a group's sharing that is empty, or names no member."""
    for group in case.set.groups:
        written = group.raw.get("cliqueNames")
        readable = isinstance(written, list) and len(written) == len(group.cliques)
        members = frozenset(name for _, name in group.cliques) if readable else None
        for i, item in enumerate(reading.items(group.raw.get("resourceSharing"))[:MAX_SHARED]):
            raw = reading.mapping(item).get("filter")
            if not isinstance(raw, dict):
                continue
            inside = f"{group.path}.resourceSharing[{i}].filter"
            names = raw.get("childCliqueNames")
            if names in (None, []):
                yield Problem(
                    inside,
                    "lets nothing in; name cliques of the group in childCliqueNames, or leave the "
                    "filter out",
                )
            what = "clique in the group called"
            yield from _strangers(_Filter(f"{inside}.childCliqueNames", names, members, what))


def claims_differ(case: Case) -> Iterator[Problem]:
    """Refuse claims of a clique and a group of one name that would be one and the same claim."""
    shared = {group.name: _shared(group.raw) for group in case.set.groups if group.name}
    for clique, home in case.set.housed:
        others = shared.get(clique.name or "")
        if not others or home is not None:
            continue
        for what, i in _shared(clique.raw).items():
            if what in others:
                yield Problem(
                    f"{clique.path}.resourceSharing[{i}].name",
                    f"claims of {what[0]!r} would be called like those of the scaling group "
                    f"{clique.name!r}; rename the clique or the group",
                )


_SHARED: Final = attrgetter("set.shares")

RULES: Final[tuple[Rule[Case], ...]] = (
    Rule(claim_templates_ask_for_devices, ("2.3.3",), about=_SHARED),
    Rule(sharing_is_plain, ("2.3.4",), about=_SHARED),
    Rule(set_filters_name_parts, ("2.3.5",), about=_SHARED),
    Rule(group_filters_name_members, ("2.3.5",), about=_SHARED),
    Rule(claims_differ, about=_SHARED),
)


def _templates(case: Case) -> list[Json]:
    return reading.items(case.set.template.get("resourceClaimTemplates"))[:MAX_CLAIM_TEMPLATES]


def _shared(raw: JsonObject) -> dict[tuple[str, str], int]:
    """Give the places of what a part shares, by what its claims are named after."""
    found: dict[tuple[str, str], int] = {}
    for i, item in enumerate(reading.items(raw.get("resourceSharing"))[:MAX_SHARED]):
        sharing = reading.mapping(item)
        name, scope = reading.name(sharing.get("name")), reading.text(sharing.get("scope"))
        if name and scope:
            found.setdefault((name, scope), i)
    return found


def _lists(case: Case) -> Iterator[tuple[str, Json]]:
    """Give every list of things to share."""
    yield "spec.template.resourceSharing", case.set.template.get("resourceSharing")
    for part in case.set.parts:
        yield f"{part.path}.resourceSharing", part.raw.get("resourceSharing")


def _requests(path: str, raw: Json) -> Iterator[Problem]:
    if not isinstance(raw, dict):
        return
    spec = raw.get("spec")
    devices = spec.get("devices") if isinstance(spec, dict) else spec
    requests = devices.get("requests") if isinstance(devices, dict) else devices
    if requests is None or requests == []:
        yield Problem(f"{path}.spec.devices.requests", "is empty; a claim asks for some device")
    elif not isinstance(requests, list):
        yield Problem(f"{path}.spec.devices.requests", "must be a list inside objects")


def _sharing(path: str, sharing: JsonObject, in_line: set[str]) -> Iterator[Problem]:
    name, scope = reading.name(sharing.get("name")), reading.text(sharing.get("scope"))
    if name == "":
        yield Problem(f"{path}.name", "is empty; name a template of the set or of the cluster")
    if name in in_line and sharing.get("namespace"):
        yield Problem(
            f"{path}.namespace",
            f"{name!r} is a template of this set, which is in no other namespace; leave it out",
        )
    scopes = [each.value for each in SharingScope]
    if scope is not None and scope not in scopes:
        yield Problem(f"{path}.scope", f"{scope!r} is none of {', '.join(scopes)}")


def _strangers(of: _Filter) -> Iterator[Problem]:
    if of.known is None:
        return
    for j, name in reading.listed(of.names, MAX_CLIQUES):
        if name not in of.known:
            yield Problem(f"{of.path}[{j}]", f"there is no {of.what} {name!r}{choice(of.known)}")
