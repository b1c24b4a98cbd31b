import pytest

from kube import resources


def test_core_and_group_paths_differ() -> None:
    assert resources.PODS.path("a", "b", "status") == "/api/v1/namespaces/a/pods/b/status"
    assert (
        resources.PODGANGS.path("a", "b")
        == "/apis/scheduler.grove.io/v1alpha1/namespaces/a/podgangs/b"
    )
    assert resources.NODES.path(name="n1") == "/api/v1/nodes/n1"


def test_no_namespace_means_all_of_them() -> None:
    assert resources.PODS.path() == "/api/v1/pods"


def test_names_are_quoted() -> None:
    assert resources.NODES.path(name="a/../b") == "/api/v1/nodes/a%2F..%2Fb"


@pytest.mark.parametrize(
    ("resource", "namespace", "name", "subresource"),
    [
        pytest.param(resources.NODES, "a", None, None, id="namespace on a cluster-wide kind"),
        pytest.param(resources.PODS, None, "b", None, id="name without its namespace"),
        pytest.param(resources.PODS, "a", None, "status", id="subresource of nothing"),
    ],
)
def test_paths_that_cannot_be_meant_are_refused(
    resource: resources.Resource, namespace: str | None, name: str | None, subresource: str | None
) -> None:
    with pytest.raises(ValueError, match=r"namespace|needs a name"):
        resource.path(namespace, name, subresource)


def test_names_as_manifests_and_people_write_them() -> None:
    assert resources.PODS.api_version == "v1"
    assert resources.LEASES.api_version == "coordination.k8s.io/v1"
    assert resources.RESERVATIONS.full_name == "reservations.penstock.dev"
    assert resources.PODS.full_name == "pods"
