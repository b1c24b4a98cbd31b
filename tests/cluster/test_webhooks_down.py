"""What goes on while not one webhook answers, and how soon all is well when they are back."""

import secrets
from collections.abc import Iterator

import pytest

from api import names
from api.jsons import Json, JsonObject
from kube.resources import NAMESPACES, PODS, Resource
from tests.support.asking import JSON_PATCH, Asker, asking
from tests.support.installed import Installed
from tests.support.rolling import ask_for_a_set, recovered, stopped

pytestmark = pytest.mark.cluster

BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True)  # noqa: FBT003
EDITOR = "editor@example.com"
UNGATE: list[dict[str, Json]] = [{"op": "remove", "path": "/spec/schedulingGates"}]


def pod(name: str, *gates: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "main", "image": "none"}],
            "schedulingGates": [{"name": gate} for gate in gates],
        },
    }


@pytest.fixture(scope="module")
def asker(installed: Installed) -> Iterator[Asker]:
    with asking(installed.lab.kubeconfig) as made:
        yield made


@pytest.fixture(scope="module")
def place(asker: Asker) -> Iterator[str]:
    """A namespace with somebody who may edit everything in it."""
    name = f"down-{secrets.token_hex(4)}"
    made = asker.ask("POST", NAMESPACES.path(), {"metadata": {"name": name}})
    assert made.done, made
    binding = {
        "metadata": {"name": "editor"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit",
        },
        "subjects": [{"kind": "User", "name": EDITOR}],
    }  # fmt: skip
    assert asker.ask("POST", BINDINGS.path(name), binding).done
    yield name
    asker.ask("DELETE", NAMESPACES.path(None, name))


@pytest.fixture(scope="class")
def down(installed: Installed, asker: Asker, place: str) -> Iterator[None]:
    """No webhook answers."""
    with stopped(installed.installation):
        yield
    recovered(asker, place)


@pytest.mark.usefixtures("down")
class TestWhileNoWebhookAnswers:
    def test_a_set_is_refused_with_the_webhook_and_the_reason(
        self, asker: Asker, place: str
    ) -> None:
        seen = ask_for_a_set(asker, place)
        assert (seen.code, seen.status.reason) == (500, "InternalError")
        assert "failed calling webhook" in seen.message
        assert "podcliquesets.penstock.dev" in seen.message

    def test_pods_of_no_gang_are_made_as_they_are_written(self, asker: Asker, place: str) -> None:
        for anybody, where in ((EDITOR, place), ("", "default")):
            name = f"plain-{secrets.token_hex(4)}"
            made = asker.ask("POST", PODS.path(where), pod(name), user=anybody)
            assert made.done, made
            assert names.GROUP not in made.body.decode()
            assert asker.ask("DELETE", PODS.path(where, name)).done

    def test_the_gate_stays_on_a_gated_pod(self, asker: Asker, place: str) -> None:
        made = asker.ask("POST", PODS.path(place), pod("gated", names.GATE))
        assert made.done, made
        path = PODS.path(place, "gated")
        seen = asker.ask("PATCH", path, UNGATE, media=JSON_PATCH, user=EDITOR)
        assert seen.code == 403, seen
        assert names.GATE in seen.message
        left = asker.ask("GET", path).object["spec"]
        assert isinstance(left, dict)
        assert left["schedulingGates"] == [{"name": names.GATE}]

    def test_the_same_editor_may_remove_the_gates_of_others(self, asker: Asker, place: str) -> None:
        """Else the test above would say nothing of ours."""
        made = asker.ask("POST", PODS.path(place), pod("other", "example.com/other"))
        assert made.done, made
        path = PODS.path(place, "other")
        assert asker.ask("PATCH", path, UNGATE, media=JSON_PATCH, user=EDITOR).done


def test_when_they_are_back_the_next_set_is_admitted(
    installed: Installed, asker: Asker, place: str
) -> None:
    with stopped(installed.installation):
        assert not ask_for_a_set(asker, place).done
    recovered(asker, place)
    assert ask_for_a_set(asker, place).done
