"""What the policy gives to gangs that leave it out: to sets when they are written, to plain pods.

Only what is not there is given, so that a second look gives nothing more. A set that is changed is
given what it had and now lacks, as one written anew from its manifest does, and its cliques only
where they are new or their podSpec is written otherwise than it is stored: a policy that comes
later changes no set and rolls no pod.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from api import names
from api.jsons import Json, JsonObject
from policies import bounds, globs, reading, standing
from policies.filling import Filled, Patch, each, inside, put, put_within
from policies.policy import Policy
from policies.policy_mutations import GivenPort, GivenTopology, Mutation

_LABELS = (names.TOPOLOGY_LABEL, names.TOPOLOGY_LEVEL_LABEL)


def of_queue(policy: Policy, queue: str) -> list[Mutation]:
    """Give the mutations that are for a queue, in their order."""
    return [one for one in policy.mutations if globs.any_matches(one.queues, queue)]


def to_set(policy: Policy, namespace: str, raw: JsonObject, before: JsonObject | None) -> Filled:
    """Give a set, with its defaults filled in, what the policy has for its queue.

    `before` is the set as it is stored, if it is.
    """
    if not (policy.queues or policy.mutations):
        return Filled(raw, ())
    metadata = reading.mapping(raw.get("metadata"))
    labels = reading.mapping(metadata.get("labels"))
    there = standing.of(policy, namespace, labels)
    giving = _ToSet(of_queue(policy, there.name or policy.pods.queue), before)
    patch: Patch = []
    if there.queue is not None and there.is_default:
        raw = giving.word(raw, "labels", names.QUEUE_LABEL, there.name, patch)
    startup = next((one.startup for one in giving.mutations if one.startup), None)
    if startup:
        raw = giving.word(raw, "annotations", names.STARTUP_ANNOTATION, startup, patch)
    return Filled(inside(raw, "spec", "", patch, giving.spec), tuple(patch))


@dataclass(frozen=True)
class _ToSet:
    mutations: Sequence[Mutation]
    before: JsonObject | None

    def word(self, raw: JsonObject, field: str, key: str, word: str, patch: Patch) -> JsonObject:
        """Write a label or annotation that the set lacks."""
        metadata = reading.mapping(raw.get("metadata"))
        if reading.mapping(metadata.get(field)).get(key) or not self._had(field, key):
            return raw
        return inside(
            raw, "metadata", "", patch, lambda m, at, p: put_within(m, field, at, p, {key: word})
        )

    def _had(self, field: str, key: str) -> bool:
        """Tell whether a set that is stored has it: a new one may have everything."""
        if self.before is None:
            return True
        metadata = reading.mapping(self.before.get("metadata"))
        return bool(reading.mapping(metadata.get(field)).get(key))

    def spec(self, spec: JsonObject, path: str, patch: Patch) -> JsonObject:
        return inside(spec, "template", path, patch, self._template)

    def _template(self, template: JsonObject, path: str, patch: Patch) -> JsonObject:
        topology = next((one.topology for one in self.mutations if one.topology), None)
        was = None if self.before is None else _template_of(self.before)
        if topology and not _asks_closeness(template) and (was is None or _constraint(was)):
            template = put(template, path, patch, {"topologyConstraint": _closeness(topology)})
        stored = {} if was is None else _cliques(was)

        def clique(one: JsonObject, at: str, patch: Patch) -> JsonObject:
            return self._clique(one, at, patch, stored)

        return each(template, "cliques", path, patch, clique)

    def _clique(
        self, clique: JsonObject, path: str, patch: Patch, stored: dict[str, JsonObject]
    ) -> JsonObject:
        name = reading.name(clique.get("name")) or ""
        was = stored.get(name)
        if was is not None and _pod(was) == _pod(clique):
            return clique
        meant = [one for one in self.mutations if globs.any_matches(one.cliques, name)]
        if not meant:
            return clique

        def pod(spec: JsonObject, at: str, patch: Patch) -> JsonObject:
            return to_pod_spec(meant, spec, at, patch)

        return inside(
            clique, "spec", path, patch, lambda spec, at, p: inside(spec, "podSpec", at, p, pod)
        )


def to_plain_pod(policy: Policy, queue: str, raw: JsonObject) -> Filled:
    """Give a plain gang's new pod what the policy has for its queue."""
    mutations = of_queue(policy, queue)
    if not mutations:
        return Filled(raw, ())
    patch: Patch = []
    topology = next((one.topology for one in mutations if one.topology), None)
    labels = reading.mapping(reading.mapping(raw.get("metadata")).get("labels"))
    if topology and not any(labels.get(key) for key in _LABELS):
        said: JsonObject = {names.TOPOLOGY_LEVEL_LABEL: topology.level}
        if topology.topology:
            said[names.TOPOLOGY_LABEL] = topology.topology
        raw = inside(
            raw, "metadata", "", patch, lambda m, at, p: put_within(m, "labels", at, p, said)
        )

    def pod(spec: JsonObject, at: str, patch: Patch) -> JsonObject:
        return to_pod_spec(mutations, spec, at, patch)

    return Filled(inside(raw, "spec", "", patch, pod), tuple(patch))


def to_pod_spec(
    mutations: Sequence[Mutation], spec: JsonObject, path: str, patch: Patch
) -> JsonObject:
    """Give a pod's containers requests, and the first of them ports."""
    ports = next((one.ports for one in mutations if one.ports), [])
    requests: JsonObject = {}
    for mutation in mutations:
        for resource, amount in mutation.requests.items():
            requests.setdefault(resource, amount)

    def container(one: JsonObject, at: str, patch: Patch) -> JsonObject:
        if ports and at.endswith("/containers/0") and not one.get("ports"):
            one = put(one, at, patch, {"ports": [_port(port) for port in ports]})
        return _with_requests(one, requests, at, patch)

    return each(spec, "containers", path, patch, container, bounds.MOST["containers"])


def _with_requests(one: JsonObject, given: JsonObject, path: str, patch: Patch) -> JsonObject:
    resources = one.get("resources")
    if not isinstance(resources, dict | None):
        return one
    asked = (resources or {}).get("requests")
    # A limit is a request too where there is no other, as Kubernetes has it.
    limited = reading.mapping((resources or {}).get("limits"))
    lacking: JsonObject = {
        key: amount
        for key, amount in given.items()
        if reading.mapping(asked).get(key) is None and limited.get(key) is None
    }
    if not lacking:
        return one
    if resources is None:
        return put(one, path, patch, {"resources": {"requests": lacking}})
    return inside(
        one,
        "resources",
        path,
        patch,
        lambda inner, at, p: put_within(inner, "requests", at, p, lacking),
    )


def _port(port: GivenPort) -> JsonObject:
    written: JsonObject = {"containerPort": port.container_port, "protocol": port.protocol}
    return {"name": port.name, **written} if port.name else written


def _closeness(topology: GivenTopology) -> JsonObject:
    named: JsonObject = {"topologyName": topology.topology} if topology.topology else {}
    return {**named, "pack": {"required": topology.level}}


def _asks_closeness(template: JsonObject) -> bool:
    parts = [
        template,
        *reading.items(template.get("cliques")),
        *reading.items(template.get("podCliqueScalingGroups")),
    ]
    return any(_constraint(reading.mapping(part)) for part in parts)


def _constraint(holder: JsonObject) -> bool:
    return bool(holder.get("topologyConstraint"))


def _template_of(raw: JsonObject) -> JsonObject:
    return reading.mapping(reading.mapping(raw.get("spec")).get("template"))


def _cliques(template: JsonObject) -> dict[str, JsonObject]:
    found = map(reading.mapping, reading.items(template.get("cliques")))
    return {name: one for one in found if (name := reading.name(one.get("name")))}


def _pod(clique: JsonObject) -> Json:
    return reading.mapping(clique.get("spec")).get("podSpec")
