"""Sets that are updated on a real control plane, and what is read of them while they are."""

from collections.abc import Mapping
from dataclasses import dataclass

from api import names
from api.jsons import Json, JsonObject
from api.models import Condition
from api.objects import condition_of
from api.podcliqueset import SetUpdate
from api.streams import Pod
from controller.workloads.updates.hashing import template_hashes
from penstock.looking import look
from penstock.tree import SetSeen
from tests.support.living import Cluster, Kubectl

BEHAVIOUR = "lab.penstock.dev/behaviour"


def role(name: str, pods: int, minimum: int | None = None, **more: Json) -> JsonObject:
    spec: JsonObject = {"roleName": name, "replicas": pods, **more}
    if minimum is not None:
        spec["minAvailable"] = minimum
    return {"name": name, "spec": spec}


def engine(copies: int, minimum: int = 1, **more: Json) -> JsonObject:
    """A group of a leader and workers."""
    return {
        "name": "engine", "cliqueNames": ["leader", "worker"],
        "replicas": copies, "minAvailable": minimum, **more,
    }  # fmt: skip


@dataclass(frozen=True)
class Manifest:
    """A set whose pods run some image."""

    name: str
    roles: tuple[JsonObject, ...]
    groups: tuple[JsonObject, ...] = ()
    replicas: int = 1
    image: str = "one"
    behaviour: str = ""  # of pods of this image, in the lab
    gpus: int = 0
    selector: str = ""
    strategy: Mapping[str, Json] | None = None
    annotations: Mapping[str, str] | None = None
    startup: str = ""
    delay: str = "1h"

    def body(self) -> JsonObject:
        main: JsonObject = {"name": "main", "image": f"registry.example/{self.image}"}
        if self.gpus:
            main["resources"] = {"limits": {"nvidia.com/gpu": str(self.gpus)}}
        pod_spec: JsonObject = {"terminationGracePeriodSeconds": 1, "containers": [main]}
        if self.selector:
            pod_spec["nodeSelector"] = {self.selector: "yes"}
        cliques: list[Json] = []
        for each in self.roles:
            spec = each["spec"]
            assert isinstance(spec, dict)
            made: JsonObject = {**each, "spec": {**spec, "podSpec": pod_spec}}
            if self.behaviour:
                made["annotations"] = {BEHAVIOUR: self.behaviour}
            cliques.append(made)
        template: JsonObject = {"cliques": cliques, "terminationDelay": self.delay}
        if self.startup:
            template["cliqueStartupType"] = f"CliqueStartupType{self.startup}"
        if self.groups:
            template["podCliqueScalingGroups"] = [*self.groups]
        written: JsonObject = {"replicas": self.replicas, "template": template}
        if self.strategy is not None:
            written["updateStrategy"] = {**self.strategy}
        return {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodCliqueSet",
            "metadata": {"name": self.name, "annotations": {**(self.annotations or {})}},
            "spec": written,
        }


@dataclass(frozen=True)
class Updated:
    """A set that a person changes again and again."""

    cluster: Cluster
    kubectl: Kubectl
    name: str

    def apply(self, manifest: Manifest) -> None:
        self.kubectl.apply(manifest.body())

    async def seen(self) -> SetSeen:
        return await look(self.cluster.client, self.cluster.namespace, self.name)

    async def pods(self) -> dict[str, Pod]:
        return dict((await self.seen()).pods)

    async def done(self, image: str, pods: int) -> SetSeen:
        """Wait until so many pods run this image, and no others, and the set says so."""

        async def attempt() -> SetSeen | None:
            seen = await self.seen()
            progress = seen.status.update_progress
            ended = progress is not None and progress.update_ended_at
            complete = seen.running and len(seen.pods) == pods and current(seen) == pods
            told = seen.status.updated_replicas == seen.spec.replicas
            ready = all(pod.containers_ready for pod in seen.pods.values())
            return seen if complete and ready and ended and told else None

        return await self.cluster.until(attempt, f"{self.name} updated to {image}")

    async def standing(self, new: int, old: int) -> SetSeen:
        """Wait until so many pods are of the newest template, and so many of older ones."""

        last = ""

        async def attempt() -> SetSeen | None:
            nonlocal last
            seen = await self.seen()
            going = sum(pod.metadata.deletion_timestamp is not None for pod in seen.pods.values())
            last = f"{current(seen)} new of {len(seen.pods)}, {going} going: {seen.status}"
            right = (current(seen), len(seen.pods)) == (new, new + old)
            return seen if right and not going else None

        what = f"{self.name} with {new} new and {old} old pods"
        try:
            return await self.cluster.until(attempt, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; there are {last}") from None

    async def progress(self) -> SetUpdate:
        """Wait until the set says how far an update has come."""

        async def attempt() -> SetUpdate | None:
            return (await self.seen()).status.update_progress

        return await self.cluster.until(attempt, f"{self.name} being updated")

    async def progressing(self, reason: str) -> Condition:
        """Wait until the set gives this reason for getting on or not."""

        async def attempt() -> Condition | None:
            found = condition_of((await self.seen()).status.conditions, names.PROGRESSING)
            return found if found and found.reason == reason else None

        return await self.cluster.until(attempt, f"{self.name}: {reason}")


def current(seen: SetSeen) -> int:
    """How many pods follow the newest templates, by the hash in their labels."""
    newest = template_hashes(seen.spec)
    return sum(
        any(
            seen.cliques[clique].spec.role_name == name
            and pod.metadata.labels.get(names.TEMPLATE_HASH_LABEL) == wanted
            for name, wanted in newest.items()
        )
        for pod in seen.pods.values()
        if (clique := pod.metadata.labels[names.PODCLIQUE_LABEL]) in seen.cliques
    )
