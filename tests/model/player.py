"""Everybody else: who lifts, binds, runs and ends pods, and who collects garbage."""

from dataclasses import dataclass
from typing import Final

import msgspec

from api.jsons import Json, JsonObject
from kube.transport import JSON, Call
from tests.model.memory import Memory, Target, part

PODS: Final = "api/v1/pods"
_MERGE: Final = "application/merge-patch+json"
_GATE: Final = "penstock.dev/gang"
_GANGS: Final = "apis/scheduler.grove.io/v1alpha1/podgangs"


def path(kind: str, namespace: str, name: str = "", subresource: str = "") -> str:
    """Give the path of an object, its kind as apis/grove.io/v1alpha1/podcliques."""
    base, _, plural = kind.rpartition("/")
    parts = [base, "namespaces", namespace, plural, name, subresource]
    return "/" + "/".join(each for each in parts if each)


@dataclass(frozen=True)
class Player:
    """Acts on a memory as people, `gangs`, schedulers and kubelets do; nothing ever fails it."""

    memory: Memory
    namespace: str

    def create(self, kind: str, body: JsonObject) -> None:
        self._send("POST", path(kind, self.namespace), body)

    def patch(self, kind: str, name: str, body: JsonObject, subresource: str = "") -> None:
        self._send("PATCH", path(kind, self.namespace, name, subresource), body)

    def delete(self, kind: str, name: str, **options: Json) -> None:
        self._send("DELETE", path(kind, self.namespace, name), {**options})

    def pods(self) -> list[JsonObject]:
        return self.memory.of_kind("pods")

    def act(self) -> bool:
        """Bring every pod one step further; tell whether anything was done."""
        before = self.memory.version
        while self.memory.collect_garbage():
            pass
        self._lift()
        for pod in self.pods():
            self._further(pod)
        return self.memory.version != before

    def fail(self, name: str, phase: str = "Failed") -> None:
        """Have a pod end."""
        self._status(name, phase, ready=False)

    def failed(self) -> bool:
        """Tell whether any pod has failed and was not made anew yet."""
        return any(part(pod, "status").get("phase") == "Failed" for pod in self.pods())

    def weaken(self, name: str) -> None:
        """Have a pod that runs be unready from now on."""
        self._status(name, "Running", ready=False)

    def cure(self, name: str) -> None:
        """Have it be ready again."""
        self._status(name, "Running", ready=True)

    def _lift(self) -> None:
        for gang in self.memory.of_kind("podgangs"):
            if not said(gang, "Initialized"):
                continue
            name = str(part(gang, "metadata")["name"])
            self.patch(_GANGS, name, {"status": {"phase": "Starting"}}, "status")
            for group in listed(part(gang, "spec"), "podgroups"):
                for reference in listed(group, "podReferences"):
                    self._lift_one(str(reference["name"]))

    def _lift_one(self, name: str) -> None:
        pod = self.memory.objects.get((PODS, self.namespace, name))
        if pod is None or "deletionTimestamp" in part(pod, "metadata"):
            return
        if any(gate["name"] == _GATE for gate in listed(part(pod, "spec"), "schedulingGates")):
            self.lift(name)

    def lift(self, name: str) -> None:
        """Take the gate off a pod and give it a node."""
        self.patch(PODS, name, {"spec": {"schedulingGates": None, "nodeName": "n"}})

    def _further(self, pod: JsonObject) -> None:
        meta, name = part(pod, "metadata"), str(part(pod, "metadata")["name"])
        if "deletionTimestamp" in meta:
            self.delete(PODS, name, gracePeriodSeconds=0)
        elif part(pod, "spec").get("nodeName") and part(pod, "status")["phase"] == "Pending":
            self._status(name, "Running", ready=True)

    def _status(self, name: str, phase: str, *, ready: bool) -> None:
        status = "True" if ready else "False"
        body: JsonObject = {
            "status": {
                "phase": phase,
                "conditions": [
                    {"type": kind, "status": status} for kind in ("Ready", "ContainersReady")
                ],
                "containerStatuses": [{"name": "main", "ready": ready, "started": True}],
            }
        }
        self.patch(PODS, name, body, "status")

    def _send(self, method: str, where: str, body: JsonObject) -> None:
        media = _MERGE if method == "PATCH" else JSON
        call = Call(method, where, {"fieldManager": "player"}, msgspec.json.encode(body), media)
        assert Target.of(where).kind
        self.memory.answer(call)


def listed(thing: JsonObject, name: str) -> list[JsonObject]:
    """Give a list of objects in an object, empty if it is not there."""
    found = thing.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def condition(thing: JsonObject, kind: str) -> str:
    """Give the status of a condition, or "" without one."""
    found = listed(part(thing, "status"), "conditions")
    return next((str(each["status"]) for each in found if each["type"] == kind), "")


def said(thing: JsonObject, kind: str) -> bool:
    """Tell whether a condition holds."""
    return condition(thing, kind) == "True"
