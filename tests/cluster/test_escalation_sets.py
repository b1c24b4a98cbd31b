"""Somebody who may write sets and make no pods tries to get more through the pods of a set."""

from collections.abc import Callable
from typing import Final

import pytest

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import Conflict, Forbidden, Invalid
from kube.resources import PODCLIQUESETS, Resource
from tests.support.attempts import changed
from tests.support.living import Cluster, engine_set
from tests.support.tenants import (
    AUTHOR,
    MERGE_PATCH,
    OWNER,
    PRIZE,
    RBAC,
    ROLEBINDINGS,
    ROLES,
    RUNNING_SET,
    Estate,
    Tenant,
)

pytestmark = pytest.mark.cluster

PODCLIQUES: Final = Resource("grove.io", "v1alpha1", "podcliques", "PodClique", namespaced=True)
ACCOUNT: Final = f"runs as the ServiceAccount {PRIZE}, which its author may not"
WRITES: Final = 20  # of one set, until nobody writes in between
SECRET: Final = f"reads the Secret {PRIZE}, which its author may not"
REF: Final[JsonObject] = {"name": PRIZE}
COPY: Final[JsonObject] = {
    "accessModes": ["ReadOnlyMany"],
    "resources": {"requests": {"storage": "1Gi"}},
    "dataSource": {"kind": "PersistentVolumeClaim", "name": PRIZE},
}
ENV: Final[Json] = [{"name": "A", "valueFrom": {"secretKeyRef": {**REF, "key": "k"}}}]


def main(**fields: Json) -> JsonObject:
    return {"name": "engine", "image": "none", **fields}


def volume(**fields: Json) -> JsonObject:
    return {"volumes": [{"name": "v", **fields}]}


def a_set(name: str, **pod_spec: Json) -> JsonObject:
    """A set whose second clique is the one that asks for more."""
    body = engine_set(name, pods=1, gpus=1)
    plain: JsonObject = {"containers": [main()]}
    cliques: list[Json] = [
        {
            "name": role,
            "spec": {"roleName": role, "replicas": 1, "podSpec": {**plain, **spec}},
        }
        for role, spec in (("plain", {}), ("asking", pod_spec))
    ]
    return changed(body, "spec", "template", to={"cliques": cliques})


ASKED: Final[dict[str, tuple[JsonObject, str]]] = {
    "run as another account": ({"serviceAccountName": PRIZE}, ACCOUNT),
    "run as another account by its older field": ({"serviceAccount": PRIZE}, ACCOUNT),
    "mount a Secret": (volume(secret={"secretName": PRIZE}), SECRET),
    "mount a Secret among others": (volume(projected={"sources": [{"secret": REF}]}), SECRET),
    "hand a Secret to a storage driver": (
        volume(csi={"driver": "d.example", "nodePublishSecretRef": REF}),
        SECRET,
    ),
    "read a Secret into a variable": ({"containers": [main(env=ENV)]}, SECRET),
    "read a Secret before it starts": (
        {"initContainers": [main(name="init", envFrom=[{"secretRef": REF}])]},
        SECRET,
    ),
    "mount a ConfigMap": (
        volume(configMap=REF),
        f"reads the ConfigMap {PRIZE}, which its author may not",
    ),
    "read a ConfigMap into variables": (
        {"containers": [main(envFrom=[{"configMapRef": REF}])]},
        f"reads the ConfigMap {PRIZE}",
    ),
    "mount a volume that is there": (
        volume(persistentVolumeClaim={"claimName": PRIZE}),
        f"mounts the PersistentVolumeClaim {PRIZE}, which its author may not",
    ),
    "have a copy of a volume made": (
        volume(ephemeral={"volumeClaimTemplate": {"spec": COPY}}),
        "takes the verb create on persistentvolumeclaims",
    ),
    "use a device that is claimed": (
        {"resourceClaims": [{"name": "c", "resourceClaimName": PRIZE}]},
        "takes the verb create on resourceclaims",
    ),
    "hand a Secret to a cloud's disk": (
        volume(cinder={"volumeID": "v", "secretRef": REF}),
        SECRET,
    ),
    "pull images with a Secret": ({"imagePullSecrets": [REF]}, SECRET),
    "mount a directory of the node": (volume(hostPath={"path": "/"}), "a hostPath volume"),
    "be privileged": (
        {"containers": [main(securityContext={"privileged": True})]},
        "a privileged container",
    ),
    "have more capabilities": (
        {"containers": [main(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}})]},
        "an added capability",
    ),
    "change the node's kernel": (
        {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
        "sysctls",
    ),
    "be of another SELinux type": (
        {"containers": [main(securityContext={"seLinuxOptions": {"type": "spc_t"}})]},
        "seLinuxOptions",
    ),
    "make any system call": (
        {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
        "no seccomp profile",
    ),
    "do without AppArmor": (
        {"initContainers": [main(securityContext={"appArmorProfile": {"type": "Unconfined"}})]},
        "no AppArmor profile",
    ),
    "be in the node's network": ({"hostNetwork": True}, "hostNetwork"),
    "see the node's processes": ({"hostPID": True}, "hostPID"),
    "talk to the node's processes": ({"hostIPC": True}, "hostIPC"),
    "take a port of the node": (
        {"containers": [main(ports=[{"containerPort": 80, "hostPort": 80}])]},
        "a hostPort",
    ),
    "name more Secrets than can be asked for": (
        {"imagePullSecrets": [{"name": f"secret-{i}"} for i in range(17)]},
        "more ServiceAccounts or Secrets than can be checked",
    ),
}


@pytest.mark.parametrize(("spec", "says"), ASKED.values(), ids=ASKED)
async def test_a_sets_pods_may_not(estate: Estate, spec: JsonObject, says: str) -> None:
    path = estate.path(PODCLIQUESETS)
    async with estate.acting(AUTHOR) as author:
        with pytest.raises(Forbidden, match=says):
            await author.ask("POST", path, a_set("asking", **spec))
    # The same set is fine from somebody who may make such pods: it was refused for its author.
    async with estate.acting(OWNER) as owner:
        await owner.ask("POST", path, a_set("asking", **spec), dryRun="All")


@pytest.mark.parametrize("level", ["set", "clique", "group", "template"])
async def test_no_claims_are_made_that_a_sets_author_may_not_make(
    estate: Estate, level: str
) -> None:
    template = part_of(a_set("sharing"))
    group: JsonObject = {"name": "model", "cliqueNames": ["plain"]}
    template["podCliqueScalingGroups"] = [group]
    cliques = template["cliques"]
    assert isinstance(cliques, list)
    assert isinstance(cliques[1], dict)
    if level == "template":
        request: JsonObject = {"name": "link", "exactly": {"deviceClassName": "links"}}
        told: JsonObject = {"spec": {"devices": {"requests": [request]}}}
        template["resourceClaimTemplates"] = [{"name": "link", "templateSpec": told}]
    else:
        sharing = {"set": template, "clique": cliques[1], "group": group}[level]
        sharing["resourceSharing"] = [{"name": "link", "scope": "AllReplicas"}]
    body = changed(a_set("sharing"), "spec", "template", to=template)
    async with estate.acting(AUTHOR) as author:
        with pytest.raises(Forbidden, match="takes the verb create on resourceclaims"):
            await author.ask("POST", estate.path(PODCLIQUESETS), body)
    async with estate.acting(OWNER) as owner:
        await owner.ask("POST", estate.path(PODCLIQUESETS), body, dryRun="All")


def part_of(body: JsonObject) -> JsonObject:
    spec = body["spec"]
    assert isinstance(spec, dict)
    template = spec["template"]
    assert isinstance(template, dict)
    return template


async def test_a_set_that_asks_for_nothing_is_its_authors_to_write(estate: Estate) -> None:
    async with estate.acting(AUTHOR) as author:
        await author.ask("POST", estate.path(PODCLIQUESETS), a_set("modest"), dryRun="All")


async def test_a_clique_by_itself_may_do_no_more_than_its_author(estate: Estate) -> None:
    """Nobody of ours makes pods of a clique that a person wrote, but Grove's operator does."""
    spec: JsonObject = {"containers": [main()], "serviceAccountName": PRIZE}
    body: JsonObject = {
        "apiVersion": PODCLIQUES.api_version,
        "kind": PODCLIQUES.kind,
        "metadata": {"name": "alone"},
        "spec": {"roleName": "alone", "replicas": 1, "podSpec": spec},
    }
    path = estate.path(PODCLIQUES)
    async with estate.acting(AUTHOR) as author:
        with pytest.raises(Forbidden, match=ACCOUNT):
            await author.ask("POST", path, body)
        modest = changed(body, "spec", "podSpec", to={"containers": [main()]})
        await author.ask("POST", path, modest, dryRun="All")


UNCONFINED: Final[JsonObject] = {
    "container.apparmor.security.beta.kubernetes.io/engine": "unconfined"
}
NO_PROFILE: Final = r"no AppArmor profile \(by annotation\)"


async def test_no_annotation_frees_a_sets_pods_of_apparmor(person: Client, estate: Estate) -> None:
    plain = changed(a_set("annotated"), "spec", "replicas", to=0)
    path = estate.path(PODCLIQUESETS)
    async with estate.acting(AUTHOR) as author:
        with pytest.raises(Forbidden, match=NO_PROFILE):
            await author.ask("POST", path, cliques_with(plain, "annotations", UNCONFINED))
        there = await author.ask("POST", path, plain)
        named = estate.path(PODCLIQUESETS, "annotated")
        noted = annotated(there, {"team.example/note": "seen"})
        await author.ask("PATCH", named, noted, MERGE_PATCH)
        freed = annotated(there, UNCONFINED)
        with pytest.raises(Forbidden, match=NO_PROFILE):
            await author.ask("PATCH", named, freed, MERGE_PATCH)
    async with estate.acting(OWNER) as owner:
        await owner.ask("PATCH", named, freed, MERGE_PATCH, dryRun="All")
    await person.delete(PODCLIQUESETS, "annotated", estate.namespace)


def annotated(body: JsonObject, words: JsonObject) -> JsonObject:
    """Write a patch of a set that gives its cliques these annotations."""
    return {"spec": cliques_with(body, "annotations", words)["spec"]}


async def test_no_annotation_frees_a_cliques_pods_of_apparmor(estate: Estate) -> None:
    body: JsonObject = {
        "apiVersion": PODCLIQUES.api_version,
        "kind": PODCLIQUES.kind,
        "metadata": {"name": "annotated", "annotations": UNCONFINED},
        "spec": {"roleName": "annotated", "replicas": 1, "podSpec": {"containers": [main()]}},
    }
    async with estate.acting(AUTHOR) as author:
        with pytest.raises(Forbidden, match=NO_PROFILE):
            await author.ask("POST", estate.path(PODCLIQUES), body, dryRun="All")


async def test_as_many_names_as_can_be_asked_for_are_asked_for(
    person: Client, estate: Estate
) -> None:
    """Eight accounts and sixteen Secrets, each named often, within what the API server allows."""
    accounts: list[Json] = [f"account-{i}" for i in range(7)]
    wanted: list[Json] = [f"secret-{i}" for i in range(16)]
    rules: list[Json] = [
        {
            "apiGroups": [""],
            "resources": ["serviceaccounts"],
            "verbs": ["use"],
            "resourceNames": accounts,
        },
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": wanted},
    ]
    often: list[Json] = [
        {"name": f"V{i}", "valueFrom": {"secretKeyRef": {"name": wanted[i % 16], "key": "k"}}}
        for i in range(480)
    ]
    pulled: list[Json] = [{"name": name} for name in wanted]
    body = a_set("many", imagePullSecrets=pulled, containers=[main(env=often)])
    cliques: list[Json] = [
        {
            "name": f"c{i}",
            "spec": {
                "roleName": f"c{i}",
                "replicas": 1,
                "podSpec": {"containers": [main()], "serviceAccountName": account},
            },
        }
        for i, account in enumerate(accounts)
    ]
    template = changed(body, "spec", "template", to={"cliques": [*cliques_of(body), *cliques]})
    subject: JsonObject = {
        "kind": "ServiceAccount",
        "name": AUTHOR,
        "namespace": estate.namespace,
    }
    async with estate.acting(AUTHOR) as author:
        path = estate.path(PODCLIQUESETS)
        with pytest.raises(Forbidden, match="account-0, which its author may not"):
            await author.ask("POST", path, template, dryRun="All")
        await person.create(ROLES, {"metadata": {"name": "many"}, "rules": rules}, estate.namespace)
        role = {"apiGroup": RBAC, "kind": "Role", "name": "many"}
        binding = {"metadata": {"name": "many"}, "roleRef": role, "subjects": [subject]}
        await person.create(ROLEBINDINGS, binding, estate.namespace)
        await admitted_at_last(person, estate, template)
        await person.delete(ROLEBINDINGS, "many", estate.namespace)


async def admitted_at_last(person: Client, estate: Estate, body: JsonObject) -> None:
    async with estate.acting(AUTHOR) as author:

        async def attempt() -> bool | None:
            try:
                await author.ask("POST", estate.path(PODCLIQUESETS), body, dryRun="All")
            except Forbidden:
                return None
            return True

        await Cluster(person, estate.namespace).until(attempt, "the right to what it names")


def cliques_of(body: JsonObject) -> list[Json]:
    spec = body["spec"]
    assert isinstance(spec, dict)
    template = spec["template"]
    assert isinstance(template, dict)
    found = template["cliques"]
    assert isinstance(found, list)
    return found


async def test_a_set_that_uses_a_secret_runs_no_image_of_somebody_who_may_not(
    person: Client, estate: Estate
) -> None:
    """What reads the Secret is the image: to change it takes the same right."""
    body = a_set("trusted", serviceAccountName=PRIZE)
    body = changed(body, "spec", "replicas", to=0)
    path = estate.path(PODCLIQUESETS, "trusted")
    await person.create(PODCLIQUESETS, body, estate.namespace)
    async with estate.acting(AUTHOR) as author:
        with pytest.raises(Forbidden, match=ACCOUNT):
            await put(
                author, path, lambda s: changed(s, "spec", to=renamed(s["spec"], "none", "evil"))
            )
        # What its pods do stays as it is here, whoever wrote it.
        note: JsonObject = {"team.example/note": "seen"}
        await put(author, path, lambda s: changed(s, "metadata", "annotations", to=note))
    await person.delete(PODCLIQUESETS, "trusted", estate.namespace)


async def put(author: Tenant, path: str, change: Callable[[JsonObject], JsonObject]) -> None:
    """Read, change and write back; anew where something was said of it in between."""
    for left in reversed(range(WRITES)):
        body = change(await author.ask("GET", path))
        try:
            await author.ask("PUT", path, body)
        except Conflict:
            if not left:
                raise
        else:
            return


def renamed(value: Json, old: str, new: str) -> Json:
    if isinstance(value, dict):
        return {key: renamed(inner, old, new) for key, inner in value.items()}
    if isinstance(value, list):
        return [renamed(inner, old, new) for inner in value]
    return new if value == old else value


async def test_a_sets_labels_move_its_pods_into_no_other_gang(
    person: Client, estate: Estate
) -> None:
    """Membership may not be claimed; the labels of any app may, and are written over."""
    body = engine_set("posing", pods=1, gpus=1, selector="example.com/no-such-node")
    forged: JsonObject = {names.PART_OF_LABEL: RUNNING_SET, names.MANAGED_BY_LABEL: "nobody"}
    claim: JsonObject = {names.PODGANG_LABEL: f"{RUNNING_SET}-0", names.POD_INDEX_LABEL: "7"}
    path = estate.path(PODCLIQUESETS)
    async with estate.acting(AUTHOR) as author:
        with pytest.raises(Invalid, match="says which gang a pod belongs to"):
            await author.ask("POST", path, cliques_with(body, "labels", {**forged, **claim}))
        await author.ask("POST", path, cliques_with(body, "labels", forged))
    (pod,) = await Cluster(person, estate.namespace).pods("posing", 1)
    told = {key: pod.metadata.labels[key] for key in (*forged, *claim)}
    assert told == {
        names.PODGANG_LABEL: "posing-0",
        names.PART_OF_LABEL: "posing",
        names.MANAGED_BY_LABEL: names.MANAGED_BY,
        names.POD_INDEX_LABEL: "0",
    }
    await person.delete(PODCLIQUESETS, "posing", estate.namespace)


def cliques_with(body: JsonObject, field: str, words: JsonObject) -> JsonObject:
    """Give a copy of a set whose cliques have these labels or annotations."""
    cliques: list[Json] = [
        {**clique, field: words} for clique in cliques_of(body) if isinstance(clique, dict)
    ]
    return changed(body, "spec", "template", "cliques", to=cliques)
