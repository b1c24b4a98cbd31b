"""The tree shows what a person asks first: does it run, and where."""

import io
from dataclasses import replace

from rich.console import Console

from api.jsons import Json
from api.podclique import PodCliqueSpec, PodCliqueStatus
from api.podcliqueset import PodCliqueSetStatus
from api.podgang import PodGangSpec, PodGangStatus
from api.streams import Meta, Pod
from controller.podgang import Gang
from controller.workloads.views import Clique
from penstock.tree import SetSeen, draw
from tests.support.clusters import node, pod
from tests.support.sets import clique, set_meta, set_spec

RACK = {"topology.kubernetes.io/zone": "z0", "topology.kubernetes.io/rack": "z0-b0-r1"}


def text(seen: SetSeen) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=200, color_system=None).print(draw(seen))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def running(name: str, index: int, at: str, **labels: Json) -> Pod:
    return pod(
        name,
        spec={"nodeName": at},
        status={"phase": "Running"},
        metadata={"labels": {"grove.io/podclique-pod-index": str(index), **labels}},
    )


def seen(
    pods: list[Pod], status: dict[str, Json], groups: dict[str, list[str]], asked: int = 3
) -> SetSeen:
    spec = {
        "podgroups": [
            {
                "name": name,
                "minReplicas": len(pods),
                "podReferences": [{"namespace": "default", "name": p} for p in pods],
            }
            for name, pods in groups.items()
        ]
    }
    gang = Gang(
        Meta(name="demo-0", namespace="default"),
        PodGangSpec.model_validate(spec),
        PodGangStatus.model_validate(status),
    )
    return SetSeen(
        set_meta(),
        set_spec(clique("a", asked)),
        PodCliqueSetStatus(available_replicas=1),
        [gang],
        {p.metadata.name: p for p in pods},
        {"n1": node("n1", labels=RACK), "n2": node("n2")},
    )


def condition(kind: str, status: str, reason: str, message: str = "") -> Json:
    return {
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip


INITIALIZED = condition("Initialized", "True", "PodGangPodsCreated")


def test_a_running_set_shows_node_and_rack_of_every_pod_in_order_of_rank() -> None:
    grouped = {
        "grove.io/podcliquescalinggroup": "demo-0-model",
        "grove.io/podcliquescalinggroup-replica-index": "0",
    }
    pods = [
        running("w-zz", 0, "n1", **grouped),
        running("w-aa", 1, "n2", **grouped),
        running("r-0", 0, "n1"),
    ]
    status: dict[str, Json] = {
        "phase": "Running",
        "placementScore": 0.5,
        "conditions": [INITIALIZED, condition("Scheduled", "True", "AllPodsBound")],
    }
    shown = seen(pods, status, {"demo-0-model-0-w": ["w-aa", "w-zz"], "demo-0-r": ["r-0"]})
    assert shown.running
    assert text(shown) == [
        "PodCliqueSet demo  1 of 1 replicas available",
        "└── gang demo-0  Running  nearness 0.50",
        "    ├── clique demo-0-r  1 of 1 running, needs 1",
        "    │   └── r-0  Running  n1  z0-b0-r1",
        "    └── group demo-0-model-0",
        "        └── clique demo-0-model-0-w  2 of 2 running, needs 2",
        "            ├── w-zz  Running  n1  z0-b0-r1",
        "            └── w-aa  Running  n2  no rack label",
    ]


def test_a_waiting_gang_says_why_and_its_pods_are_gated() -> None:
    gated: Json = [{"name": "penstock.dev/gang"}]
    pods = [pod("a-0", spec={"schedulingGates": gated}), pod("a-1")]
    reason = condition("Scheduled", "False", "InsufficientCapacity", "nvidia.com/gpu: 8 short")
    shown = seen(pods, {"conditions": [INITIALIZED, reason]}, {"demo-0-a": ["a-0", "a-1"]})
    assert not shown.running
    assert text(shown)[1:] == [
        "└── gang demo-0  Pending  InsufficientCapacity: nvidia.com/gpu: 8 short",
        "    └── clique demo-0-a  0 of 2 running, needs 2",
        "        ├── a-0  gated",
        "        └── a-1  not bound yet",
    ]


def test_a_pod_that_waits_for_others_names_them() -> None:
    blocked = condition("PodStartupBlocked", "True", "WaitingForParents", "waits for demo-0-b")
    gated: Json = [{"name": "penstock.dev/gang"}]
    waits = pod("a-0", spec={"schedulingGates": gated}, status={"conditions": [blocked]})
    over = condition("PodStartupBlocked", "False", "ParentsReady", "waited")
    gone_on = pod("a-1", status={"conditions": [over]})
    shown = seen([waits, gone_on], {}, {"demo-0-a": ["a-0", "a-1"]})
    assert text(shown)[-2:] == [
        "        ├── a-0  gated, waits for demo-0-b",
        "        └── a-1  not bound yet",
    ]


def test_a_set_runs_only_with_every_pod_it_asks_for() -> None:
    one = [running("a-0", 0, "n1")]
    assert seen(one, {}, {"demo-0-a": ["a-0"]}, asked=1).running
    assert not seen(one, {}, {"demo-0-a": ["a-0"]}, asked=2).running
    assert not seen(one, {}, {"demo-0-a": ["a-0", "a-1"]}, asked=2).running
    assert not seen([], {}, {}, asked=0).running


def test_a_set_is_reported_once_gangs_and_set_say_so() -> None:
    one = [running("a-0", 0, "n1")]
    assert not seen(one, {"phase": "Starting"}, {"demo-0-a": ["a-0"]}).reported
    assert seen(one, {"phase": "Running"}, {"demo-0-a": ["a-0"]}).reported


def test_a_clique_names_those_it_comes_after_until_they_are_up() -> None:
    def clique_of(name: str, *after: str) -> Clique:
        meta = Meta(name=name, namespace="default", uid=f"uid-{name}")
        spec = PodCliqueSpec(
            role_name=name, replicas=1, pod_spec={"containers": []}, starts_after=list(after)
        )
        return Clique(meta, spec, PodCliqueStatus())

    def one_of(name: str, *conditions: Json) -> Pod:
        owner: Json = {"kind": "PodClique", "name": name, "uid": f"uid-{name}", "controller": True}
        status: dict[str, Json] = {"conditions": list(conditions)}
        return pod(f"{name}-0", metadata={"ownerReferences": [owner]}, status=status)

    ready = condition("ContainersReady", "True", "x")
    cliques = {each.metadata.name: each for each in (clique_of("a"), clique_of("b", "a"))}
    first, second = one_of("a"), one_of("b")
    shown = seen([first, second], {}, {"a": ["a-0"], "b": ["b-0"]})
    waits = replace(shown, cliques=cliques)
    assert "    └── clique b  0 of 1 running, needs 1  waits for a, 0 of 1 up" in text(waits)
    up = {**waits.pods, "a-0": one_of("a", ready)}
    assert "    └── clique b  0 of 1 running, needs 1" in text(replace(waits, pods=up))


def test_a_scaled_gang_that_waits_names_its_base_and_wide_shows_whole_paths() -> None:
    shown = seen([running("a-0", 0, "n1")], {}, {"a": ["a-0"]})
    (gang,) = shown.gangs
    meta = Meta(
        name="demo-0-model-0", namespace="default", labels={"grove.io/base-podgang": "demo-0"}
    )
    scaled = replace(shown, gangs=[replace(gang, metadata=meta)])
    assert text(scaled)[1] == "└── gang demo-0-model-0  Pending  after demo-0"
    out = io.StringIO()
    Console(file=out, width=200, color_system=None).print(draw(shown, wide=True))
    assert "a-0  Running  n1  z0/z0-b0-r1" in out.getvalue()
