"""A tenant tries to have something taken for a set's own, or to see more through a set."""

from typing import Final
from uuid import uuid4

import pytest

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import Forbidden
from kube.resources import (
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    SCALING_GROUPS,
    SERVICEACCOUNTS,
    Resource,
)
from tests.support.attempts import Ask, Attempt, Seen, carry_out, changed, each, merge, part
from tests.support.living import engine_set
from tests.support.tenants import AUTHOR, EDITOR, OWNER, WAITING_SET, Estate

pytestmark = pytest.mark.cluster

OF_THE_SET: Final = f"ownerReference to the PodCliqueSet {WAITING_SET} can"


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
