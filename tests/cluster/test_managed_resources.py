"""What is made for a set is changed by who makes it, and goes with the set, on a real cluster."""

from collections.abc import Iterator
from typing import Final

import pytest

from api import names
from api.jsons import JsonObject
from kube.client import Client
from kube.resources import NAMESPACES, PODCLIQUES, PODCLIQUESETS, PODGANGS, PODS, Resource
from tests.support.asking import JSON_PATCH, Asker, Seen, asking
from tests.support.gangpods import part
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl, engine_set, namespace

pytestmark = pytest.mark.cluster

TENANT: Final = "tenant@example.com"
MERGE: Final = "application/merge-patch+json"
BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", namespaced=True
)
SERVICES: Final = Resource("", "v1", "services", "Service", namespaced=True)
MANAGED: Final[JsonObject] = {
    names.MANAGED_BY_LABEL: names.MANAGED_BY,
    names.PART_OF_LABEL: "kept",
}
FREELY: Final[JsonObject] = {"metadata": {"annotations": {names.UNPROTECTED_ANNOTATION: "true"}}}
EDIT: Final[JsonObject] = {"metadata": {"annotations": {"example.com/edited": "yes"}}}


@pytest.fixture(scope="module")
def asker(installed: Installed) -> Iterator[Asker]:
    with asking(installed.lab.kubeconfig) as made:
        yield made


@pytest.fixture
async def kept(cluster: Cluster, kubectl: Kubectl, asker: Asker) -> str:
    """A namespace with a running set, a Service made for it, and a tenant who is its admin."""
    space = cluster.namespace
    binding: JsonObject = {
        "metadata": {"name": "tenant"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin",
        },
        "subjects": [{"kind": "User", "name": TENANT}],
    }  # fmt: skip
    done(asker.ask("POST", BINDINGS.path(space), binding))
    kubectl.apply(engine_set("kept", pods=1, gpus=1))
    await cluster.running("kept")
    await cluster.service("kept-0")
    done(asker.ask("GET", SERVICES.path(space, "kept-0")))
    return space


def done(seen: Seen) -> Seen:
    assert seen.done, seen.message
    return seen


def refused(seen: Seen, what: str) -> None:
    assert seen.code == 403, seen
    assert 'webhook "managed.penstock.dev" denied the request' in seen.message
    assert f"{what} is made and kept by Penstock for PodCliqueSet kept" in seen.message
    assert names.UNPROTECTED_ANNOTATION in seen.message


def edit(asker: Asker, resource: Resource, space: str, name: str) -> Seen:
    path = resource.path(space, name)
    return asker.ask("PATCH", path, EDIT, media=MERGE, user=TENANT)


async def test_a_tenant_changes_what_is_made_for_a_set_by_leave_of_the_set_only(
    cluster: Cluster, kept: str, asker: Asker
) -> None:
    (pod,) = await cluster.pods("kept", 1)
    things = (
        (PODGANGS, "kept-0", "PodGang kept-0"),
        (PODCLIQUES, "kept-0-engine", "PodClique kept-0-engine"),
        (SERVICES, "kept-0", "Service kept-0"),
        (PODS, pod.metadata.name, f"Pod {pod.metadata.name}"),
    )
    for resource, name, what in things:
        refused(edit(asker, resource, kept, name), what)
    for resource, name, what in things[:2]:
        refused(asker.ask("DELETE", resource.path(kept, name), user=TENANT), what)
    fake: JsonObject = {
        "apiVersion": PODGANGS.api_version,
        "kind": PODGANGS.kind,
        "metadata": {"name": "kept-9", "labels": MANAGED},
        "spec": {"podgroups": [{"name": "x", "podReferences": [], "minReplicas": 1}]},
    }
    refused(asker.ask("POST", PODGANGS.path(kept), fake, user=TENANT), "PodGang kept-9")
    done(asker.ask("PATCH", PODCLIQUESETS.path(kept, "kept"), FREELY, media=MERGE, user=TENANT))

    async def heard() -> bool | None:
        return edit(asker, SERVICES, kept, "kept-0").done or None

    # The webhook hears of it a moment later.
    await cluster.until(heard, "the set's leave")
    for resource, name, _ in things:
        done(edit(asker, resource, kept, name))
    done(asker.ask("DELETE", SERVICES.path(kept, "kept-0"), user=TENANT))


@pytest.mark.parametrize("label", [names.MANAGED_BY_LABEL, names.PART_OF_LABEL])
def test_taking_a_label_off_first_is_no_way_around(kept: str, asker: Asker, label: str) -> None:
    pointer = label.replace("/", "~1")
    operations = [{"op": "remove", "path": f"/metadata/labels/{pointer}"}]
    path = SERVICES.path(kept, "kept-0")
    refused(asker.ask("PATCH", path, operations, media=JSON_PATCH, user=TENANT), "Service kept-0")
    other = {"metadata": {"labels": {label: "another"}}}
    refused(asker.ask("PATCH", path, other, media=MERGE, user=TENANT), "Service kept-0")


async def test_a_pod_may_be_deleted_by_whoever_has_the_right(
    cluster: Cluster, kept: str, asker: Asker
) -> None:
    (pod,) = await cluster.pods("kept", 1)
    done(asker.ask("DELETE", PODS.path(kept, pod.metadata.name), user=TENANT))
    await cluster.running("kept", without=pod.metadata.uid)


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
async def test_a_set_takes_what_was_made_for_it_along_or_leaves_it(
    cluster: Cluster, kept: str, kubectl: Kubectl, asker: Asker, cascade: str
) -> None:
    kubectl.run("delete", "pcs", "kept", f"--cascade={cascade}", "--wait=false", check=True)

    async def gone() -> bool | None:
        return asker.ask("GET", PODCLIQUESETS.path(kept, "kept")).code == 404 or None

    await cluster.until(gone, f"the set gone with cascade {cascade}")
    if cascade != "orphan":
        await cluster.gone("podgang", "kept-0")
        await cluster.pods("kept", 0)
        return
    seen = done(asker.ask("GET", PODGANGS.path(kept, "kept-0")))
    assert not part(seen.object, "metadata", "ownerReferences")

    async def forgotten() -> Seen | None:
        seen = edit(asker, PODGANGS, kept, "kept-0")
        return seen if seen.done else None

    # Whose set is gone is nobody's; the webhook hears of it a moment later.
    freed = await cluster.until(forgotten, "the webhook to hear that the set is gone")
    assert any("no PodCliqueSet kept" in warning for warning in freed.warnings)
    done(asker.ask("DELETE", PODGANGS.path(kept, "kept-0"), user=TENANT))


async def test_a_namespace_goes_with_a_set_in_it(
    installed: Installed, person: Client, asker: Asker
) -> None:
    async with namespace(person, "managed-doomed") as name:
        cluster = Cluster(person, name)
        done(asker.ask("POST", PODCLIQUESETS.path(name), engine_set("kept", pods=1, gpus=1)))
        await cluster.running("kept")

    async def gone() -> bool | None:
        return asker.ask("GET", NAMESPACES.path(None, "managed-doomed")).code == 404 or None

    await cluster.until(gone, "the namespace gone")
