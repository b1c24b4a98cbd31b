"""What the dashboard shows is what is known of the cluster, and what the plugin says of it."""

from dataclasses import replace

import msgspec

from api.jsons import Json, JsonObject
from penstock.dashboard import timeline
from penstock.dashboard.drawing import Around, Asked, Board
from penstock.dashboard.timeline import Detail
from penstock.dashboard.view import Cell, Part, View
from penstock.plugin import judging, queueing, topology
from penstock.plugin.scenes import Scene
from policies.policy import Policy
from tests.support.clusters import node, pod, racks
from tests.support.scenes import GPU, Stage, gang

POLICY = Policy.model_validate(
    {"queues": [{"name": "serving", "namespaces": ["default"], "default": True}]}
)
PATH = ("z0", "z0-b0", "z0-b0-r0")


def drawn(scene: Scene, asked: Asked = Asked(), around: Around = Around(POLICY)) -> View:  # noqa: B008
    board = Board(asked)
    return board.draw(scene.world, around)


async def test_gpus_are_shown_by_the_gang_that_has_them() -> None:
    stage = Stage().beside(gang("one", 2, 4, at=["n-0-0-0-0", "n-0-0-0-0"]), gang("two", 1, 2))
    stranger = pod("solo", {GPU: "1"}, spec={"nodeName": "n-0-0-0-1"}, status={"phase": "Running"})
    found = drawn(await replace(stage, pods=(*stage.pods, stranger)).scene())
    assert found.head.levels == ("zone", "block", "rack")
    assert found.head.resource == GPU
    assert found.nodes["n-0-0-0-0"] == Cell(PATH, 8, 8, "", (Part("default/one", 8),))
    assert found.nodes["n-0-0-0-1"] == Cell(PATH, 8, 1, "", (Part("", 1),))
    assert found.nodes["n-0-0-1-0"].parts == ()


async def test_room_that_is_only_kept_is_told_apart() -> None:
    whole = gang("one", 2, 4, at=["n-0-0-0-0", "n-0-0-0-0"])
    coming = [gang("one", 2, 4).pods[0], whole.pods[1]]
    found = drawn(await replace(Stage().beside(whole), pods=coming).scene())
    assert found.nodes["n-0-0-0-0"].parts == (Part("default/one", 8, 4),)
    assert found.gangs["default/one"].bound == 1


async def test_the_map_agrees_with_what_topology_says() -> None:
    nodes = [*racks(1, 2, 2, 2), node("spare", {GPU: "8"}, ready=False)]
    stage = Stage(nodes).beside(gang("busy", 3, 4, at=["n-0-0-0-0", "n-0-0-0-0", "n-0-1-1-1"]))
    scene = await stage.scene()
    told = (await topology.report(scene, "default")).data["nodes"]
    found = drawn(scene).nodes
    assert _rows(told) == {
        name: (cell.has, cell.used, cell.state or "open", [part.gang for part in cell.parts])
        for name, cell in found.items()
    }
    assert next(iter(found)) == "spare", "in the order of the topology: no label sorts first"


async def test_a_gang_that_waits_is_shown_with_the_sentence_of_its_condition() -> None:
    said: JsonObject = {
        "type": "Scheduled", "status": "False", "reason": "InsufficientCapacity",
        "message": "no room", "lastTransitionTime": "2026-01-02T03:00:05Z",
    }  # fmt: skip
    status = msgspec.Raw(msgspec.json.encode({"phase": "Pending", "conditions": [said]}))
    waiting = gang("wide", 5, 8)
    told = msgspec.structs.replace(waiting.gangs[0], status=status)
    row = drawn(await replace(Stage().beside(waiting), gangs=[told]).scene()).gangs["default/wide"]
    assert (row.scheduled, row.reason, row.message) == (False, "InsufficientCapacity", "no room")
    assert (row.since, row.pods, row.bound) == ("2026-01-02T03:00:05Z", 5, 0)
    assert row.queue == "serving"


async def test_a_gang_of_which_nothing_was_said_yet_waits() -> None:
    row = drawn(await Stage().beside(gang("new", 2, 8)).scene()).gangs["default/new"]
    assert (row.scheduled, row.reason) == (False, "")
    assert row.message == "gangs has said nothing of it yet"


async def test_queues_are_counted_as_the_plugin_counts_them() -> None:
    stage = Stage().beside(gang("one", 2, 4, at=["n-0-0-0-0", "n-0-0-0-1"]), gang("two", 1, 2))
    scene = replace(await stage.scene(), policy=POLICY)
    lines = queueing.queued(scene, judging.look(scene).values())
    found = drawn(scene).queues
    assert {name: (len(line.gangs), line.pods, line.devices) for name, line in lines.items()} == {
        name: (row.gangs, row.pods, row.devices) for name, row in found.items()
    }
    row = found["serving"]
    assert (row.known, row.default, row.namespaces) == (True, True, ("default",))


async def test_a_gang_is_looked_at_anew_only_when_something_has_changed_for_it() -> None:
    scene = await Stage().beside(gang("one", 1, 4), gang("two", 1, 2)).scene()
    board = Board(Asked())
    first = board.draw(scene.world, Around(POLICY))
    board.touch(("default", "two"))
    second = board.draw(scene.world, Around(POLICY))
    assert second.gangs["default/one"] is first.gangs["default/one"]
    assert second.gangs["default/two"].stamp > first.gangs["default/two"].stamp


async def test_another_policy_moves_gangs_to_other_queues() -> None:
    scene = await Stage().beside(gang("one", 1, 4)).scene()
    board = Board(Asked())
    assert "serving" in board.draw(scene.world, Around(POLICY)).queues
    assert board.draw(scene.world, Around()).gangs["default/one"].queue == ""


async def test_a_cluster_with_nothing_in_it_is_drawn() -> None:
    found = drawn(await Stage([]).scene())
    assert (found.nodes, found.gangs, found.head.resource) == ({}, {}, "")
    assert drawn(await Stage().scene(), Asked("gone", "gone/device")).head.resource == "gone/device"


async def test_the_way_of_a_gang_is_told_in_the_order_of_its_times() -> None:
    scene = await Stage().beside(gang("one", 2, 4, at=["n-0-0-0-0", "n-0-0-0-1"])).scene()
    found = _detail(scene, "one")
    whats = [mark.what for mark in found.marks]
    assert whats[:2] == [timeline.PODS, timeline.MADE], "as the times in the objects have it"
    assert [mark.at for mark in found.marks] == sorted(mark.at for mark in found.marks)
    assert [(each.name, each.node, each.state) for each in found.pods] == [
        ("one-a-0", "n-0-0-0-0", "bound"), ("one-a-1", "n-0-0-0-1", "bound"),
    ]  # fmt: skip
    assert (found.domain, found.cliques[0].bound) == ("z0/z0-b0", 2)


def _detail(scene: Scene, name: str) -> Detail:
    view = scene.world.view(("default", name))
    assert view is not None
    return timeline.detail(view, drawn(scene).gangs[f"default/{name}"], None, ())


def _rows(told: Json) -> dict[str, object]:
    assert isinstance(told, list)
    return {
        str(each["name"]): (each["capacity"], each["used"], each["state"], each["gangs"])
        for each in told
        if isinstance(each, dict)
    }
