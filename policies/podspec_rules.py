"""What pods of a set may look like, beyond what the API server checks when they are made."""

from collections.abc import Iterator
from itertools import islice
from operator import attrgetter
from typing import Final

from api.jsons import Json
from policies import bounds, membership, node_terms, podspec_shapes, reading, syntax
from policies.podcliqueset_case import Case
from policies.podcliqueset_view import Clique
from policies.problems import Problem, choice
from policies.rules import Rule

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
CONTAINER_LISTS: Final = ("initContainers", "containers")
# More than are taken, so that those that are too many cost little.
MOST_KEYS: Final = 256
# The API server's own bound on the annotations of one object.
MOST_ANNOTATION_BYTES: Final = 256 * 1024


def pods_can_be_judged(case: Case) -> Iterator[Problem]:
    """Refuse pods that hold more than the rules look at: it could be anything."""
    for clique in case.set.doubtful:
        yield from bounds.overfull(clique.pod_path, clique.pod)


def pods_have_containers(case: Case) -> Iterator[Problem]:
    """Refuse pods that the API server would not take."""
    for clique in case.set.doubtful:
        if not isinstance(reading.mapping(clique.raw.get("spec")).get("podSpec"), dict):
            continue
        containers = clique.pod.get("containers")
        if containers is None or containers == []:
            yield Problem(f"{clique.pod_path}.containers", "a pod needs at least one container")


def pods_start_without_visitors(case: Case) -> Iterator[Problem]:
    """Refuse containers that the API server only takes in pods that run."""
    for clique in case.set.doubtful:
        if clique.pod.get("ephemeralContainers"):
            yield Problem(
                f"{clique.pod_path}.ephemeralContainers",
                "can only be added to pods that run, with kubectl debug; leave it out",
            )


def pods_have_their_shape(case: Case) -> Iterator[Problem]:
    """Refuse pods whose fields are of other types."""
    for clique in case.set.doubtful:
        yield from podspec_shapes.pod_misfits(clique.pod_path, clique.pod)


def pods_can_be_pinned(case: Case) -> Iterator[Problem]:
    """Refuse pods that would be on a node already, or could never be sent to one."""
    for clique in case.set.doubtful:
        if reading.text(clique.pod.get("nodeName")):
            yield Problem(
                f"{clique.pod_path}.nodeName",
                "a pod that waits for its gang cannot be on a node already; "
                "leave nodeName out and use nodeSelector or affinity",
            )
        terms = bounds.terms(clique.pod)
        if terms is not None and node_terms.say_nothing(terms):
            yield Problem(
                f"{clique.pod_path}.{bounds.TERMS_PATH}",
                "only holds empty terms, which no node matches; say something in one of them, or "
                "leave the node affinity out",
            )


def pods_are_spread_by_gangs(case: Case) -> Iterator[Problem]:
    """Refuse, on a new set, spreading that the placement of gangs does not look at."""
    for clique in case.set.doubtful:
        if case.is_new and clique.pod.get("topologySpreadConstraints") is not None:
            yield Problem(
                f"{clique.pod_path}.topologySpreadConstraints",
                "pods of a gang are placed by its topology constraints, and this could keep them "
                "from the nodes they get; leave it out",
            )


def restart_policies_are_known(case: Case) -> Iterator[Problem]:
    """Refuse restart policies that pods do not have; the three they have pass as written."""
    for clique in case.set.doubtful:
        written = reading.text(clique.pod.get("restartPolicy"))
        if written is not None and written not in RESTART_POLICIES:
            yield Problem(
                f"{clique.pod_path}.restartPolicy",
                f"{written!r} is none of {', '.join(RESTART_POLICIES)}",
            )


def one_scheduler_is_meant(case: Case) -> Iterator[Problem]:
    """Refuse schedulers that gangs are not placed for, and two of them in one set."""
    policy = case.policy
    known = {*policy.schedulers, *policy.scheduler_names.values()}
    meant: tuple[str, Clique] | None = None
    for clique in case.set.cliques:
        written = clique.pod.get("schedulerName")
        if written is not None and not isinstance(written, str):
            continue
        scheduler = policy.scheduler_of(written or "")
        if scheduler not in known:
            yield Problem(
                f"{clique.pod_path}.schedulerName",
                f"gangs are not placed for {scheduler!r}, which would not heed their places; "
                f"leave schedulerName out{choice(known)}",
            )
            continue
        meant = meant or (scheduler, clique)
        if scheduler != meant[0]:
            yield Problem(
                f"{clique.pod_path}.schedulerName",
                f"means {scheduler!r}, but {meant[1].path} means {meant[0]!r}; all cliques of a "
                "set need the same",
            )


def variables_are_named(case: Case) -> Iterator[Problem]:
    """Refuse environment variables of no name, a bad one, or that of another."""
    for clique in case.set.doubtful:
        for which in CONTAINER_LISTS:
            for k, container in enumerate(bounds.listed(clique.pod, which)):
                variables = bounds.listed(reading.mapping(container), "env")
                if variables:
                    yield from _variables(f"{clique.pod_path}.{which}[{k}].env", variables)


def labels_are_spelled_well(case: Case) -> Iterator[Problem]:
    """Refuse labels and annotations that no object could carry."""
    for clique, labels, _ in case.set.marked:
        for key, value in islice(labels.items(), MOST_KEYS):
            if not syntax.is_key(key):
                yield _no_key(f"{clique.path}.labels", key)
            if isinstance(value, str) and not syntax.is_value(value):
                yield Problem(
                    f"{clique.path}.labels[{key}]",
                    f"{value!r} cannot be a label's value: {syntax.VALUE_RULE}",
                )
    for holder, annotations in case.set.annotated_parts:
        path = f"{holder}.annotations"
        size = 0
        for key, value in islice(annotations.items(), MOST_KEYS):
            if not syntax.is_key(key.lower()):
                yield _no_key(path, key.lower())
            size += len(key.encode(errors="replace"))
            size += len(value.encode(errors="replace")) if isinstance(value, str) else 0
        if size > MOST_ANNOTATION_BYTES:
            yield Problem(path, f"take {size} bytes; at most {MOST_ANNOTATION_BYTES} are taken")


def membership_is_not_claimed(case: Case) -> Iterator[Problem]:
    """Refuse labels and annotations by which pods would pass for those of another gang."""
    for clique, labels, annotations in case.set.marked:
        for key in islice(labels, MOST_KEYS):
            if membership.is_forbidden_label(key):
                yield Problem(
                    f"{clique.path}.labels[{key}]",
                    "says which gang a pod belongs to, which only Penstock writes; leave it out",
                )
        for key in islice(annotations, MOST_KEYS):
            if membership.is_forbidden_annotation(key):
                yield Problem(
                    f"{clique.path}.annotations[{key}]",
                    "makes a pod the mirror of a static one, which its kubelet deletes; "
                    "leave it out",
                )


_DOUBTFUL: Final = attrgetter("set.doubtful")

RULES: Final[tuple[Rule[Case], ...]] = (
    Rule(pods_can_be_judged, about=_DOUBTFUL),
    Rule(pods_have_containers, about=_DOUBTFUL),
    Rule(pods_start_without_visitors, about=_DOUBTFUL),
    Rule(pods_have_their_shape, about=_DOUBTFUL),
    Rule(pods_can_be_pinned, ("2.3.17",), about=_DOUBTFUL),
    Rule(pods_are_spread_by_gangs, ("2.3.17",), about=_DOUBTFUL),
    Rule(restart_policies_are_known, ("2.3.16",), about=_DOUBTFUL),
    Rule(one_scheduler_is_meant, ("2.3.8",)),
    Rule(variables_are_named, ("2.3.18",), about=_DOUBTFUL),
    Rule(labels_are_spelled_well, ("2.3.7",)),
    Rule(membership_is_not_claimed, about=attrgetter("set.marked")),
)


def _variables(path: str, variables: list[Json]) -> Iterator[Problem]:
    names = reading.names(variables)
    readable = [name for name in names if name is not None]
    if len(set(readable)) == len(readable) and all(map(syntax.is_variable, readable)):
        return
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name is None:
            continue
        if not syntax.is_variable(name):
            yield Problem(
                f"{path}[{i}].name",
                f"{name!r} is no name for a variable: {syntax.VARIABLE_RULE}",
            )
        elif name in seen:
            yield Problem(f"{path}[{i}].name", f"sets {name!r} a second time; take one out")
        seen.add(name)


def _no_key(path: str, key: str) -> Problem:
    return Problem(f"{path}[{key}]", f"is no key: {syntax.KEY_RULE}")
