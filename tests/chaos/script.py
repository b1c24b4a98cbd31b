"""Audit lines made by hand: a gang of two pods on its way, and what may go wrong with it."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from api import names
from api.jsons import Json, JsonObject
from tests.chaos.audit_final import State
from tests.chaos.audit_world import GANGS
from tests.chaos.checker import Verdict, check

SPACE: Final = "test"
START: Final = 1_800_000_000.0
MAKER: Final = "system:serviceaccount:penstock-system:penstock-workloads"
KUBE_SCHEDULER: Final = "system:kube-scheduler"
ADMIN: Final = "admin"
CLIQUE: Final = "g-0-engine"
GANG: Final = "g-0"
FIRST: Final = "vm_1_aa"
SECOND: Final = "vm_2_bb"
LIFT: Final[Json] = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
_KINDS: Final = {"pods": "Pod", "reservations": "Reservation", "podgangs": "PodGang"}


def instant(seconds: float) -> str:
    """Write an instant, counted from the beginning of the script."""
    return datetime.fromtimestamp(START + seconds, UTC).isoformat().replace("+00:00", "Z")


@dataclass
class Script:
    """Writes lines of an audit log, and keeps the objects as they became."""

    lines: list[bytes] = field(default_factory=list)
    objects: dict[tuple[str, str], JsonObject] = field(default_factory=dict)
    now: float = 0.0
    revision: int = 100
    leader: str = FIRST

    def later(self, seconds: float) -> None:
        self.now += seconds

    def line(
        self,
        verb: str,
        resource: str,
        name: str,
        *,
        user: str,
        asked: Json = None,
        answer: Json = None,
        subresource: str = "",
        code: int = 200,
        instance: str | None = None,
        space: str = SPACE,
        uri: str = "",
    ) -> None:
        """Write one line, a tenth of a second after the one before."""
        self.now += 0.1
        if instance is None:
            instance = self.leader if user == GANGS else ""
        agent = f"penstock/gangs ({instance})" if instance else "kubectl"
        event: JsonObject = {
            "kind": "Event",
            "verb": verb,
            "user": {"username": user},
            "userAgent": agent,
            "objectRef": {
                "resource": resource, "namespace": space, "name": name, "subresource": subresource
            },
            "requestURI": uri,
            "responseStatus": {"code": code},
            "requestObject": asked,
            "responseObject": answer,
            "requestReceivedTimestamp": instant(self.now - 0.01),
            "stageTimestamp": instant(self.now),
        }  # fmt: skip
        self.lines.append(json.dumps(event, separators=(",", ":")).encode() + b"\n")

    def store(
        self, verb: str, resource: str, name: str, body: JsonObject, user: str, asked: Json = None,
        *, subresource: str = "", instance: str | None = None,
    ) -> None:  # fmt: skip
        """Write a line that leaves the object so."""
        self.revision += 1
        meta: JsonObject = {
            "name": name,
            "namespace": SPACE,
            "uid": f"uid-{name}",
            **_dict(body.get("metadata")),
            "resourceVersion": str(self.revision),
        }
        whole: JsonObject = {**body, "kind": _KINDS.get(resource, "Thing"), "metadata": meta}
        self.objects[resource, name] = whole
        self.line(
            verb, resource, name, user=user, asked=asked, answer=whole,
            subresource=subresource, instance=instance,
        )  # fmt: skip

    def drop(self, resource: str, name: str, user: str, instance: str | None = None) -> None:
        """Delete an object at once."""
        del self.objects[resource, name]
        done: JsonObject = {"kind": "Status", "status": "Success"}
        self.line("delete", resource, name, user=user, answer=done, instance=instance)

    def lead(self, instance: str) -> None:
        """Let somebody hold the lease of `gangs` from now on."""
        self.leader = instance
        self.revision += 1
        meta: JsonObject = {"name": names.GANGS_LEASE, "resourceVersion": str(self.revision)}
        lease: JsonObject = {"metadata": meta, "spec": {"holderIdentity": instance}}
        self.line(
            "patch", "leases", names.GANGS_LEASE, user=GANGS, answer=lease, space=names.NAMESPACE
        )

    def restart(self) -> None:
        """Start the API server anew."""
        self.line(
            "get", "priorityclasses", "system-node-critical", user="system:apiserver", space=""
        )

    def mark(self, name: str) -> None:
        self.line("create", "configmaps", name, user=ADMIN)

    # The life of a gang.

    def gang(self, minimum: int = 2) -> None:
        groups: Json = [{"name": CLIQUE, "podReferences": [], "minReplicas": minimum}]
        self.store("create", "podgangs", GANG, {"spec": {"podgroups": groups}}, MAKER)

    def pod(self, index: int, gpus: int = 8, *, blocked: bool = False) -> None:
        """Make a gated pod of the gang."""
        labels: JsonObject = {
            names.PODGANG_LABEL: GANG, names.PODCLIQUE_LABEL: CLIQUE,
            names.POD_INDEX_LABEL: str(index),
        }  # fmt: skip
        body: JsonObject = {
            "metadata": {"labels": labels, "ownerReferences": [{"kind": "PodClique"}]},
            "spec": {"containers": [_container(gpus)], "schedulingGates": [{"name": names.GATE}]},
            "status": {"conditions": _blocked() if blocked else []},
        }
        self.store("create", "pods", f"p{index}", body, MAKER)

    def stranger(self, name: str, gpus: int, node: str) -> None:
        """Make a pod that is nobody's and bind it."""
        body: JsonObject = {"spec": {"containers": [_container(gpus)]}}
        self.store("create", "pods", name, body, ADMIN)
        self.bind(name, node)

    def reserve(
        self, *nodes: str, state: str = "", bind_by: float = 0.0, user: str = GANGS,
        instance: str | None = None,
    ) -> None:  # fmt: skip
        """Write a Reservation with a slot on each node, in this state."""
        slots: list[Json] = [{"index": i, "node": node} for i, node in enumerate(nodes)]
        group: JsonObject = {
            "name": CLIQUE, "requests": {"nvidia.com/gpu": "8", "pods": "1"}, "slots": slots
        }  # fmt: skip
        status: JsonObject = {}
        if state:
            until = instant(bind_by) if bind_by else ""
            status = {"state": state, "attempt": 0, "bindBy": until}
        verb = "patch" if ("reservations", GANG) in self.objects else "create"
        body: JsonObject = {"spec": {"attempt": 0, "groups": [group]}, "status": status}
        self.store(verb, "reservations", GANG, body, user, instance=instance)

    def lift(self, index: int, node: str, user: str = GANGS, instance: str | None = None) -> None:
        """Pin a pod and take its gate off."""
        self._change(index, _pin(node), user, LIFT, instance)

    def bind(self, name: str, node: str) -> None:
        """Let kube-scheduler bind a pod, and its node tell of it."""
        asked: JsonObject = {"target": {"name": node}, "metadata": {"uid": f"uid-{name}"}}
        done: JsonObject = {"kind": "Status", "status": "Success"}
        self.line(
            "create", "pods", name, user=KUBE_SCHEDULER, asked=asked, answer=done,
            subresource="binding", code=201,
        )  # fmt: skip
        self.runs(name, node)

    def runs(self, name: str, node: str) -> None:
        """Tell what has become of a pod."""
        body = self.objects["pods", name]
        body = {**body, "spec": {**_dict(body["spec"]), "nodeName": node}}
        self.store("patch", "pods", name, body, "kubelet", subresource="status")

    def delete(self, index: int, user: str, instance: str | None = None) -> None:
        """Ask for a pod's end; it stays for its grace period."""
        body = self.objects["pods", f"p{index}"]
        meta = {
            **_dict(body["metadata"]),
            "deletionTimestamp": instant(self.now), "deletionGracePeriodSeconds": 1,
        }  # fmt: skip
        self.store(
            "delete", "pods", f"p{index}", {**body, "metadata": meta}, user, instance=instance
        )

    def _change(
        self, index: int, spec: JsonObject, user: str, asked: Json, instance: str | None
    ) -> None:
        body = self.objects["pods", f"p{index}"]
        whole = {**_dict(body["spec"]), **spec}
        whole.pop("schedulingGates")
        self.store(
            "patch", "pods", f"p{index}", {**body, "spec": whole}, user, asked, instance=instance
        )

    def state(self, nodes: int = 4) -> State:
        """Give what there is in the end."""
        spec: JsonObject = {"replicas": 1, "template": {"cliques": [{"name": "engine"}]}}
        found: dict[str, list[JsonObject]] = {
            "nodes": [_node(f"n{n}") for n in range(nodes)],
            "podcliquesets": [{"metadata": {"name": "g", "namespace": SPACE}, "spec": spec}],
            "podcliques": [
                {"metadata": {"name": CLIQUE, "namespace": SPACE}, "spec": {"replicas": 2}}
            ],
        }
        for (resource, _), body in self.objects.items():
            found.setdefault(resource, []).append(body)
        return found


def whole_gang() -> Script:
    """A gang of two pods that goes its way without a fault."""
    script = Script()
    script.lead(FIRST)
    script.gang()
    script.pod(0)
    script.pod(1)
    script.reserve("n0", "n1")
    script.reserve("n0", "n1", state="Lifting", bind_by=45)
    script.lift(0, "n0")
    script.lift(1, "n1")
    script.bind("p0", "n0")
    script.bind("p1", "n1")
    script.reserve("n0", "n1", state="Bound")
    return script


def begun_gang() -> Script:
    """The same, where nothing is lifted yet."""
    script = Script()
    script.lead(FIRST)
    script.gang()
    script.pod(0)
    script.pod(1)
    script.reserve("n0", "n1")
    script.reserve("n0", "n1", state="Lifting", bind_by=45)
    return script


def half_bound() -> Script:
    """The same, where one of two lifted pods is bound."""
    script = begun_gang()
    script.lift(0, "n0")
    script.lift(1, "n1")
    script.bind("p0", "n0")
    return script


def verdict(script: Script, *, at_rest: bool = False) -> Verdict:
    return check(script.lines, script.state(), at_rest=at_rest)


def found(script: Script, *, at_rest: bool = False) -> list[tuple[str, str]]:
    return [(each.rule, each.why) for each in verdict(script, at_rest=at_rest).findings]


def rules(script: Script, *, at_rest: bool = False) -> list[str]:
    return [rule for rule, _ in found(script, at_rest=at_rest)]


def _container(gpus: int) -> JsonObject:
    return {"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}


def _pin(node: str) -> JsonObject:
    only: JsonObject = {"key": "metadata.name", "operator": "In", "values": [node]}
    required: JsonObject = {"nodeSelectorTerms": [{"matchFields": [only]}]}
    affinity: JsonObject = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return {"affinity": {"nodeAffinity": affinity}}


def _blocked() -> Json:
    return [{"type": names.STARTUP_BLOCKED, "status": "True"}]


def _node(name: str) -> JsonObject:
    room: JsonObject = {"nvidia.com/gpu": "8", "pods": "10"}
    return {"metadata": {"name": name, "uid": name}, "status": {"allocatable": room}}


def _dict(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
