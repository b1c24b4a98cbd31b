"""What goes on while not one webhook answers, and how soon all is well when they are back."""

import secrets
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from api import names
from api.jsons import Json, JsonObject
from kube.resources import NAMESPACES, PODCLIQUES, PODCLIQUESETS, PODS, Resource
from tests.support.asking import JSON_PATCH, MERGE_PATCH, Asker, asking
from tests.support.installed import Installed
from tests.support.living import PATIENCE, engine_set
from tests.support.rolling import ask_for_a_set, recovered, stopped

pytestmark = pytest.mark.cluster

BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True)  # noqa: FBT003
EDITOR = "editor@example.com"
UNGATE: list[dict[str, Json]] = [{"op": "remove", "path": "/spec/schedulingGates"}]
FINALIZER = "example.com/kept"
# What the rules look at: each of these is judged anew.
JUDGED: dict[str, JsonObject] = {
    "label": {"metadata": {"labels": {"team": "red"}}},
    "annotation": {"metadata": {"annotations": {"note": "red"}}},
    "spec": {"spec": {"replicas": 2}},
}


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


@pytest.fixture(scope="module")
def sets(asker: Asker, place: str) -> tuple[str, str]:
    """Two sets that were admitted, and have what they want."""
    kept, left = "kept", "left"
    for name in (kept, left):
        made = asker.ask("POST", PODCLIQUESETS.path(place), engine_set(name, pods=1, gpus=0))
        assert made.done, made
    for name in (kept, left):
        until(partial(has_a_clique, asker, place, name), f"{name} has its clique")
    return kept, left


def has_a_clique(asker: Asker, place: str, name: str) -> bool:
    return asker.ask("GET", PODCLIQUES.path(place, f"{name}-0-engine")).done


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.perf_counter() + PATIENCE
    while not holds():
        assert time.perf_counter() < end, f"not within {PATIENCE:.0f} s: {what}"
        time.sleep(0.1)


@pytest.fixture(scope="class")
def down(installed: Installed, asker: Asker, sets: tuple[str, str], place: str) -> Iterator[None]:
    """No webhook answers."""
    assert sets
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

    @pytest.mark.parametrize("changed", JUDGED)
    def test_a_change_of_what_is_judged_waits_for_them(
        self, asker: Asker, place: str, changed: str
    ) -> None:
        path = PODCLIQUESETS.path(place, "kept")
        seen = asker.ask("PATCH", path, JUDGED[changed], media=MERGE_PATCH)
        assert seen.code == 500, seen
        assert "podcliquesets.penstock.dev" in seen.message

    def test_neither_a_finalizer_nor_a_status_waits_for_them(
        self, asker: Asker, place: str
    ) -> None:
        path = PODCLIQUESETS.path(place, "kept")
        before = asker.ask("GET", path).object["metadata"]
        assert isinstance(before, dict)
        there = before.get("finalizers", [])
        assert isinstance(there, list)
        for finalizers in ([*there, FINALIZER], there):
            body = {"metadata": {"finalizers": finalizers}}
            assert asker.ask("PATCH", path, body, media=MERGE_PATCH).done
        status = {"status": {"observedGeneration": 1}}
        assert asker.ask("PATCH", f"{path}/status", status, media=MERGE_PATCH).done

    def test_a_deleted_set_goes_with_all_it_has(self, asker: Asker, place: str) -> None:
        path = PODCLIQUESETS.path(place, "left")
        assert asker.ask("DELETE", path).done
        until(lambda: asker.ask("GET", path).code == 404, "the set is gone")
        assert not has_a_clique(asker, place, "left")

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
    took = recovered(asker, place)
    print(f"the next set was admitted after {took:.1f} s; the budget is 10")  # noqa: T201 - for -s
    assert ask_for_a_set(asker, place).done
