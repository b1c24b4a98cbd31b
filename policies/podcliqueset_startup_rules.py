"""Which cliques a set has, and what they wait for before they start."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from api.cliques import MAX_CLIQUES
from api.podcliqueset import StartupType
from policies import reading, startup_graph
from policies.pod_glance import CONTAINERS_OF_WAITERS, VOLUMES_OF_WAITERS
from policies.podcliqueset_case import Case
from policies.podcliqueset_view import CLIQUES, GROUPS, Clique, SetView
from policies.problems import Problem, choice
from policies.rules import Rule

# Far more than are taken; who has so many is told of a cycle among these all the same.
_MOST_SEARCHED: Final = 2_000
# Of a longer cycle only so many names are shown before and after what is left out.
_SHOWN: Final = 4
_TYPES: Final = tuple(each.value for each in StartupType)


def startup_is_acyclic(case: Case) -> Iterator[Problem]:
    """Refuse cliques that wait for each other, whatever the startup type is today."""
    edges: dict[str, list[str]] = {}
    place: dict[str, int] = {}
    for i, (name, after) in enumerate(_dependencies(case.set)):
        if name is None:
            continue
        place.setdefault(name, i)
        # A clique that waits for itself is another rule's problem.
        waits_for = [each for _, each in after if each != name]
        edges.setdefault(name, []).extend(waits_for)
    for cycle in startup_graph.cycles(edges):
        yield Problem(
            f"{CLIQUES}[{place[cycle[0]]}].spec.startsAfter",
            f"cliques wait for each other: {_path(cycle)}; take one of these dependencies out",
        )


def has_cliques(case: Case) -> Iterator[Problem]:
    """Refuse a set without anything to run, or with more parts than anybody means."""
    for path, what in ((CLIQUES, "cliques"), (GROUPS, "podCliqueScalingGroups")):
        found = case.set.template.get(what)
        if isinstance(found, list) and len(found) > MAX_CLIQUES:
            yield Problem(path, f"at most {MAX_CLIQUES} are taken, got {len(found)}")
    if case.set.template.get("cliques") == []:
        yield Problem(CLIQUES, "is empty; a set needs at least one clique")


def startup_type_is_known(case: Case) -> Iterator[Problem]:
    """Refuse a startup type that is none."""
    written = reading.text(case.set.template.get("cliqueStartupType"))
    if written is not None and written not in _TYPES:
        yield Problem(
            "spec.template.cliqueStartupType", f"{written!r} is none of {', '.join(_TYPES)}"
        )


def nothing_waits_for_itself(case: Case) -> Iterator[Problem]:
    """Refuse a cycle of one."""
    for clique in case.set.cliques:
        for j, name in clique.starts_after:
            if name == clique.name:
                yield Problem(
                    f"{clique.path}.spec.startsAfter[{j}]",
                    f"clique {name!r} cannot start after itself",
                )


def starts_after_is_known(case: Case) -> Iterator[Problem]:
    """Refuse a dependency on nothing, or named twice, where the order counts."""
    if is_explicit(case.set):
        yield from loose_dependencies(case.set)


def waiters_names_are_free(case: Case) -> Iterator[Problem]:
    """Refuse what is called like the container that waits, or its volumes, in pods that wait.

    No pod may have two of one name, and none could be made once it is given that container. Which
    cliques wait never changes, and by which way they do may at any time.
    """
    for clique in _waiting(case.set):
        for which in ("initContainers", "containers", "volumes"):
            taken = VOLUMES_OF_WAITERS if which == "volumes" else CONTAINERS_OF_WAITERS
            found = reading.names(clique.pod.get(which))
            if taken.isdisjoint(found):
                continue
            for i, name in enumerate(found):
                if name in taken:
                    yield Problem(
                        f"{clique.pod_path}.{which}[{i}].name",
                        f"{name!r} is given to pods that wait for other cliques; choose another",
                    )


def is_explicit(of: SetView) -> bool:
    """Tell whether cliques start in the order they name."""
    return of.template.get("cliqueStartupType") == StartupType.EXPLICIT.value


def loose_dependencies(of: SetView) -> Iterator[Problem]:
    """Find dependencies that say nothing."""
    known = of.known_cliques
    for clique in of.cliques:
        seen: set[str] = set()
        for j, name in clique.starts_after:
            said = ""
            if not name:
                said = "is empty; name a clique or take the entry out"
            elif name in seen:
                said = f"names {name!r} a second time"
            elif known is not None and name not in known:
                said = f"there is no clique {name!r}{choice(known)}"
            if said:
                yield Problem(f"{clique.path}.spec.startsAfter[{j}]", said)
            seen.add(name)


def _dependencies(of: SetView) -> Iterator[tuple[str | None, list[tuple[int, str]]]]:
    """Give each clique's name and what it waits for, of those too that are too many to be taken."""
    cliques = reading.items(of.template.get("cliques"))
    if len(cliques) == len(of.cliques):
        yield from ((each.name, each.starts_after) for each in of.cliques)
        return
    for clique in map(reading.mapping, cliques[:_MOST_SEARCHED]):
        after = reading.listed(reading.mapping(clique.get("spec")).get("startsAfter"), MAX_CLIQUES)
        yield reading.name(clique.get("name")), after


def _waiting(of: SetView) -> tuple[Clique, ...]:
    """Give the cliques that wait for others by the set's startup type."""
    if of.template.get("cliqueStartupType") == StartupType.IN_ORDER.value:
        return of.cliques[1:]
    return tuple(each for each in of.cliques if each.starts_after) if is_explicit(of) else ()


def _path(cycle: tuple[str, ...]) -> str:
    whole = [*cycle, cycle[0]]
    left_out = len(whole) - 2 * _SHOWN
    if left_out > 1:
        whole[_SHOWN:-_SHOWN] = [f"… {left_out} more …"]
    return " → ".join(whole)


TANGLED: Final = attrgetter("set.tangled")

RULES: Final[tuple[Rule[Case], ...]] = (
    Rule(startup_is_acyclic, ("2.3.11",), about=TANGLED),
    Rule(has_cliques, ("2.3.6",)),
    Rule(nothing_waits_for_itself, ("2.3.10",), about=TANGLED),
    Rule(starts_after_is_known, ("2.3.10", "2.3.11"), about=TANGLED),
    Rule(startup_type_is_known, ("2.3.2",)),
    Rule(waiters_names_are_free, about=attrgetter("set.doubtful")),
)
