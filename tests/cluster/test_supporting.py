"""What is made for a set beside its pods: right, put right, and gone when it is wanted no more."""

import json
from collections.abc import Iterator

import pytest

from api import names
from api.jsons import Json, JsonObject
from api.models import Condition
from api.objects import condition_of
from api.podcliqueset import PodCliqueSetStatus
from api.podgang import GangConstraint
from api.streams import Custom
from controller.podgang import Gang, read_gang
from kube.resources import PODCLIQUESETS, PODGANGS
from tests.support.living import Cluster, Kubectl
from tests.support.scaling import reached, role, system

pytestmark = pytest.mark.cluster

Asked = tuple[str | None, list[str | None]]
UNPROTECTED: JsonObject = {names.UNPROTECTED_ANNOTATION: "true"}


async def said(cluster: Cluster, kubectl: Kubectl, what: str, path: str, wanted: str) -> None:
    """Wait until a field of an object is as wanted."""

    async def attempt() -> bool | None:
        found = kubectl.run("get", *what.split(), "-o", f"jsonpath={{{path}}}")
        return True if found.returncode == 0 and found.stdout == wanted else None

    await cluster.until(attempt, f"{what}: {path} is {wanted}")


async def test_what_was_changed_by_hand_is_put_right_and_goes_with_its_config(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    scaling: JsonObject = {"maxReplicas": 4}
    body = system("kept", [role("router", 1, autoScalingConfig=scaling)])
    body["metadata"] = {"name": "kept", "annotations": UNPROTECTED, "labels": {"team": "a"}}
    kubectl.apply(body)
    await reached(cluster, "kept", {"kept-0": {"kept-0-router": 1}})
    hpa = "hpa kept-0-router"
    await said(cluster, kubectl, hpa, ".spec.scaleTargetRef.kind", "PodClique")

    def patch(what: str, patched: JsonObject) -> None:
        kubectl.run("patch", *what.split(), "--type=merge", "-p", json.dumps(patched), check=True)

    await cluster.service("kept-0")
    patch("service kept-0", {"spec": {"selector": {"only": "mine"}}})
    patch(hpa, {"spec": {"maxReplicas": 9, "behavior": {"scaleDown": {"selectPolicy": "Max"}}}})
    stolen: JsonObject = {"priorityClassName": "stolen", "podgroups": []}
    patch("podgang kept-0", {"metadata": {"labels": {"team": "b"}}, "spec": stolen})
    await said(cluster, kubectl, "service kept-0", ".spec.selector.only", "")
    await said(cluster, kubectl, hpa, ".spec.maxReplicas", "4")
    await said(cluster, kubectl, hpa, ".spec.behavior.scaleDown.selectPolicy", "Max")
    await said(cluster, kubectl, "podgang kept-0", ".spec.priorityClassName", "")
    await said(cluster, kubectl, "podgang kept-0", ".spec.podgroups[*].name", "kept-0-router")
    await said(cluster, kubectl, "podgang kept-0", ".metadata.labels.team", "a")
    kubectl.run("delete", "service", "kept-0", check=True)
    await said(cluster, kubectl, "service kept-0", ".spec.clusterIP", "None")

    body = system("kept", [role("router", 1)])
    body["metadata"] = {"name": "kept", "annotations": UNPROTECTED, "labels": {"team": "a"}}
    kubectl.apply(body)

    async def gone() -> bool | None:
        return True if kubectl.run("get", *hpa.split()).returncode else None

    await cluster.until(gone, f"{hpa} gone")


@pytest.mark.long
async def test_nothing_is_written_of_a_set_that_is_as_it_should_be(
    cluster: Cluster, kubectl: Kubectl, binding: str
) -> None:
    amounts: list[Json] = [
        {
            "type": "External",
            "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": given}},
        }
        for given in ("1000m", "1.5", "2k", "3")
    ]
    scaling: JsonObject = {"minReplicas": 1, "maxReplicas": 4, "metrics": amounts}
    near: JsonObject = {"topologyName": binding, "pack": {"required": "zone"}}
    copies: JsonObject = {
        "name": "copies", "cliqueNames": ["engine"], "replicas": 2, "topologyConstraint": near,
        "scaleConfig": {"maxReplicas": 3},
    }  # fmt: skip
    roles: list[Json] = [role("router", 1, autoScalingConfig=scaling), role("engine", 1)]
    kubectl.apply(system("still", roles, [copies]))
    grown = {"still-0-copies-0": {"still-0-copies-1-engine": 1}}
    base = {"still-0-router": 1, "still-0-copies-0-engine": 1}
    await reached(cluster, "still", {"still-0": base, **grown})
    await said(cluster, kubectl, "hpa still-0-router", ".spec.minReplicas", "1")
    await cluster.service("still-0")
    kinds = ("podcliquesets", "podcliques", "podcliquescalinggroups", "podgangs", "pods")
    await cluster.quiet("services", "horizontalpodautoscalers", *kinds)


@pytest.fixture
def binding(kubectl: Kubectl, space: str) -> Iterator[str]:
    """The name of a topology binding, which is gone when the test is."""
    kubectl.apply(topology(space))
    yield space
    kubectl.run("delete", "clustertopologybinding", space, "--ignore-not-found")


def topology(name: str) -> JsonObject:
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": name},
        "spec": {
            "levels": [
                {"domain": "zone", "key": names.ZONE_KEY},
                {"domain": "rack", "key": names.RACK_KEY},
            ]
        },
    }


async def gangs_asking(cluster: Cluster, wanted: dict[str, Asked]) -> dict[str, Gang]:
    """Wait until gangs require one value of these node labels: as a whole, and copy by copy."""

    async def attempt() -> dict[str, Gang] | None:
        found = await cluster.client.list_pages(PODGANGS, Custom, cluster.namespace)
        gangs = {gang.metadata.name: gang for raw in found.items if (gang := read_gang(raw))}
        asked = {
            name: (
                required(gang.spec.topology_constraint),
                [
                    required(each.topology_constraint)
                    for each in gang.spec.topology_constraint_group_configs
                ],
            )
            for name, gang in gangs.items()
        }
        return gangs if asked == wanted else None

    return await cluster.until(attempt, f"gangs that ask for {wanted}")


def required(constraint: GangConstraint | None) -> str | None:
    pack = constraint.pack_constraint if constraint else None
    return pack.required if pack else None


async def unavailable(cluster: Cluster, name: str, reason: str) -> Condition:
    """Wait until the set says so of its levels."""

    async def attempt() -> Condition | None:
        found = await cluster.client.get(PODCLIQUESETS, Custom, name, cluster.namespace)
        status = PodCliqueSetStatus.model_validate_json(bytes(found.status))
        condition = condition_of(status.conditions, names.TOPOLOGY_UNAVAILABLE)
        return condition if condition and condition.reason == reason else None

    return await cluster.until(attempt, f"{name} with {reason}")


async def test_closeness_reaches_gangs_in_node_labels_as_long_as_the_cluster_has_the_levels(
    cluster: Cluster, kubectl: Kubectl, binding: str
) -> None:
    def near(level: str) -> JsonObject:
        return {"topologyName": binding, "pack": {"required": level}}

    copies: JsonObject = {"name": "copies", "cliqueNames": ["engine"], "replicas": 2}
    copies["topologyConstraint"] = near("rack")
    body = system("near", [role("engine", 2)], [copies])
    spec = body["spec"]
    assert isinstance(spec, dict)
    assert isinstance(spec["template"], dict)
    spec["template"]["topologyConstraint"] = near("zone")
    kubectl.apply(body)
    asking: dict[str, Asked] = {
        name: (names.ZONE_KEY, [names.RACK_KEY]) for name in ("near-0", "near-0-copies-0")
    }
    gangs = await gangs_asking(cluster, asking)
    for gang in gangs.values():
        assert gang.metadata.annotations[names.TOPOLOGY_NAME_ANNOTATION] == binding
    await unavailable(cluster, "near", names.TOPOLOGY_LEVELS_PRESENT)

    kubectl.run("delete", "clustertopologybinding", binding, check=True)
    lost = await unavailable(cluster, "near", names.TOPOLOGY_NOT_FOUND)
    assert lost.status == "Unknown"
    gangs = await gangs_asking(cluster, {name: (None, []) for name in asking})
    for gang in gangs.values():
        assert names.TOPOLOGY_NAME_ANNOTATION not in gang.metadata.annotations
    kubectl.apply(topology(binding))
    await gangs_asking(cluster, asking)
    await unavailable(cluster, "near", names.TOPOLOGY_LEVELS_PRESENT)
