"""Queues and what is in them; room that people keep, and for whom."""

from dataclasses import replace

import pytest

from api.jsons import Json, JsonObject
from penstock.ending import AskedWronglyError
from penstock.plugin import keeping, queueing
from penstock.plugin.reports import Report
from penstock.plugin.scenes import Scene
from policies.policy import Policy
from tests.support.scenes import Stage, custom, gang, shown

QUEUE = "penstock.dev/queue"
POLICY = Policy.model_validate(
    {
        "queues": [
            {"name": "serving", "namespaces": ["default"], "default": True},
            {
                "name": "research",
                "namespaces": ["*"],
                "limits": {"gpusPerGang": 64, "podsPerGang": {"max": 8}},
                "topology": {"required": "rack"},
            },
        ]
    }
)


async def scene(*gangs: Stage) -> Scene:
    return replace(await Stage().beside(*gangs).scene(), policy=POLICY)


def told(report: Report, what: str) -> dict[str, JsonObject]:
    listed: Json = report.data[what]
    assert isinstance(listed, list)
    return {str(each["name"]): each for each in listed if isinstance(each, dict)}


async def test_each_gang_stands_in_the_queue_it_names_or_in_its_namespaces_default() -> None:
    found = await scene(
        gang("chat", 2, 8, at=["n-0-0-0-0", "n-0-0-0-1"]),
        gang("wide", 9, 8, labels={QUEUE: "research"}),
        gang("lost", 1, 8, labels={QUEUE: "gone"}),
    )
    report = await queueing.report(found, "default")
    queues = told(report, "queues")
    assert {name: each["gangs"] for name, each in queues.items()} == {
        "serving": 1, "research": 1, "gone": 1,
    }  # fmt: skip
    assert queues["serving"]["devices"] == {"nvidia.com/gpu": 16}
    assert queues["serving"]["podsOnNodes"] == 2
    text = shown(report)
    assert "serving (default)" in text
    assert "at most 64 GPUs a gang; at most 8 pods a gang; rack required from 2 pods on" in text
    assert "gone not in the policy" in text


async def test_one_queue_is_shown_with_who_waits_in_it_and_why() -> None:
    found = await scene(gang("wide", 9, 8, labels={QUEUE: "research"}))
    text = shown(await queueing.report(found, "default", name="research"))
    assert "serving" not in text
    assert "NeverFits" in text
    assert "no room for all 9 pods of the minimum" in text
    with pytest.raises(AskedWronglyError, match="there is no queue reserch; there is research"):
        await queueing.report(found, "default", name="reserch")


async def test_gangs_in_no_queue_are_no_queue_that_one_could_mean() -> None:
    found = await Stage().beside(gang("wide", 9, 8)).scene()
    assert queueing.NONE in shown(await queueing.report(found, "default"))
    with pytest.raises(AskedWronglyError, match="there is no queue nope: the policy has none"):
        await queueing.report(found, "default", name="nope")


async def test_without_a_policy_and_gangs_there_are_no_queues() -> None:
    assert "no queues" in shown(await queueing.report(await Stage().scene(), "default"))


def keep(name: str, namespace: str = "default") -> JsonObject:
    return {
        "metadata": {
            "name": name, "namespace": namespace, "uid": f"uid-{name}",
            "creationTimestamp": "2026-01-02T03:00:00Z",
        },
        "spec": {
            "owners": [
                {"object": {"kind": "PodCliqueSet", "name": "chat"}},
                {"labelSelector": {"matchLabels": {"team": "a"}}},
            ],
            "replicas": 2, "requests": {"nvidia.com/gpu": "8"}, "ttl": "2h",
        },
        "status": {
            "state": "Available", "requests": {"nvidia.com/gpu": "8", "pods": "1"},
            "slots": [{"index": 0, "node": "n-0-0-0-0"}, {"index": 1, "node": "n-0-0-0-1"}],
            "kept": {"nvidia.com/gpu": "16", "pods": "2"},
        },
    }  # fmt: skip


async def test_what_people_keep_is_shown_with_how_much_for_whom_and_how_long() -> None:
    stage = Stage(reservations=[custom(keep("tonight")), custom(keep("other", "team-b"))])
    found = await stage.beside(gang("chat", 1, 8, at=["n-0-1-0-0"])).scene()
    report = await keeping.report(found, "default")
    assert told(report, "kept").keys() == {"tonight", "other"}
    text = shown(report, width=250)
    assert "PodCliqueSet chat; team=a" in text
    assert "16 nvidia.com/gpu" in text
    assert "115m" in text
    assert "chat-a" not in text
    here = await keeping.report(found, "team-b", everywhere=False)
    assert told(here, "kept").keys() == {"other"}


async def test_the_ledger_is_shown_when_it_is_asked_for() -> None:
    found = await Stage().beside(gang("chat", 1, 8, at=["n-0-1-0-0"])).scene()
    report = await keeping.report(found, "default", ledger=True)
    text = shown(report, wide=True)
    assert "nobody keeps room" in text
    assert "default/chat   Bound" in text
    assert "n-0-1-0-0" in text
