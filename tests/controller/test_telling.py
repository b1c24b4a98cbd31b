"""Events: once a pass and kind, on the object that people describe, and warnings in full."""

from dataclasses import replace

import msgspec

from api.jsons import JsonObject
from controller.voicing import Speaker, Tell, Voice
from controller.workloads.stepping import Create, Remove, Say, Step
from controller.workloads.story import telling, troubles
from controller.workloads.views import SetView, Trouble
from kube.resources import PODCLIQUES, PODCLIQUESETS, PODGANGS, PODS, ROLES, SCALING_GROUPS
from tests.support.manualclock import ManualClock
from tests.support.setviews import NOW, clique, made, set_spec, wanted, with_pods

VIEW = made(
    set_spec(
        clique("router", 2),
        clique("leader", 1),
        groups=[{"name": "engine", "cliqueNames": ["leader"], "replicas": 20, "minAvailable": 1}],
    )
)


def body(name: str, kind: str, owner: str) -> JsonObject:
    reference: JsonObject = {"kind": kind, "name": owner, "uid": f"uid-{owner}"}
    return {"metadata": {"name": name, "ownerReferences": [reference]}}


def told(view: SetView) -> list[Tell]:
    return [s for s in telling.steps(view, wanted(view), NOW) if isinstance(s, Tell)]


def shown(tells: list[Tell]) -> list[tuple[str, str, str]]:
    return [(tell.name, tell.reason, tell.note) for tell in tells]


def test_pods_are_told_of_on_their_clique_in_one_event() -> None:
    steps: list[Step] = [
        Create(PODS, body(f"p-{i}", "PodClique", "demo-0-router")) for i in range(3)
    ]
    (tell,) = telling.done(VIEW, steps)
    assert shown([tell]) == [("demo-0-router", "PodCreateSuccessful", "made 3 Pods: p-0, p-1, p-2")]
    assert (tell.resource, tell.uid, tell.warning) == (PODCLIQUES, "uid-demo-0-router", False)


def test_pods_of_many_cliques_are_told_of_on_their_set() -> None:
    steps: list[Step] = [Create(PODS, body(f"p-{i}", "PodClique", f"c-{i}")) for i in range(9)]
    assert shown(list(telling.done(VIEW, steps))) == [
        ("demo", "PodCreateSuccessful", "made 9 Pods")
    ]


def test_parts_are_told_of_on_their_owner() -> None:
    steps: list[Step] = [
        Create(PODCLIQUES, body("demo-0-router", "PodCliqueSet", "demo")),
        Create(
            PODCLIQUES, body("demo-0-engine-0-leader", "PodCliqueScalingGroup", "demo-0-engine")
        ),
        Create(SCALING_GROUPS, body("demo-0-engine", "PodCliqueSet", "demo")),
        Create(PODGANGS, body("demo-0", "PodCliqueSet", "demo")),
        Create(ROLES, body("role", "PodCliqueSet", "demo")),
    ]
    assert shown(list(telling.done(VIEW, steps))) == [
        ("demo", "PodCliqueCreateSuccessful", "made PodClique demo-0-router"),
        ("demo-0-engine", "PodCliqueCreateSuccessful", "made PodClique demo-0-engine-0-leader"),
        (
            "demo",
            "PodCliqueScalingGroupCreateSuccessful",
            "made PodCliqueScalingGroup demo-0-engine",
        ),
        ("demo", "PodGangCreateOrUpdateSuccessful", "made PodGang demo-0"),
    ]


def test_what_is_removed_is_told_of_where_it_was() -> None:
    pod = VIEW.pods["demo-0-router"][0].metadata
    steps: list[Step] = [
        Remove(PODS, pod.name, pod.uid),
        Remove(PODGANGS, "demo-0-engine-3", "uid-demo-0-engine-3"),
        Say(PODCLIQUESETS, "demo", "set-uid", {}),
    ]
    assert shown(list(telling.done(VIEW, steps))) == [
        ("demo-0-router", "PodDeleteSuccessful", f"removed Pod {pod.name}"),
        ("demo", "PodGangDeleteSuccessful", "removed PodGang demo-0-engine-3"),
    ]


def test_of_a_set_that_goes_nothing_is_told() -> None:
    meta = msgspec.structs.replace(VIEW.metadata, deletion_timestamp=NOW)
    steps: list[Step] = [Remove(PODGANGS, "demo-0", "uid-demo-0")]
    assert list(telling.done(VIEW, steps))
    assert list(telling.done(replace(VIEW, metadata=meta), steps)) == []


def test_a_set_without_news_has_no_events() -> None:
    assert told(VIEW) == []


def test_a_refusal_is_a_warning_in_the_api_servers_words() -> None:
    pod = VIEW.pods["demo-0-router"][1].metadata.name
    refused = [
        troubles.trouble(Create(PODS, {"metadata": {"name": pod}}), "exceeded quota: q"),
        troubles.trouble(Remove(PODCLIQUES, "demo-1-router", "u"), "denied"),
        troubles.trouble(Create(ROLES, {"metadata": {"name": "r"}}), "forbidden"),
        Trouble("ERR_SOMETHING_ELSE", "why", "x"),
    ]
    tells = told(replace(VIEW, troubles=tuple(refused)))
    assert all(tell.warning for tell in tells)
    assert shown(tells) == [
        ("demo-0-router", "PodCreateFailed", f"{pod}: exceeded quota: q"),
        ("demo", "PodCliqueDeleteFailed", "demo-1-router: denied"),
        ("demo", "RoleCreateOrUpdateFailed", "r: forbidden"),
        ("demo", "ReconcileFailed", "x: why"),
    ]
    assert [trouble.code for trouble in refused[:3]] == [
        "ERR_CREATE_POD", "ERR_DELETE_PODCLIQUE", "ERR_CREATE_ROLE",
    ]  # fmt: skip


def over_quota(pod: str, used: int) -> Trouble:
    said = (
        f'pods "{pod}" is forbidden: exceeded quota: q, requested: pods=1, used: pods={used},'
        " limited: pods=5"
    )
    return troubles.trouble(Create(PODS, {"metadata": {"name": pod}}), said, over_quota=True)


def test_many_refusals_of_one_kind_are_one_event_of_their_clique() -> None:
    refused = tuple(over_quota(f"demo-0-router-{n:05}", used=5) for n in range(500))
    (tell,) = told(replace(VIEW, troubles=refused))
    assert (tell.name, tell.reason) == ("demo-0-router", "PodCreateFailed")
    assert tell.note == f"500 Pods: {refused[0].description}"
    (few,) = told(replace(VIEW, troubles=refused[:2]))
    names = "demo-0-router-00000, demo-0-router-00001"
    assert few.note.startswith(f'2 Pods: {names}: pods "demo-0-router-00000" is forbidden')


def test_a_refusal_is_no_other_for_its_counters_its_pod_or_their_number() -> None:
    voice = Voice(_unwritten, ManualClock(), Speaker("workloads", "one"))
    (first,) = told(replace(VIEW, troubles=(over_quota("demo-0-router-aaaaa", used=5),)))
    voice.tell(first, "default")
    others = tuple(over_quota(f"demo-0-router-{n:05}", used=n) for n in range(3))
    (later,) = told(replace(VIEW, troubles=others))
    assert later.note != first.note
    assert voice.has_told(later)
    other = troubles.trouble(Create(PODS, {"metadata": {"name": "demo-0-router-aaaaa"}}), "denied")
    (denied,) = told(replace(VIEW, troubles=(other,)))
    assert not voice.has_told(denied)


def test_refusals_in_many_cliques_are_told_on_their_set() -> None:
    names = [name for name in VIEW.cliques if name != "demo-0-router"]
    refused = tuple(over_quota(f"{name}-aaaaa", used=5) for name in names)
    (tell,) = told(replace(VIEW, troubles=refused))
    assert (tell.name, tell.reason) == ("demo", "PodCreateFailed")
    assert tell.note.startswith(f"{len(names)} Pods: ")


async def _unwritten(_body: JsonObject, _namespace: str) -> None:
    raise AssertionError("nobody writes here")


def test_a_clique_that_loses_its_last_pod_with_a_node_says_so() -> None:
    there = VIEW.cliques["demo-0-router"]
    status = there.status.model_copy(update={"scheduled_replicas": 2})
    known = replace(VIEW, cliques={**VIEW.cliques, "demo-0-router": replace(there, status=status)})
    assert told(with_pods(known, "demo-0-router", "bound", "leaving ready")) == []
    (tell,) = told(with_pods(known, "demo-0-router", "gated", "leaving ready"))
    assert (tell.name, tell.reason, tell.warning) == ("demo-0-router", telling.LOST_ALL, True)


def test_a_group_that_loses_all_copies_says_so() -> None:
    group = VIEW.groups["demo-0-engine"]
    status = group.status.model_copy(update={"scheduled_replicas": 1})
    owner = msgspec.convert(
        {"kind": "PodCliqueScalingGroup", "uid": group.metadata.uid, "controller": True},
        type(group.metadata.owner_references[0]),
    )
    cliques = {
        name: replace(c, metadata=msgspec.structs.replace(c.metadata, owner_references=(owner,)))
        for name, c in VIEW.cliques.items()
        if "engine" in name
    }
    known = replace(
        VIEW,
        cliques={**VIEW.cliques, **cliques},
        groups={"demo-0-engine": replace(group, status=status)},
    )
    assert told(known) == []
    empty = replace(known, pods={"demo-0-router": VIEW.pods["demo-0-router"]})
    assert [(t.name, t.reason) for t in told(empty)] == [("demo-0-engine", telling.LOST_ALL)]


def test_a_note_is_cut_to_what_an_event_may_hold() -> None:
    long = Trouble("ERR_CREATE_POD", "x" * 5000, "demo-0-router-abcde")
    (tell,) = told(replace(VIEW, troubles=(long,)))
    assert len(tell.note) <= 1024
