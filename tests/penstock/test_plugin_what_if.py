"""What would become of gangs if the cluster were another; it stays as it is."""

import jsonpatch
import msgspec
import pytest

from api import exits
from api.jsons import Json, JsonObject
from api.streams import Pod
from controller.gangs import pinning
from penstock.ending import AskedWronglyError
from penstock.plugin import judging, planning, supposing
from penstock.plugin.asking import Nodes
from penstock.plugin.reports import Report
from tests.support.clusters import node, pod, racks
from tests.support.gangscene import encoded
from tests.support.scenes import GPU, Stage, gang, shown
from tests.support.sets import NOW, member

BLOCK = "topology.kubernetes.io/block"
FIRST = ["n-0-0-0-0", "n-0-0-0-1"]
BLOCK0 = [*FIRST, "n-0-0-1-0", "n-0-0-1-1"]


def told(report: Report, what: str) -> dict[str, JsonObject]:
    listed: Json = report.data[what]
    assert isinstance(listed, list)
    return {str(each["name"]): each for each in listed if isinstance(each, dict)}


async def drained(stage: Stage, *nodes: str) -> Report:
    return await supposing.report(await stage.scene(), "default", drain=nodes)


async def test_pods_of_a_drained_node_move_to_where_their_gang_would_have_them() -> None:
    stage = Stage().beside(gang("chat", 2, 8, at=FIRST, level=BLOCK))
    report = await drained(stage, "n-0-0-0-0")
    assert report.code == exits.OK
    (pods,) = [told(report, "moves")["chat"]["pods"]]
    assert isinstance(pods, list)
    (way,) = pods
    assert isinstance(way, dict)
    assert way["from"] == "n-0-0-0-0"
    assert str(way["to"]) in BLOCK0[2:], "it stays in the block with the other one"
    assert "moves   default/chat   1 pod: chat-a-0 n-0-0-0-0 → " in shown(report)


async def test_a_gang_whose_pods_find_no_room_starves_and_the_command_says_so() -> None:
    full = [f"n-0-{block}-{rack}-{n}" for block in (0, 1) for rack in (0, 1) for n in (0, 1)]
    stage = Stage().beside(gang("all", 8, 8, at=full))
    report = await drained(stage, "n-0-0-0-0")
    assert report.code == planning.WAITS
    assert "no room for all 1 pod of the minimum" in str(told(report, "starves")["all"]["message"])
    assert "starves   default/all" in shown(report)


async def test_pods_beyond_the_minimum_only_make_a_gang_smaller() -> None:
    full = [f"n-0-{block}-{rack}-{n}" for block in (0, 1) for rack in (0, 1) for n in (0, 1)]
    stage = Stage().beside(gang("all", 8, 8, at=full, minimum=7))
    report = await drained(stage, "n-0-0-0-0")
    assert report.code == exits.OK
    assert told(report, "shrinks")["all"]["pods"] == 1


async def test_pods_of_no_gang_and_of_daemonsets_are_told_apart() -> None:
    owner: Json = {"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
    here: JsonObject = {"nodeName": "n-0-0-0-0"}
    daemon = pod("daemon", {"cpu": "1"}, spec=here, metadata={"ownerReferences": [owner]})
    stage = Stage(pods=[pod("web", {"cpu": "1"}, spec=here), daemon])
    report = await drained(stage, "n-0-0-0-0")
    assert report.data["podsOfNoGang"] == 1
    assert "no gang would move, starve or get in" in shown(report)


async def test_who_waits_gets_in_when_there_are_more_nodes() -> None:
    stage = Stage().beside(gang("wide", 9, 8))
    report = await supposing.report(await stage.scene(), "default", add=Nodes("n-0-0-0-0", 1, {}))
    assert told(report, "enters").keys() == {"wide"}
    few = await supposing.report(
        await Stage(racks(1, 1, 1, 2)).beside(gang("wide", 9, 8)).scene(), "default",
        add=Nodes("n-0-0-0-0", 1, {}),
    )  # fmt: skip
    assert told(few, "waits").keys() == {"wide"}


async def test_who_waits_gets_in_when_another_goes() -> None:
    stage = Stage().beside(gang("chat", 4, 8, at=BLOCK0), gang("wide", 8, 8))
    scene = await stage.scene()
    report = await supposing.report(scene, "default", delete="chat")
    assert told(report, "enters").keys() == {"wide"}
    assert told(report, "gone").keys() == {"chat"}
    again = judging.look(scene)
    assert again["default", "wide"].refusal is not None, "nothing was changed"


async def test_names_that_are_not_there_are_answered_with_those_like_them() -> None:
    scene = await Stage([node("node-7"), node("other")]).beside(gang("chat", 1, 1)).scene()
    with pytest.raises(AskedWronglyError, match="no node node-8 to drain; did you mean node-7"):
        await supposing.report(scene, "default", drain=("node-8",))
    with pytest.raises(AskedWronglyError, match="no node node-8 to be like"):
        await supposing.report(scene, "default", add=Nodes("node-8", 1, {}))
    with pytest.raises(AskedWronglyError, match=r"no gang or set chatt .* did you mean chat"):
        await supposing.report(scene, "default", delete="chatt")


def test_whoever_comes_in_place_of_a_pod_is_gated_and_free_of_its_pin() -> None:
    gated = member("a", 0)
    raw: JsonObject = msgspec.json.decode(encoded(gated, 1))
    lifted = msgspec.convert(jsonpatch.apply_patch(raw, pinning.lift(gated, "n1")), Pod)
    bound = msgspec.structs.replace(
        lifted, spec=msgspec.structs.replace(lifted.spec, node_name="n1")
    )
    anew = supposing.made_anew(bound, NOW)
    assert anew.gates == gated.gates
    assert anew.spec.node_name == ""
    nodes = anew.spec.affinity.node_affinity if anew.spec.affinity else None
    assert nodes is None or nodes.required is None
    assert anew.metadata.name == bound.metadata.name
    assert GPU in str(anew.spec.containers)
