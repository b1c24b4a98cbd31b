"""Rules that owners write themselves: what they see of a gang, and what comes of them."""

import orjson
import pytest

from api.jsons import Json, JsonObject
from policies import podcliqueset_defaults, podcliqueset_view, policy_source
from policies.answers import Allow, Refuse
from policies.cel.kinds import Field, ListOf, MapOf, Plain, Record
from policies.cel.running import Meter
from policies.expression_view import VARIABLES, PodSeen, SetSeen
from policies.policy_checks import MOST_EXPRESSIONS, read_expression
from policies.policy_source import BadPolicyError
from tests.policies.drafts import POD, clique, constraint, draft, edited, group
from tests.policies.test_evaluating import asked, policy, queue, refused
from tests.support.gangpods import PLAIN, judged, pod

WIDE: JsonObject = {
    "containers": [
        {
            "name": "main",
            "image": "r.example/engine:1",
            "env": [{"name": "TOKEN", "value": "secret"}],
            "ports": [{"name": "http", "containerPort": 80}, {"hostPort": 1, "protocol": "UDP"}],
            "readinessProbe": {"httpGet": {"port": 80}},
            "resources": {
                "limits": {"nvidia.com/gpu": "8", "cpu": "4", "memory": "2Gi"},
                "requests": {"cpu": "500m", "ephemeral-storage": "1Gi"},
            },
        },
    ],
    "initContainers": [{"name": "first", "securityContext": {"privileged": True}}],
    "hostNetwork": True,
    "nodeSelector": {"zone": "a"},
    "serviceAccountName": "runner",
    "securityContext": {"runAsNonRoot": True},
    "tolerations": [{"key": "gpu", "effect": "NoSchedule"}],
    "volumes": [{"name": "v", "hostPath": {"path": "/"}}, {"emptyDir": {}}],
    "terminationGracePeriodSeconds": 60,
}
WHOLE: JsonObject = draft(
    clique("lead", pod=WIDE),
    clique("work", "lead", counts={"replicas": 3}, labels={"app": "x"}),
    groups=(group("both", "work", counts={"replicas": 2}),),
    topologyConstraint=constraint("rack", name="net"),
    priorityClassName="high",
)


def holds(text: str, spec: JsonObject | None = None, whole: JsonObject | None = None) -> bool:
    raw = podcliqueset_defaults.defaulted(whole or WHOLE).object
    view = podcliqueset_view.view(raw)
    pods = [PodSeen("infer-a", one.pod) for one in view.cliques]
    seen = SetSeen("infer-a", {"team": "ml"}, view, pods)
    values = {"queue": "chat", "pod": PodSeen("infer-a", spec or WIDE), "set": seen}
    verdict = read_expression(text).ask(values, Meter())
    return type(verdict).__name__ == "Holds"


@pytest.mark.parametrize(
    "text",
    [
        "pod.containers.size() == 1 && pod.allContainers.map(c, c.name) == ['first', 'main']",
        "pod.containers.all(c, c.gpu.requests == c.gpu.limits && c.gpu.limits == 8)",
        "pod.containers[0].cpu.requests == 500 && pod.containers[0].cpu.limits == 4000",
        "pod.containers[0].memory.requests == quantity('2Gi')",
        "pod.containers[0].ephemeralStorage.limits == 0",
        "pod.containers[0].ports.map(p, p.hostPort) == [0, 1]",
        "pod.containers[0].ports.map(p, p.protocol) == ['TCP', 'UDP']",
        "pod.containers[0].env == ['TOKEN'] && has(pod.containers[0].readinessProbe)",
        "!pod.containers[0].livenessProbe && pod.initContainers.exists(c, c.privileged)",
        "pod.hostNetwork && !pod.hostPID && pod.runAsNonRoot && pod.gpus == 8",
        "pod.nodeSelector.zone == 'a' && !has(pod.nodeSelector.rack)",
        "pod.serviceAccountName == 'runner' && pod.priorityClassName == ''",
        "pod.tolerations.exists(t, t.key == 'gpu' && t.operator == 'Equal')",
        "pod.volumes.map(v, v.type) == ['hostPath', 'emptyDir']",
        "pod.terminationGracePeriodSeconds == 60 && pod.namespace == 'infer-a'",
        "set.cliques.map(c, c.name) == ['lead', 'work'] && set.cliques[1].startsAfter == ['lead']",
        "set.cliques.exists(c, c.pod.hostNetwork) && set.cliques[1].labels.app == 'x'",
        "set.groups[0].cliqueNames == ['work'] && set.groups[0].maxReplicas == 2",
        "set.topology == 'rack' && set.priorityClassName == 'high' && set.labels.team == 'ml'",
        "set.gangs == 2 && set.podsPerGang == 4 && set.gpusPerGang == 8 && queue == 'chat'",
        "set.replicas == 1 && set.namespace == 'infer-a' && set.startupType != ''",
    ],
)
def test_an_expression_sees_what_was_written(text: str) -> None:
    assert holds(text)


def every(value: Json) -> JsonObject:
    """A podSpec in which every key that is read has one value."""
    container: JsonObject = dict.fromkeys(("name", "image", "resources", "ports", "env"), value)
    keys = ("hostNetwork", "nodeSelector", "tolerations", "volumes", "securityContext")
    return {"containers": [container, value], **dict.fromkeys(keys, value)}


def asking(kind: Record, path: str, depth: int = 0) -> list[str]:
    """Ask for every field that there is."""
    found: list[str] = []
    for name, field in kind.fields.items():
        found += asking_field(field, f"{path}.{name}", depth)
    return found


def asking_field(field: Field, path: str, depth: int) -> list[str]:
    kind = field.kind
    if isinstance(kind, Plain):
        return [f"{path} == {path}"]
    if isinstance(kind, MapOf):
        return [f"{path}.all(k, {path}[k].size() >= 0)"]
    if isinstance(kind, ListOf):
        inner = kind.of
        if not isinstance(inner, Record):
            return [f"{path}.all(e, e.size() >= 0)"]
        return [f"{path}.all(v{depth}, {text})" for text in asking(inner, f"v{depth}", depth + 1)]
    return asking(kind, path, depth)


@pytest.mark.parametrize("value", [None, 7, "x", True, [1], {"a": 1}, [{"name": 7}], -1.5])
def test_no_object_is_too_odd_to_be_seen(value: Json) -> None:
    odd = edited(WHOLE, "spec/template/cliques/0/spec/podSpec", every(value))
    odd = edited(odd, "spec/template/priorityClassName", value)
    for name, kind in VARIABLES.items():
        if isinstance(kind, Record):
            for text in asking(kind, name):
                assert holds(text, every(value), odd), text


def test_no_expression_sees_a_value_of_the_environment() -> None:
    fields = set()

    def walk(kind: object) -> None:
        if isinstance(kind, Record):
            for name, field in kind.fields.items():
                fields.add(name)
                walk(field.kind)
        elif isinstance(kind, ListOf):
            walk(kind.of)

    for kind in VARIABLES.values():
        walk(kind)
    assert "env" in fields
    assert not fields & {"value", "valueFrom", "envFrom", "args", "command", "data"} - {"value"}
    # The one value is a toleration's.
    assert not holds("pod.containers[0].env.exists(e, e.contains('secret'))")


def test_a_rule_over_pods_is_held_against_each_of_them() -> None:
    rule: JsonObject = {"id": "few", "cel": "pod.containers.size() == 1", "message": "one only"}
    two: JsonObject = {"containers": [{"name": "a"}, {"name": "b"}]}
    answer = asked(policy(rules=[rule]), draft(clique("a"), clique("b", pod=two)))
    assert refused(answer) == [("few", "spec.template.cliques[1].spec.podSpec")]
    assert isinstance(answer, Refuse)
    assert "one only (policy rule few)" in answer.message


def test_a_rule_over_sets_is_held_against_them_once_and_not_against_pods() -> None:
    by = policy(rules=[{"id": "few", "cel": "set.cliques.size() < 2"}])
    answer = asked(by, draft(clique("a"), clique("b")))
    assert refused(answer) == [("few", "spec")]
    assert isinstance(answer, Refuse)
    assert "must hold: set.cliques.size() < 2" in answer.message
    assert isinstance(judged(pod(PLAIN), by), Allow)


def test_a_rule_may_ask_for_the_queue() -> None:
    rule: JsonObject = {"id": "r", "cel": "queue != 'lab' || pod.gpus == 0 && pod.hostNetwork"}
    by = policy(queues=[queue("lab")], rules=[rule])
    assert refused(asked(by)) == [("r", "spec.template.cliques[0].spec.podSpec")]


@pytest.mark.parametrize("mode", ["enforce", "warn", "audit"])
def test_what_cannot_be_judged_is_broken_in_the_rules_own_mode(mode: str) -> None:
    rule: JsonObject = {"id": "zone", "mode": mode, "cel": "pod.nodeSelector.zone == 'a'"}
    answer = asked(policy(rules=[rule]), draft(clique("a", pod=POD)))
    assert isinstance(answer, Refuse if mode == "enforce" else Allow)
    assert "cannot be judged, as there is no key 'zone'" in answer.findings[0].problem.message


def test_a_rule_that_takes_too_long_is_broken_and_leaves_others_their_time() -> None:
    heavy = "set.cliques.all(a, set.cliques.all(b, set.cliques.all(c, a.name + b.name != c.name)))"
    by = policy(rules=[{"id": "heavy", "mode": "warn", "cel": heavy}, {"id": "ok", "cel": "true"}])
    answer = asked(by, draft(*(clique(f"c{i}") for i in range(40))))
    assert isinstance(answer, Allow)
    assert [each.rule for each in answer.findings] == ["heavy"]
    assert "cannot be judged, as that would take too long" in answer.warnings[0]


def test_a_bad_expression_is_told_with_its_line_and_field() -> None:
    text = "rules:\n  - id: x\n    cel: pod.containers.all(c, c.gpu.request == 8)\n"
    with pytest.raises(BadPolicyError) as raised:
        policy_source.read("f", text)
    told = (
        "line 3: rules[0].cel: character 29: amount has no field 'request'; there are limits, requ"
    )
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"id": "x"}, "must ask one thing"),
        ({"id": "x", "cel": "true", "podSecurity": "baseline"}, "must ask one thing"),
        ({"id": "x", "podSecurity": "baseline", "message": "m"}, "a message goes with cel"),
        ({"id": "x", "cel": ""}, "at least 1 character"),
    ],
)
def test_a_rule_asks_one_thing(rule: JsonObject, told: str) -> None:
    with pytest.raises(BadPolicyError, match=told):
        policy_source.read("f", orjson.dumps({"rules": [rule]}).decode())


def test_rules_that_are_expressions_are_few() -> None:
    rules: list[Json] = [{"id": f"r{i}", "cel": "true"} for i in range(MOST_EXPRESSIONS + 1)]
    with pytest.raises(BadPolicyError, match="at most 32 may"):
        policy_source.read("f", orjson.dumps({"rules": rules}).decode())
