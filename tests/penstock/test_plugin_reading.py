"""A cluster that is read once is looked at as `gangs` would look at it."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
import pytest
from typing_extensions import override

from api import exits
from api.jsons import Json
from kube.client import Listing, Scope
from kube.errors import Forbidden
from kube.objects import KubeObject
from kube.resources import NODES, PODGANGS, PODS, RESERVATIONS, Resource
from penstock.ending import AskedWronglyError
from penstock.plugin import explaining, judging, reports, status, topology
from penstock.plugin.scenes import NEEDED, Kept, scene
from tests.support.clusters import node, racks
from tests.support.manualclock import LeapingClock
from tests.support.scenes import GPU, Stage, custom, gang, shown
from tests.support.sets import NOW, OWNER

D = TypeVar("D")
RACK = "topology.kubernetes.io/rack"
BLOCK0 = [f"n-0-0-{rack}-{n}" for rack in (0, 1) for n in (0, 1)]


class Closed(Kept):
    """A cluster that lets nobody list pods and reservations."""

    @override
    async def list_with(
        self, resource: Resource, decode: Callable[[msgspec.Raw], D], scope: Scope
    ) -> Listing[D]:
        if resource in (PODS, RESERVATIONS):
            raise Forbidden(403, "Forbidden", "no")
        return await super().list_with(resource, decode, scope)


async def test_who_lacks_rights_is_told_all_of_them_and_where_to_get_them() -> None:
    with pytest.raises(AskedWronglyError) as failed:
        await scene(Closed(LeapingClock(), {NODES: [], PODGANGS: []}), NOW)
    said = str(failed.value)
    assert "may not list pods, reservations.penstock.dev" in said
    assert "--clusterrole=penstock-viewer" in said
    assert failed.value.code == exits.BAD_CREDENTIALS


async def test_a_cluster_without_penstock_is_told_apart_from_an_empty_one() -> None:
    with pytest.raises(AskedWronglyError, match="Penstock is not installed there") as failed:
        await scene(Kept(LeapingClock(), {NODES: [], PODS: []}), NOW)
    assert failed.value.code == exits.MISSING_KIND
    kinds: dict[Resource, Sequence[KubeObject]] = dict.fromkeys(NEEDED, ())
    assert (await scene(Kept(LeapingClock(), kinds), NOW)).contents().keys() == kinds.keys()


async def test_a_gang_that_waits_is_refused_in_the_words_of_its_condition() -> None:
    found = judging.look(await Stage().beside(gang("wide", 5, 8, level=RACK)).scene())
    said = found["default", "wide"].said(NOW)
    assert (said.scheduled, said.reason) == (False, "NeverFits")
    assert said.message.startswith("even with every node empty, no rack has room for all 5 pods")


async def test_a_gang_with_room_is_said_to_be_placed_now() -> None:
    found = judging.look(await Stage().beside(gang("small", 2, 8, level=RACK)).scene())
    standing = found["default", "small"]
    assert standing.placement is not None
    assert "it is placed now" in standing.said(NOW).message


async def test_of_several_that_wait_the_first_takes_room_from_the_next() -> None:
    stage = Stage(racks(1, 1, 1, 2)).beside(gang("a", 2, 8), gang("b", 2, 8))
    found = judging.look(await stage.scene())
    assert found["default", "a"].placement is not None
    refusal = found["default", "b"].refusal
    assert refusal is not None
    assert not refusal.never


async def test_a_gang_whose_pods_are_to_come_is_judged_by_their_templates() -> None:
    found = judging.look(await Stage().beside(gang("coming", 3, 8, made=False)).scene())
    standing = found["default", "coming"]
    assert standing.early
    assert standing.placement is not None


async def test_explain_shows_the_nearest_miss_and_what_would_help() -> None:
    busy = gang("busy", 3, 8, at=["n-0-0-0-0", "n-0-0-0-1", "n-0-1-0-0"])
    waits = gang("waits", 4, 8, level="topology.kubernetes.io/block")
    scene_ = await Stage().beside(busy, waits).scene()
    report = await explaining.report(scene_, "default", gang="waits")
    text = shown(report)
    assert text.startswith("gang default/waits  Pending, waits for ")
    assert "InsufficientCapacity: no block has room for all 4 pods of the minimum" in text
    assert "any one of these would do:" in text
    assert report.data["reason"] == "InsufficientCapacity"
    refusal: Json = report.data["refusal"]
    assert isinstance(refusal, dict)
    assert refusal["message"] == report.data["message"]
    assert refusal["remedies"]


async def test_explain_shows_where_a_gang_is_that_does_not_wait() -> None:
    scene_ = await Stage().beside(gang("busy", 4, 8, at=BLOCK0)).scene()
    report = await explaining.report(scene_, "default", gang="default/busy")
    assert report.data["scheduled"] is True
    assert "4 nodes" in shown(report)
    assert "n-0-0-1-1" in shown(report, wide=True)


async def test_a_sets_name_stands_for_its_gangs_and_tells_at_length_of_those_that_wait() -> None:
    chat = custom(
        {
            "metadata": {
                "name": "chat", "namespace": "default", "uid": OWNER.uid,
                "creationTimestamp": "2026-01-02T03:00:00Z",
            }
        }
    )  # fmt: skip
    stage = Stage(sets=[chat]).beside(
        gang("chat-0", 4, 8, at=BLOCK0), gang("chat-0-more-0", 5, 8, level=RACK)
    )
    report = await explaining.report(await stage.scene(), "default", gang="chat")
    text = shown(report)
    assert text.startswith("set default/chat  2 gangs, of which 1 waits\ngang default/chat-0  Run")
    assert "any one of these would do:" in text.partition("gang default/chat-0-more-0")[2]
    assert "CLIQUE" not in text.partition("gang default/chat-0-more-0")[0]
    assert "n-0-0-1-1" in shown(report, wide=True).partition("gang default/chat-0-more-0")[0]
    alone = [
        (await explaining.report(await stage.scene(), "default", gang=name)).data
        for name in ("chat-0", "chat-0-more-0")
    ]
    assert report.data == {"set": {"namespace": "default", "name": "chat"}, "gangs": alone}


async def test_of_a_gang_and_a_set_of_one_name_the_gang_is_meant() -> None:
    named = custom({"metadata": {"name": "chat", "namespace": "default", "uid": "other"}})
    stage = Stage(sets=[named]).beside(gang("chat", 1, 1))
    report = await explaining.report(await stage.scene(), "default", gang="chat")
    assert report.data["gang"] == {"namespace": "default", "name": "chat"}
    alone = await explaining.report(await Stage(sets=[named]).scene(), "default", gang="chat")
    assert alone.data["gangs"] == []
    assert "no gang has been made for it yet" in shown(alone)


async def test_a_gang_that_is_not_there_is_answered_with_those_like_it() -> None:
    scene_ = await Stage().beside(gang("chat-0", 1, 1), gang("search-0", 1, 1)).scene()
    with pytest.raises(AskedWronglyError, match="did you mean chat-0") as failed:
        await explaining.report(scene_, "default", gang="chat-1")
    assert failed.value.code == judging.NOT_FOUND
    with pytest.raises(AskedWronglyError, match="did you mean default/chat-0"):
        await explaining.report(scene_, "team-a", gang="chat-0")
    with pytest.raises(AskedWronglyError, match="none like it"):  # but for their namespace
        await explaining.report(scene_, "default", gang="nope")


async def test_status_counts_nodes_devices_and_gangs_and_lists_who_waits() -> None:
    stage = Stage([*Stage().nodes, node("out", spec={"unschedulable": True})])
    stage = stage.beside(gang("busy", 4, 8, at=BLOCK0), gang("waits", 9, 8))
    report = await status.report(await stage.scene(), "default")
    text = shown(report)
    assert "nodes  9 (1 cordoned)" in text
    assert f"{GPU}: 32 of 64 used, 32 free" in text
    assert "gangs  1 Pending, 1 Running" in text
    assert "default/waits" in text
    assert "default/busy" not in text
    alone = await status.report(await stage.scene(), "other", everywhere=False)
    assert alone.data["waiting"] == []
    assert "no gang waits" in shown(alone)


async def test_topology_draws_each_node_in_its_rack() -> None:
    nodes = [*racks(1, 2, 2, 2), node("spare", {GPU: "8"}, ready=False)]
    at = ["n-0-0-0-0", "n-0-0-0-0", "n-0-0-1-1"]
    scene_ = await Stage(nodes).beside(gang("busy", 3, 4, at=at)).scene()
    report = await topology.report(scene_, "default")
    text = shown(report)
    assert f"{GPU}: 12 of 64 used, 52 free on 8 nodes; 1 more are cordoned or not ready" in text
    lines = {line.split()[1]: line.split()[2:] for line in text.splitlines() if "rack z" in line}
    assert lines["z0-b0-r0"] == ["█·", "8/16", "8"]
    assert lines["z0-b0-r1"] == ["·▄", "4/16", "12"]
    assert lines["z0-b1-r0"] == ["··", "0/16", "16"]
    assert "×" in next(line for line in text.splitlines() if "rack (no label)" in line)
    wide = shown(report, wide=True)
    assert "default/busy" in next(line for line in wide.splitlines() if "n-0-0-1-1" in line)
    nodes_told: Json = report.data["nodes"]
    assert isinstance(nodes_told, list)
    assert {"name": "spare", "capacity": 8, "used": 0, "state": "not ready", "gangs": []} in (
        nodes_told
    )


async def test_topology_names_what_there_is_when_asked_for_what_is_not() -> None:
    scene_ = await Stage().scene()
    with pytest.raises(AskedWronglyError, match=r"no node has amd\.com/gpu; there is cpu, memory"):
        await topology.report(scene_, "default", resource="amd.com/gpu")
    with pytest.raises(AskedWronglyError, match="there is no topology east"):
        await topology.report(scene_, "default", name="east")


async def test_names_of_gangs_stay_whole_however_narrow_it_is() -> None:
    name = "a-gang-with-quite-a-long-name"
    report = await status.report(await Stage().beside(gang(name, 5, 8, level=RACK)).scene(), "")
    assert f"default/{name}" in shown(report, width=80)


async def test_lines_are_as_long_as_they_are_where_no_terminal_shows_them() -> None:
    assert reports.width({}, shown=True) is None
    assert reports.width({"COLUMNS": "80"}, shown=False) is None
    found = await Stage().beside(gang("wide", 5, 8, level=RACK)).scene()
    text = shown(await status.report(found, ""), width=reports.width({}, shown=False) or 0)
    line = next(line for line in text.splitlines() if "default/wide" in line)
    assert "no rack has room for all 5 pods of the minimum" in line


async def test_topology_counts_processors_in_one_unit() -> None:
    odd = node("odd", {"cpu": "95500m"})
    report = await topology.report(await Stage([odd]).scene(), "default", resource="cpu")
    assert "cpu: 0 of 95.5 used, 95.5 free on 1 node" in shown(report)
