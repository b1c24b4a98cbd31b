"""A tenant tries to have something taken for a set's own, or to see more through a set."""

from typing import Final
from uuid import uuid4

import pytest

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import Forbidden
from kube.resources import (
    AUTOSCALERS,
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    PODS,
    SCALING_GROUPS,
    SERVICEACCOUNTS,
    SERVICES,
    Resource,
)
from tests.support.attempts import (
    BELONGING,
    ONLY_MAKERS,
    Ask,
    Attempt,
    Seen,
    carry_out,
    changed,
    each,
    labels,
    merge,
    part,
)
from tests.support.living import engine_set
from tests.support.tenants import ADMIN, AUTHOR, EDITOR, OWNER, WAITING_SET, Estate, a_pod

pytestmark = pytest.mark.cluster

OF_THE_SET: Final = f"ownerReference to the PodCliqueSet {WAITING_SET} can"
BY_STATUS: Final = "cannot be changed through the status of what was made for a set"
CHOSEN: Final[JsonObject] = {
    names.PART_OF_LABEL: WAITING_SET,
    names.SET_REPLICA_LABEL: "0",
}


def owners(seen: Seen) -> list[Json]:
    return [
        {
            "apiVersion": PODCLIQUESETS.api_version,
            "kind": PODCLIQUESETS.kind,
            "name": WAITING_SET,
            "uid": seen.estate.set_uid,
            "controller": True,
        }
    ]


def a_clique(name: str) -> JsonObject:
    pod: JsonObject = {"containers": [{"name": "main", "image": "evil"}]}
    spec: JsonObject = {"roleName": "engine", "replicas": 0, "podSpec": pod}
    return body(PODCLIQUES, name, spec=spec)


def body(kind: Resource, name: str, **parts: Json) -> JsonObject:
    return {
        "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, **parts,
    }  # fmt: skip


def planted(seen: Seen, kind: Resource, made: JsonObject) -> list[Ask]:
    """Make it as if the set had: the set, when it is scaled, takes it for its own."""
    owned = changed(made, "metadata", "ownerReferences", to=owners(seen))
    return [Ask("POST", seen.estate.path(kind), owned)]


def slipped(seen: Seen) -> list[Ask]:
    """Make a clique as anybody may, and give it to the set afterwards."""
    name = f"slipped-{uuid4().hex[:8]}"
    patch: JsonObject = {"metadata": {"ownerReferences": owners(seen)}}
    made = Ask("POST", seen.estate.path(PODCLIQUES), a_clique(name))
    return [made, *merge(seen.estate.path(PODCLIQUES, name), patch)]


@each(
    Attempt(
        "plants a clique of its own in a set",
        (AUTHOR, OWNER),
        lambda seen: planted(seen, PODCLIQUES, a_clique(f"{WAITING_SET}-1-engine")),
        OF_THE_SET,
    ),
    Attempt("slips a clique of its own into a set", (AUTHOR, OWNER), slipped, OF_THE_SET),
    Attempt(
        "plants a scaling group in a set",
        (OWNER,),
        lambda seen: planted(
            seen,
            SCALING_GROUPS,
            body(
                SCALING_GROUPS, f"{WAITING_SET}-1-group",
                spec={"replicas": 0, "cliqueNames": ["engine"]},
            ),
        ),
        OF_THE_SET,
    ),
    Attempt(
        "plants a gang in a set",
        (OWNER,),
        lambda seen: planted(
            seen, PODGANGS, body(PODGANGS, f"{WAITING_SET}-1", spec={"podgroups": []})
        ),
        OF_THE_SET,
    ),
    Attempt(
        "passes an account off as a set's, which would get a token",
        (EDITOR, OWNER),
        lambda seen: planted(seen, SERVICEACCOUNTS, body(SERVICEACCOUNTS, WAITING_SET)),
        OF_THE_SET,
    ),
)  # fmt: skip
async def test_nobody_passes_anything_off_as_a_sets(
    person: Client, estate: Estate, attempt: Attempt, tenant: str
) -> None:
    await carry_out(person, estate, attempt, tenant)


def by_status(seen: Seen, patch: JsonObject) -> list[Ask]:
    """Change whose the Service of a set is, where only its status is looked at."""
    return merge(seen.estate.path(SERVICES, f"{WAITING_SET}-0", "status"), patch)


def scaled_by_status(seen: Seen) -> list[Ask]:
    name = f"kept-{uuid4().hex[:8]}"
    target: JsonObject = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}
    made = body(AUTOSCALERS, name, spec={"maxReplicas": 2, "scaleTargetRef": target})
    kept = changed(made, "metadata", "labels", to={names.MANAGED_BY_LABEL: names.MANAGED_BY})
    path = seen.estate.path(AUTOSCALERS, name, "status")
    return [
        Ask("POST", seen.estate.path(AUTOSCALERS), kept), *merge(path, labels(app__managed_by=None))
    ]  # fmt: skip


@each(
    Attempt(
        "has a set's Service no longer managed, through its status",
        (OWNER,),
        lambda seen: by_status(seen, labels(app__managed_by=None)),
        f"label {names.MANAGED_BY_LABEL} {BY_STATUS}",
    ),
    Attempt(
        "gives a set's Service to a set that there is not, through its status",
        (OWNER,),
        lambda seen: by_status(seen, labels(app__part_of="nobody")),
        f"label {names.PART_OF_LABEL} {BY_STATUS}",
    ),
    Attempt(
        "says of a set's Service that it is another replica's, through its status",
        (OWNER,),
        lambda seen: by_status(seen, labels(grove__podcliqueset_replica_index="7")),
        f"label {names.SET_REPLICA_LABEL} {BY_STATUS}",
    ),
    Attempt(
        "takes a Service from its set, through its status",
        (OWNER,),
        lambda seen: by_status(seen, {"metadata": {"ownerReferences": None}}),
        f"ownerReferences {BY_STATUS}",
    ),
    Attempt(
        "has a set's autoscaler no longer managed, through its status",
        (OWNER,),
        scaled_by_status,
        f"label {names.MANAGED_BY_LABEL} {BY_STATUS}",
    ),
)
async def test_nobody_frees_what_was_made_for_a_set_through_its_status(
    person: Client, estate: Estate, attempt: Attempt, tenant: str
) -> None:
    await carry_out(person, estate, attempt, tenant)


async def test_the_status_of_what_was_made_for_a_set_is_for_whoever_may_write_it(
    estate: Estate,
) -> None:
    async with estate.acting(OWNER) as owner:
        path = estate.path(SERVICES, f"{WAITING_SET}-0", "status")
        said: JsonObject = {"type": "Seen", "status": "True", "reason": "x", "message": ""}
        said["lastTransitionTime"] = "2026-01-02T03:04:05Z"
        both: list[list[Json]] = [[said], []]
        for conditions in both:
            (ask,) = merge(path, {"status": {"conditions": conditions}})
            await owner.ask(ask.method, ask.path, ask.body, ask.media)


def posing(seen: Seen) -> list[Ask]:
    """Make a pod that the Service of a set would choose among its own."""
    marked: JsonObject = {**CHOSEN, names.MANAGED_BY_LABEL: names.MANAGED_BY}
    pod = a_pod(f"posing-{uuid4().hex[:8]}", schedulerName="another")
    return [Ask("POST", seen.estate.path(PODS), changed(pod, "metadata", "labels", to=marked))]


def posing_late(seen: Seen) -> list[Ask]:
    """Make a pod that says nearly all of it, and have it say the rest."""
    name = f"posing-{uuid4().hex[:8]}"
    pod = changed(a_pod(name, schedulerName="another"), "metadata", "labels", to=CHOSEN)
    return [
        Ask("POST", seen.estate.path(PODS), pod),
        *merge(seen.estate.path(PODS, name), labels(app__managed_by=names.MANAGED_BY)),
    ]


@each(
    Attempt(
        "makes a pod of another scheduler that a set's Service chooses",
        (EDITOR, ADMIN, OWNER),
        posing,
        ONLY_MAKERS,
    ),
    Attempt(
        "has a pod of another scheduler chosen by a set's Service",
        (EDITOR, OWNER),
        posing_late,
        BELONGING,
    ),
)
async def test_nobody_comes_between_a_set_and_its_clients(
    person: Client, estate: Estate, attempt: Attempt, tenant: str
) -> None:
    await carry_out(person, estate, attempt, tenant)


@pytest.mark.parametrize("level", ["set", "clique", "group"])
async def test_no_set_copies_templates_of_claims_that_its_author_may_not_read(
    estate: Estate, level: str
) -> None:
    """Whoever owns a namespace may make any claims in it, and read nothing in another."""
    far = sharing(level, namespace=names.NAMESPACE)
    path = estate.path(PODCLIQUESETS)
    async with estate.acting(OWNER) as owner:
        with pytest.raises(Forbidden, match=f"{names.NAMESPACE}/secretive, which its author may"):
            await owner.ask("POST", path, far)
        # In its own namespace it may read them all.
        for namespace in (estate.namespace, ""):
            near = sharing(level, **({"namespace": namespace} if namespace else {}))
            await owner.ask("POST", path, near, dryRun="All")


def sharing(level: str, **more: Json) -> JsonObject:
    """A set that shares claims at one of the levels."""
    made = engine_set("sharing", pods=1, gpus=1)
    template = part(made, "spec", "template")
    assert isinstance(template, dict)
    cliques = template["cliques"]
    assert isinstance(cliques, list)
    (clique,) = cliques
    assert isinstance(clique, dict)
    group: JsonObject = {"name": "model", "cliqueNames": [clique["name"]]}
    shared: list[Json] = [{"name": "secretive", "scope": "AllReplicas", **more}]
    places = {"set": template, "clique": clique, "group": group}
    places[level]["resourceSharing"] = shared
    if level == "group":
        template["podCliqueScalingGroups"] = [group]
    return made
