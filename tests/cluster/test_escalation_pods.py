"""A tenant tries to slip pods into gangs, or gangs' pods out of them."""

import pytest

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import ApiError
from kube.resources import PODS, Resource
from tests.support.attempts import (
    BELONGING,
    KEPT,
    ONLY_MAKERS,
    Ask,
    Attempt,
    Seen,
    carry_out,
    changed,
    each,
    labels,
    merge,
)
from tests.support.living import Cluster
from tests.support.tenants import ADMIN, EDITOR, OWNER, WAITING_SET, Estate, a_pod

pytestmark = pytest.mark.cluster

EVERYBODY = (EDITOR, ADMIN, OWNER)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", namespaced=True)
REPLICASETS = Resource("apps", "v1", "replicasets", "ReplicaSet", namespaced=True)
GATED: list[Json] = [{"name": names.GATE}]
CLAIM: JsonObject = {names.PODGANG_LABEL: f"{WAITING_SET}-0"}
PLAIN: JsonObject = {names.GANG_LABEL: "mine", names.GANG_SIZE_LABEL: "1000"}


def new(body: JsonObject, **metadata: Json) -> JsonObject:
    return changed(body, "metadata", to={"name": "slipped-in", **metadata})


MANY: JsonObject = {f"label-{i}": "x" for i in range(1001)}


def create(seen: Seen, body: JsonObject) -> list[Ask]:
    return [Ask("POST", seen.estate.path(PODS), body)]


def owned_by(
    seen: Seen, api_version: str = "grove.io/v1alpha1", kind: str = "PodCliqueSet"
) -> list[Json]:
    return [
        {
            "apiVersion": api_version,
            "kind": kind,
            "name": WAITING_SET,
            "uid": seen.estate.set_uid,
            "controller": True,
        }
    ]


def astray(seen: Seen, *, api_version: str = "grove.io/v1alpha1") -> list[Ask]:
    """What the set makes next would go to this pod's scheduler, if the set took it for its own."""
    words = {**CLAIM, names.MANAGED_BY_LABEL: names.MANAGED_BY, names.PART_OF_LABEL: WAITING_SET}
    return create(
        seen,
        new(
            a_pod("x", schedulerName="another"),
            labels=words,
            ownerReferences=owned_by(seen, api_version),
            finalizers=["mine.example/hold"],
        ),
    )


def drifting(seen: Seen, name: str, change: JsonObject, **metadata: Json) -> list[Ask]:
    """Make a pod of another scheduler, as anybody may, and change it afterwards."""
    body = new(a_pod("x", schedulerName="another"), **metadata)
    made = changed(body, "metadata", "name", to=name)
    return [
        *create(seen, made),
        *merge(seen.estate.path(PODS, name), {"metadata": change}),
    ]


def annotated(key: str) -> JsonObject:
    return {"metadata": {"annotations": {key: "mine"}}}


def binding_with(words: JsonObject, seen: Seen) -> list[Ask]:
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": seen.estate.loose, **words},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "mine"},
    }
    return [Ask("POST", seen.loose("binding"), body)]


def mirror() -> JsonObject:
    body = new(
        a_pod("x", nodeName="mine"),
        labels=PLAIN,
        annotations={"kubernetes.io/config.mirror": "a-static-pod"},
    )
    return changed(body, "spec", "automountServiceAccountToken", to=False)


@each(
    Attempt(
        "makes a pod of a set's gang",
        EVERYBODY,
        lambda seen: create(seen, new(a_pod("x"), labels=CLAIM)),
        ONLY_MAKERS,
    ),
    Attempt(
        "makes a pod of a set's gang, gate and all",
        (OWNER,),
        lambda seen: create(seen, new(a_pod("x", schedulingGates=GATED), labels=CLAIM)),
        ONLY_MAKERS,
    ),
    Attempt(
        "makes a pod that names a set as its owner",
        EVERYBODY,
        lambda seen: create(seen, new(a_pod("x"), ownerReferences=owned_by(seen))),
        "ownerReference to the PodCliqueSet stuck",
    ),
    Attempt(
        "makes a pod of a set for another scheduler",
        EVERYBODY,
        astray,
        "ownerReference to the PodCliqueSet stuck",
    ),
    Attempt(
        "makes a pod that names a clique as its owner, for another scheduler",
        EVERYBODY,
        lambda seen: create(
            seen,
            new(
                a_pod("x", schedulerName="another"),
                ownerReferences=owned_by(seen, "mine.example/v1", "PodClique"),
            ),
        ),
        "ownerReference to the PodClique stuck",
    ),
    Attempt(
        "makes a pod of a set of no group for another scheduler",
        (EDITOR,),
        lambda seen: astray(seen, api_version="mine.example/v1"),
        "ownerReference to the PodCliqueSet stuck",
    ),
    Attempt(
        "makes a pod that says Penstock manages it",
        (EDITOR,),
        lambda seen: create(
            seen,
            new(
                a_pod("x"),
                labels={
                    names.MANAGED_BY_LABEL: names.MANAGED_BY,
                    names.PART_OF_LABEL: WAITING_SET,
                },
            ),
        ),
        ONLY_MAKERS,
    ),
    Attempt(
        "makes a pod that takes the slot of another",
        (EDITOR,),
        lambda seen: create(seen, new(a_pod("x"), labels={**PLAIN, names.POD_INDEX_LABEL: "0"})),
        names.POD_INDEX_LABEL,
    ),
    Attempt(
        "makes a pod with an annotation that only Penstock writes",
        (EDITOR,),
        lambda seen: create(seen, new(a_pod("x"), annotations={"penstock.dev/lifted": "yes"})),
        "annotation penstock.dev/lifted",
    ),
    Attempt(
        "makes a gang's pod that is on a node already",
        EVERYBODY,
        lambda seen: create(seen, new(a_pod("x", nodeName="mine"), labels=PLAIN)),
        "spec.nodeName",
    ),
    Attempt(
        "makes a gang's pod that poses as a static one",
        EVERYBODY,
        lambda seen: create(seen, mirror()),
        "spec.nodeName cannot be set on a pod that claims a gang",
    ),
    Attempt(
        "keeps the API server busy by a pod of many labels",
        (OWNER,),
        lambda seen: create(seen, new(a_pod("x"), labels=MANY)),
        "among more than 1,000 labels and annotations",
    ),
    Attempt(
        "makes a gang that is never whole",
        (EDITOR,),
        lambda seen: create(seen, new(a_pod("x"), labels={names.GANG_LABEL: "mine"})),
        names.GANG_SIZE_LABEL,
    ),
)
async def test_nobody_makes_pods_of_gangs_that_are_not_theirs(
    person: Client, estate: Estate, attempt: Attempt, tenant: str
) -> None:
    await carry_out(person, estate, attempt, tenant)


@each(
    Attempt(
        "labels a pod into a set's gang",
        EVERYBODY,
        lambda seen: merge(seen.loose(), labels(grove__podgang="stuck-0")),
        BELONGING,
    ),
    Attempt(
        "labels a pod into a gang of labels",
        (EDITOR, OWNER),
        lambda seen: merge(seen.loose(), labels(ours__gang="mine", ours__gang_size="1")),
        BELONGING,
    ),
    Attempt(
        "moves a running pod into another gang",
        EVERYBODY,
        lambda seen: merge(seen.bound(), labels(grove__podgang="stuck-0")),
        BELONGING,
    ),
    Attempt(
        "labels a pod into a gang through its status",
        (OWNER,),
        lambda seen: merge(seen.loose("status"), labels(grove__podgang="stuck-0")),
        BELONGING,
    ),
    Attempt(
        "takes a gated pod out of its gang",
        EVERYBODY,
        lambda seen: merge(seen.gated(), labels(grove__podgang=None)),
        BELONGING,
    ),
    Attempt(
        "takes a pod from its set by the label part-of",
        (EDITOR, OWNER),
        lambda seen: merge(seen.gated(), labels(app__part_of="team")),
        BELONGING,
    ),
    Attempt(
        "has a pod no longer managed",
        (EDITOR,),
        lambda seen: merge(seen.gated(), labels(app__managed_by=None)),
        BELONGING,
    ),
    Attempt(
        "has a stray pod count as managed",
        (EDITOR,),
        lambda seen: merge(seen.loose(), labels(app__managed_by="grove-operator")),
        BELONGING,
    ),
    Attempt(
        "annotates a gang's pod with our words",
        (EDITOR, OWNER),
        lambda seen: merge(seen.gated(), annotated("penstock.dev/startup")),
        BELONGING,
    ),
    Attempt(
        "annotates a gang's pod through its status",
        (OWNER,),
        lambda seen: merge(seen.bound("status"), annotated("penstock.dev/startup")),
        BELONGING,
    ),
    Attempt(
        "puts our words on a pod by binding it",
        (OWNER,),
        lambda seen: binding_with({"annotations": {"penstock.dev/startup": "0"}}, seen),
        "a Binding cannot give a pod labels or annotations",
    ),
    Attempt(
        "has a pod count as managed by binding it",
        (OWNER,),
        lambda seen: binding_with({"labels": {names.MANAGED_BY_LABEL: names.MANAGED_BY}}, seen),
        "a Binding cannot give a pod labels or annotations",
    ),
    Attempt(
        "keeps the API server busy by giving a pod many labels",
        (OWNER,),
        lambda seen: merge(seen.loose(), {"metadata": {"labels": MANY}}),
        BELONGING,
    ),
    Attempt(
        "takes a gang's pod from its owner",
        EVERYBODY,
        lambda seen: merge(seen.gated(), {"metadata": {"ownerReferences": None}}),
        KEPT,
    ),
    Attempt(
        "has a set own a pod it never made",
        EVERYBODY,
        lambda seen: merge(seen.loose(), {"metadata": {"ownerReferences": owned_by(seen)}}),
        KEPT,
    ),
    Attempt(
        "has a clique own a pod of another scheduler",
        (EDITOR,),
        lambda seen: drifting(
            seen, "drifting-low", {"ownerReferences": owned_by(seen, kind="PodClique")}
        ),
        KEPT,
    ),
    Attempt(
        "has a set own a pod of another scheduler",
        (EDITOR,),
        lambda seen: drifting(seen, "drifting", {"ownerReferences": owned_by(seen)}),
        KEPT,
    ),
    Attempt(
        "has a set own a pod of another scheduler that claims its gang",
        (EDITOR,),
        lambda seen: drifting(
            seen, "drifting-on", {"ownerReferences": owned_by(seen)}, labels=CLAIM
        ),
        KEPT,
    ),
    Attempt(
        "has a set of no group own a pod of another scheduler",
        (EDITOR,),
        lambda seen: drifting(
            seen, "drifting-off", {"ownerReferences": owned_by(seen, "mine.example/v1")}
        ),
        KEPT,
    ),
    Attempt(
        "has a set own and claim a pod of another scheduler",
        (EDITOR,),
        lambda seen: drifting(
            seen, "drifting-in", {"ownerReferences": owned_by(seen), "labels": CLAIM}
        ),
        f"{BELONGING}|{KEPT}",
    ),
    Attempt(
        "holds up the end of a gang's pod by a finalizer",
        (EDITOR, OWNER),
        lambda seen: merge(seen.gated(), {"metadata": {"finalizers": ["mine.example/hold"]}}),
        KEPT,
    ),
)
async def test_nobody_changes_whose_a_pod_is(
    person: Client, estate: Estate, attempt: Attempt, tenant: str
) -> None:
    await carry_out(person, estate, attempt, tenant)


async def test_a_template_that_claims_a_sets_gang_gets_no_pods(
    person: Client, estate: Estate
) -> None:
    """Whoever may write a Deployment has its controller make the pods, and that may make none."""
    template: JsonObject = {
        "metadata": {"labels": {"app": "trojan", **CLAIM}},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }
    body: JsonObject = {
        "metadata": {"name": "trojan"},
        "spec": {"selector": {"matchLabels": {"app": "trojan"}}, "template": template},
    }
    async with estate.acting(EDITOR) as editor:
        await editor.ask("POST", estate.path(DEPLOYMENTS), body)

        async def refused() -> str | None:
            found = await editor.ask("GET", estate.path(REPLICASETS))
            said = [each for each in items(found) if "trojan" in str(each["metadata"])]
            return str(said[0].get("status")) if "ReplicaFailure" in str(said) else None

        status = await Cluster(person, estate.namespace).until(refused, "no pods of trojan")
        assert ONLY_MAKERS in status
        pods = await editor.ask("GET", estate.path(PODS))
        assert not [pod for pod in items(pods) if "trojan" in str(pod["metadata"])]
        await editor.ask("DELETE", estate.path(DEPLOYMENTS, "trojan"))


def items(listing: JsonObject) -> list[JsonObject]:
    found = listing["items"]
    assert isinstance(found, list)
    return [each for each in found if isinstance(each, dict)]


async def test_what_was_refused_left_no_pod_behind(estate: Estate) -> None:
    async with estate.acting(EDITOR) as editor:
        with pytest.raises(ApiError, match="not found"):
            await editor.ask("GET", estate.path(PODS, "slipped-in"))
