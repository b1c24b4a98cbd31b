"""How pretend nodes and pods behave: the KWOK stages that ship with the lab.

KWOK replaces all of its own stages as soon as it is given one, so this is a full set: nodes come up
and stay up, and pods live as a kubelet would have them live. People steer single pods by
annotations below `lab.penstock.dev/` (see `ANNOTATIONS`). Everything here is a pure function.

Any write to a pod makes KWOK choose a stage anew and forget the delay of the one before, so every
delay of a second or more is counted from an instant in the object itself and survives other
people's writes. Those instants are cut to whole seconds, so such a delay lasts up to a second
longer, never shorter.
"""

from typing import Final

from api.jsons import JsonObject
from penstock.lab import pod_templates as templates

PREFIX: Final = "lab.penstock.dev/"

ANNOTATIONS: Final = {
    "behaviour": "fail | crash | never-ready (pods), not-ready (nodes)",
    "start-seconds": "how long the main containers take to start once init is over (default 0)",
    "init-seconds": "how long each init container runs (default 0.5)",
    "init-seconds.CONTAINER": "the same for one init container",
    "run-seconds": "a pod that is not restarted always succeeds after this (default 0.5 for Jobs)",
    "fail-seconds": "how long a pod runs before it fails or crashes (default 0.5)",
    "exit-code": "what its containers exit with then (default 1)",
    "backoff-seconds": "a crashing container's first pause; it doubles up to 300 (default 2)",
    "stop-seconds": "how long containers take to stop, within the grace period (default 0.5)",
    "ignore-sigterm": "true: containers stop only when the grace period is over",
}

HEARTBEAT_MILLISECONDS: Final = 300_000  # as often as a kubelet reports an unchanged status

_JQ: Final = r"""
def annotation($key): (.metadata.annotations // {})["lab.penstock.dev/" + $key];
def seconds($key; $default): ((annotation($key) // "") | tonumber?) // $default;
def behaviour: annotation("behaviour") // "";
def deleting: .metadata.deletionTimestamp != null;
def over: .status.phase == "Succeeded" or .status.phase == "Failed";
def admitted: .status.startTime != null;
def staged: ((.spec.initContainers // []) | length) > 0 or annotation("start-seconds") != null;
def condition($type): [.status.conditions[]? | select(.type == $type)][0] // {};
def holds($type): condition($type).status == "True";
def sidecars: [.spec.initContainers[]? | select(.restartPolicy == "Always") | .name];
def initializing: sidecars as $kept | [.status.initContainerStatuses[]?
    | select(.state.running != null and (.name as $name | $kept | index($name) == null))][0];
def first_start: [.status.containerStatuses[]?.state.running.startedAt // empty] | min;
def backing_off: any(.status.containerStatuses[]?; .state.waiting.reason == "CrashLoopBackOff");
def alive: .status.phase == "Running" and (deleting | not);
def ends: (behaviour != "fail" and behaviour != "crash") and .spec.restartPolicy != "Always"
    and (annotation("run-seconds") != null or any(.metadata.ownerReferences[]?; .kind == "Job"));
def gates_met: . as $pod
    | all(.spec.readinessGates[]?.conditionType; . as $type | $pod | holds($type));
def should_be_ready($container): behaviour != "never-ready"
    and (behaviour != "crash" or $container.readinessProbe == null);
def ready_as_should: . as $pod | all(.spec.containers[]; . as $container
    | ([$pod.status.containerStatuses[]? | select(.name == $container.name) | .ready][0] // false)
      == ($pod | should_be_ready($container)));
def ready_reason: if holds("ContainersReady") | not then "ContainersNotReady"
    elif gates_met | not then "ReadinessGatesNotReady" else "" end;
def settled: ready_as_should and (condition("Ready") as $ready
    | ($ready.status == "True") == (ready_reason == "") and ($ready.reason // "") == ready_reason);
def after($since; $seconds): if $since == null or $seconds < 1 then "\($seconds * 1000 | floor)ms"
    else ($since | fromdateiso8601) + $seconds + 1 | floor | todateiso8601 end;
def asked_to_stop: (.metadata.deletionTimestamp | fromdateiso8601)
    - (.metadata.deletionGracePeriodSeconds // 0) | todateiso8601;
"""


def _stage(name: str, kind: str, when: str, template: str, *, delay: str = "") -> JsonObject:
    """One Stage that patches the status of objects for which the jq expression `when` is true."""
    spec: JsonObject = {
        "resourceRef": {"apiGroup": "v1", "kind": kind},
        "selector": {"matchExpressions": [_expression(when)]},
        "steps": [{"patch": {"subresource": "status", "root": "status", "template": template}}],
    }
    if delay:
        spec["delay"] = {
            "durationMilliseconds": 0,
            "durationFrom": {"jq": {"expression": _JQ + delay}},
        }
    return _named(name, spec)


def _expression(when: str) -> JsonObject:
    return {"jq": {"key": f"{_JQ}{when}", "operator": "In", "values": ["true"]}}


def _named(name: str, spec: JsonObject) -> JsonObject:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": spec,
    }


def node_stages() -> list[JsonObject]:
    """Nodes become Ready at once, report now and then, and turn NotReady where told to."""
    heartbeat = _stage(
        "node-heartbeat",
        "Node",
        'holds("Ready") and behaviour != "not-ready"',
        templates.NODE_HEARTBEAT,
    )
    spec = heartbeat["spec"]
    assert isinstance(spec, dict)  # noqa: S101  built three lines above
    spec["delay"] = {
        "durationMilliseconds": HEARTBEAT_MILLISECONDS,
        "jitterDurationMilliseconds": HEARTBEAT_MILLISECONDS * 11 // 10,
    }
    return [
        _stage(
            "node-up",
            "Node",
            '(holds("Ready") | not) and behaviour != "not-ready"',
            templates.NODE_UP,
        ),
        _stage(
            "node-down",
            "Node",
            'behaviour == "not-ready" and condition("Ready").status != "False"',
            templates.NODE_DOWN,
        ),
        heartbeat,
    ]


def pod_stages() -> list[JsonObject]:
    """The life of a pod, from its binding to its removal. At most one of these applies to a pod."""
    return [*_starting(), *_running(), *_stopping()]


def _starting() -> list[JsonObject]:
    fresh = "(deleting or over or admitted | not)"
    pending = '.status.phase == "Pending" and admitted and (deleting | not)'
    return [
        _stage("pod-start-at-once", "Pod", f"{fresh} and (staged | not)", templates.START_AT_ONCE),
        _stage("pod-admit", "Pod", f"{fresh} and staged", templates.ADMIT),
        _stage(
            "pod-init-next",
            "Pod",
            f"{pending} and initializing != null",
            templates.INIT_NEXT,
            delay='initializing as $now | seconds("init-seconds." + $now.name; '
            'seconds("init-seconds"; 0.5)) as $long | after($now.state.running.startedAt; $long)',
        ),
        _stage(
            "pod-start",
            "Pod",
            f'{pending} and holds("Initialized")',
            templates.START,
            delay='after(condition("Initialized").lastTransitionTime; seconds("start-seconds"; 0))',
        ),
    ]


def _running() -> list[JsonObject]:
    steady = "alive and (backing_off | not) and settled"
    fail_delay = 'after(first_start; seconds("fail-seconds"; 0.5))'
    return [
        _stage(
            "pod-readiness",
            "Pod",
            "alive and (backing_off | not) and (settled | not)",
            templates.READINESS,
        ),
        _stage(
            "pod-complete",
            "Pod",
            f"{steady} and ends",
            templates.COMPLETE,
            delay='after(first_start; seconds("run-seconds"; 0.5))',
        ),
        _stage(
            "pod-fail", "Pod", f'{steady} and behaviour == "fail"', templates.FAIL, delay=fail_delay
        ),
        _stage(
            "pod-crash",
            "Pod",
            f'{steady} and behaviour == "crash"',
            templates.CRASH,
            delay=fail_delay,
        ),
        _stage(
            "pod-restart",
            "Pod",
            "alive and backing_off",
            templates.RESTART,
            delay="([.status.containerStatuses[].restartCount, 10] | min) as $count | "
            '([seconds("backoff-seconds"; 2) * pow(2; $count), 300] | min) as $long | '
            "([.status.containerStatuses[].lastState.terminated.finishedAt // empty] | max) "
            "as $end | after($end; $long)",
        ),
    ]


def _stopping() -> list[JsonObject]:
    remove = _named(
        "pod-remove",
        {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            # A grace period of 0 means that only finalizers still hold the object.
            "selector": {
                "matchExpressions": [
                    _expression("deleting and over and .metadata.deletionGracePeriodSeconds != 0")
                ]
            },
            "steps": [{"delete": True}],
        },
    )
    return [
        _stage(
            "pod-stop",
            "Pod",
            "deleting and (over | not)",
            templates.STOP,
            delay="(.metadata.deletionGracePeriodSeconds // 0) as $grace | "
            'if annotation("ignore-sigterm") == "true" then $grace '
            'else [seconds("stop-seconds"; 0.5), $grace] | min end as $long | '
            "after(asked_to_stop; $long)",
        ),
        remove,
    ]


def stages() -> list[JsonObject]:
    """All stages the lab hands to KWOK."""
    return [*node_stages(), *pod_stages()]
