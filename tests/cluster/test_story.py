"""What a user can tell from `kubectl get` and `kubectl describe` alone."""

import json
from collections.abc import Callable

import pytest

from api.jsons import JsonObject
from tests.support.living import Cluster, Kubectl, engine_set

pytestmark = pytest.mark.cluster

NOTE = "lab.penstock.dev"


def in_order(name: str, *cliques: JsonObject) -> JsonObject:
    template: JsonObject = {
        "cliqueStartupType": "CliqueStartupTypeInOrder",
        "cliques": list(cliques),
    }
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "template": template},
    }


def clique(name: str, pods: int, **notes: str) -> JsonObject:
    spec: JsonObject = {
        "roleName": name,
        "replicas": pods,
        "podSpec": {
            "containers": [{"name": "main", "image": "registry.example/engine:1.0"}],
            "terminationGracePeriodSeconds": 1,
        },
    }
    annotations: JsonObject = {f"{NOTE}/{key.replace('_', '-')}": v for key, v in notes.items()}
    return {"name": name, "annotations": annotations, "spec": spec}


class Screen:
    """What a user reads, until it says what is expected."""

    def __init__(self, cluster: Cluster, kubectl: Kubectl) -> None:
        self._cluster = cluster
        self._kubectl = kubectl

    async def row(self, kind: str, name: str, *words: str) -> str:
        """Wait until a row of `kubectl get` has all these words, in this order."""

        def shown() -> str:
            table = self._kubectl.run("get", kind, name, "-o", "wide", "--no-headers").stdout
            return " ".join(table.split())

        return await self._until(shown, words, f"{kind} {name}")

    async def described(self, kind: str, name: str, *words: str) -> str:
        """Wait until `kubectl describe` has all these words, in this order."""

        def shown() -> str:
            return " ".join(self._kubectl.run("describe", kind, name).stdout.split())

        return await self._until(shown, words, f"{kind} {name} described")

    async def _until(self, read: Callable[[], str], words: tuple[str, ...], what: str) -> str:
        last = ""

        async def attempt() -> str | None:
            nonlocal last
            last = read()
            place = 0
            for word in words:
                place = last.find(word, place) + len(word)
                if place < len(word):
                    return None
            return last

        try:
            return await self._cluster.until(attempt, f"{what} says {' … '.join(words)}")
        except AssertionError as error:
            raise AssertionError(f"{error}, but: {last}") from None


@pytest.fixture
def screen(cluster: Cluster, kubectl: Kubectl) -> Screen:
    return Screen(cluster, kubectl)


async def test_get_and_describe_tell_what_each_set_waits_for(
    screen: Screen, cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(engine_set("running", pods=2, gpus=1))
    kubectl.apply(engine_set("waiting", pods=41, gpus=8))
    kubectl.apply(in_order("starting", clique("a", 2, start_seconds="600"), clique("b", 1)))
    kubectl.apply(in_order("broken", clique("c", 2, behaviour="never-ready")))

    # Replicas, Available, Updated, then the state and the sentence.
    await screen.row("pcs", "running", "running 1 1 1", "Succeeded 1 replicas are available")
    await screen.row("pclq", "running-0-engine", "2 2 2 2 2 0 False Succeeded 2 pods are ready")
    await screen.row("pg", "running-0", "Running AllPodsBound")
    await screen.described(
        "pclq",
        "running-0-engine",
        "SufficientReadyPods",
        "PodCreateSuccessful",
        "made 2 Pods: ",
    )

    short = "NeverFits: even with every node empty, "
    await screen.row("pcs", "waiting", "1 0 0", f"Processing gang waiting-0 waits: {short}")
    await screen.row(
        "pclq", "waiting-0-engine", "41 41 0 0 41 41 True",
        f"Processing 41 pods wait with their gang waiting-0: {short}",
    )  # fmt: skip
    await screen.row("pg", "waiting-0", "Pending NeverFits", "nvidia.com/gpu: 328 needed")
    await screen.described("pcs", "waiting", "Pod Gang Statuses", "NeverFits", "Pending")

    await screen.row("pcs", "starting", "1 0 0", "starting-0-b: 1 pods wait for starting-0-a")
    await screen.row("pclq", "starting-0-a", "2 2 0 2 2 0 False", "0 of 2 pods are ready")
    await screen.row(
        "pclq", "starting-0-b", "1 1 0 0 1 1", "1 pods wait for starting-0-a to have 2 pods up"
    )

    await screen.row(
        "pcs",
        "broken",
        "1 0 0",
        "broken-0-c: 0 of 2 pods are ready, 2 crashed",
    )
    await screen.row("pclq", "broken-0-c", "2 2 0 2 2 0 True")
    await screen.described(
        "pclq", "broken-0-c", "2 crashed or started without getting ready", "InsufficientReadyPods"
    )
    # One of an order that will not come about says so itself.
    kubectl.run("scale", "pclq", "starting-0-a", "--replicas=0", check=True)
    await screen.row("pcs", "starting", "1 0 0", "Error its startup order never completes")
    await screen.described(
        "pcs", "starting", "starting-0-b waits for starting-0-a", "OrderNeverCompletes",
        "StartupImpossible",
    )  # fmt: skip
    # Where whoever scales looks: at how many pods, and at which.
    selected = "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=running"
    for kind, name, count, selector in (
        ("podcliquesets", "running", 1, selected),
        ("podcliques", "running-0-engine", 2, f"{selected},grove.io/podclique=running-0-engine"),
    ):
        scale = await cluster.client.raw_get(
            f"/apis/grove.io/v1alpha1/namespaces/{cluster.namespace}/{kind}/{name}/scale"
        )
        said = {"replicas": count, "selector": selector}
        assert json.loads(scale)["status"] == said
    # What has been said is not said again, whatever it waits for.
    await cluster.quiet("podcliquesets", "podcliques", "podgangs")


async def test_a_refused_pod_is_told_with_the_api_servers_words(
    screen: Screen, kubectl: Kubectl
) -> None:
    quota: JsonObject = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few"},
        "spec": {"hard": {"pods": "1"}},
    }
    kubectl.apply(quota)
    kubectl.apply(engine_set("refused", pods=2, gpus=1))
    await screen.row("pcs", "refused", "1 0 0", "Error ERR_CREATE_POD", "exceeded quota: few")
    await screen.described(
        "pclq", "refused-0-engine",
        "Last Errors", "ERR_CREATE_POD", "Warning", "PodCreateFailed", "exceeded quota: few",
    )  # fmt: skip
    await screen.row("pg", "refused-0", "Pending")


@pytest.mark.long
async def test_a_lost_minimum_shows_and_its_recovery_too(
    screen: Screen, cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(in_order("ill", clique("c", 1)))
    mine = "grove.io/disable-managed-resource-protection=true"
    kubectl.run("annotate", "pcs", "ill", mine, check=True)
    await cluster.running("ill")
    await screen.row("pcs", "ill", "1 1 1", "Succeeded")
    (pod,) = await cluster.pods("ill", 1)
    name = pod.metadata.name
    kubectl.run("annotate", "pod", name, f"{NOTE}/behaviour=never-ready", check=True)
    await screen.row("pclq", "ill-0-c", "1 1 0 1 1 0 True")
    await screen.described("pg", "ill-0", "below the minimum: ill-0-c", "MinimumLost")
    kubectl.run("annotate", "pod", name, f"{NOTE}/behaviour-", check=True)
    await screen.row("pcs", "ill", "1 1 1", "Succeeded")
    await screen.described("pg", "ill-0", "MinimumBack")
