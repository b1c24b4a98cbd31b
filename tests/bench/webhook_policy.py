"""How long the owners' policy takes over a set of twenty cliques: twenty rules, in CPU time."""

import gc
import time
from dataclasses import dataclass
from statistics import median
from typing import Final

import orjson

from api.jsons import Json, JsonObject
from policies import evaluating, podcliqueset_view, policy_reading, reading
from policies.admission import User
from policies.evaluating import Subject
from policies.findings import Finding
from policies.known import NOTHING
from policies.policy import Policy
from tests.bench.harness import Budget, Row
from tests.bench.webhook_reviews import pod_clique_set
from webhook.server import YOUNG

CLIQUES: Final = 20
TURNS: Final = 7
EACH: Final = 40
MILLISECOND: Final = Budget(1)

EXPRESSIONS: Final = (
    "pod.containers.all(c, c.gpu.requests == c.gpu.limits)",
    "pod.containers.all(c, c.memory.requests <= quantity('512Gi'))",
    "pod.containers.all(c, c.cpu.requests <= 64000 && c.cpu.requests > 0)",
    "pod.containers.exists(c, has(c.readinessProbe))",
    "pod.allContainers.all(c, !c.privileged)",
    "pod.allContainers.all(c, c.image.startsWith('registry.example/'))",
    "!pod.hostNetwork && !pod.hostPID && !pod.hostIPC",
    "pod.tolerations.all(t, t.key != 'node.kubernetes.io/unschedulable')",
    "pod.serviceAccountName == '' || pod.serviceAccountName.like('engine-*')",
    "pod.terminationGracePeriodSeconds <= 600",
    "pod.gpus <= 8 || pod.priorityClassName == 'whole-nodes'",
    "set.cliques.all(c, c.minAvailable > 0 && c.replicas <= 64)",
    "set.podsPerGang <= 512 && (queue == 'chat' || set.gpusPerGang <= 64)",
)
IMAGES: Final[tuple[JsonObject, ...]] = (
    {"allow": ["registry.example/*"]},
    {"deny": ["*:latest"]},
    {"deny": ["docker.io/*", "quay.io/*"]},
    {"allow": ["registry.example/engine*", "registry.example/fetch:*", "*/metrics:*"]},
    {"deny": ["registry.example/old/*"]},
    {"deny": ["*-dev", "*:edge"]},
)


def _rule(number: int, **asked: Json) -> JsonObject:
    return {"id": f"rule-{number}", **asked}


RULES: Final[list[Json]] = [
    *[_rule(i, cel=cel) for i, cel in enumerate(EXPRESSIONS)],
    *[_rule(i, images=asked) for i, asked in enumerate(IMAGES, len(EXPRESSIONS))],
    _rule(len(EXPRESSIONS) + len(IMAGES), podSecurity="restricted"),
]
QUEUE: Final[JsonObject] = {
    "name": "chat",
    "namespaces": ["*"],
    "default": True,
    "limits": {"gangs": 100, "podsPerGang": {"max": 512}, "gpusPerGang": 4096},
}


@dataclass(frozen=True)
class Bench:
    """A policy and a set, read anew each time, so that nothing of it is remembered."""

    policy: Policy
    body: bytes

    def subject(self) -> Subject:
        raw: JsonObject = orjson.loads(self.body)
        view = podcliqueset_view.view(raw)
        labels = reading.mapping(reading.mapping(raw.get("metadata")).get("labels"))
        pods = tuple((clique.pod_path, clique.pod) for clique in view.cliques)
        return Subject("serving", "chat", labels, pods, view, User("alice", ("ml-serving",)))

    def findings(self) -> list[Finding]:
        return evaluating.evaluate(self.policy, NOTHING, self.subject())

    def milliseconds(self) -> float:
        """Give the processor time of one evaluation, without reading the set."""
        taken = []
        for _ in range(EACH):
            subject = self.subject()
            begun = time.thread_time()
            evaluating.evaluate(self.policy, NOTHING, subject)
            taken.append(time.thread_time() - begun)
        return median(taken) * 1e3


def bench(rules: list[Json] = RULES) -> Bench:
    """Make the policy of these rules, and the set."""
    policy = policy_reading.read({"queues": [QUEUE], "rules": rules})
    if not isinstance(policy, Policy):
        raise TypeError(f"the policy cannot be gone by: {policy[0].problem}")
    raw = pod_clique_set(CLIQUES)
    for clique in podcliqueset_view.view(raw).cliques:
        _confine(clique.pod)
    return Bench(policy, orjson.dumps(raw))


def _confine(pod: JsonObject) -> None:
    """Have a pod keep to the restricted level, as those do of whom it is asked."""
    profile: JsonObject = {"seccompProfile": {"type": "RuntimeDefault"}}
    pod["securityContext"] = {**reading.mapping(pod.get("securityContext")), **profile}
    confined: JsonObject = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    for field in ("initContainers", "containers"):
        for container in reading.items(pod.get(field)):
            if isinstance(container, dict):
                container["securityContext"] = {**confined}


def evaluated() -> list[Row]:
    """Measure all rules together; the floor is the same set and queue without any."""
    before = gc.get_threshold()
    gc.set_threshold(YOUNG)  # as the server does
    ours, bare = bench(), bench([])
    taken = [(ours.milliseconds(), bare.milliseconds()) for _ in range(TURNS)]
    gc.set_threshold(*before)
    what = f"policy of {len(RULES)} rules over a set of {CLIQUES} cliques, CPU"
    whole, queue = (median(each) for each in zip(*taken, strict=True))
    return [Row(what, whole, "ms", queue, MILLISECOND)]
