"""The dashboard put together, over a cluster in memory: read once, then followed by watches."""

from collections.abc import AsyncIterator
from datetime import datetime

import aiohttp
import msgspec
import orjson
import pytest

from api import exits
from api.jsons import JsonObject
from api.streams import Meta
from kube.clock import SystemClock
from kube.resources import EVENTS, NODES, PODGANGS
from penstock.dashboard import happenings, timeline
from penstock.dashboard.choices import Choices
from penstock.dashboard.following import is_cut_off
from penstock.dashboard.happenings import Happening
from penstock.dashboard.running import Served, Sources, served
from penstock.dashboard.view import GangRow
from penstock.ending import AskedWronglyError
from tests.penstock.test_dashboard_serving import Watcher
from tests.support import pretendcluster
from tests.support.dashboards import NoLog, built_in
from tests.support.pretendcluster import KINDS, PretendCluster
from tests.support.scenes import Stage, gang

SAID = "2026-01-02T03:00:07.250000Z"


@pytest.fixture
def cluster() -> PretendCluster:
    """Four nodes, a gang on two of them, and one that waits."""
    made = PretendCluster(SystemClock(), (*KINDS, EVENTS))
    nodes = pretendcluster.hall(made, 4)
    pretendcluster.gang(made, "chat", nodes[:2])
    pretendcluster.gang(made, "wide", [], pods=9, message="no room")
    return made


@pytest.fixture
async def site(cluster: PretendCluster) -> AsyncIterator[Served]:
    async with served(Sources(cluster, built_in, NoLog(), "the cluster"), Choices()) as found:
        yield found


def event(uid: str, reason: str, note: str) -> JsonObject:
    return {
        "metadata": {"name": f"{uid}.{reason}", "namespace": "team", "uid": f"e-{reason}"},
        "regarding": {"kind": "PodGang", "namespace": "team", "name": "wide", "uid": uid},
        "reason": reason, "note": note, "type": "Warning", "eventTime": SAID,
    }  # fmt: skip


async def test_what_changes_in_the_cluster_is_told_live(
    cluster: PretendCluster, site: Served
) -> None:
    url = f"{site.address.url}events"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        watcher = Watcher(answer.content)
        _, first, _ = [await watcher.next() for _ in range(3)]
        assert first[2]["head"]["cluster"] == "the cluster"  # type: ignore[index,call-overload]
        assert first[2]["head"]["notes"] == ["there is no log"]  # type: ignore[index,call-overload]
        assert first[2]["gangs"]["team/chat"]["bound"] == 2  # type: ignore[index,call-overload]
        assert first[2]["gangs"]["team/wide"]["message"] == "no room"  # type: ignore[index,call-overload]
        pretendcluster.drop_gang(cluster, "chat", 2)
        gone: object = "not told yet"
        while gone == "not told yet":
            _, _, body = await watcher.next()
            told = body.get("gangs", {})
            gone = told.get("team/chat", gone) if isinstance(told, dict) else gone
        assert gone is None


async def test_events_about_a_gang_are_told_with_its_details(
    cluster: PretendCluster, site: Served
) -> None:
    cluster.put(EVENTS, event("gang-wide", "InsufficientCapacity", "no room"))
    cluster.put(EVENTS, event("gang-else", "Other", "about another"))
    url = f"{site.address.url}gang?namespace=team&name=wide"
    said: list[object] = []
    marks: list[dict[str, str]] = []
    async with aiohttp.ClientSession() as session:
        while not said:
            async with session.get(url) as answer:
                marks = orjson.loads(await answer.read())["marks"]
            said = [(each["what"], each["text"]) for each in marks if each.get("kind") == "warning"]
    assert said == [("InsufficientCapacity", "no room")]
    assert [each["what"] for each in marks][:2] == [timeline.SUBMITTED, timeline.MADE]


@pytest.mark.parametrize("kind", [NODES, PODGANGS])
async def test_a_cluster_without_what_is_needed_ends_it_with_a_reason(
    kind: object, cluster: PretendCluster
) -> None:
    cluster.kinds = [each for each in cluster.kinds if each is not kind]
    with pytest.raises(AskedWronglyError, match="the cluster serves no") as failed:
        async with served(Sources(cluster, built_in, NoLog()), Choices()):
            pass
    assert failed.value.code == exits.MISSING_KIND


async def test_a_topology_that_is_not_there_is_named_at_the_start(cluster: PretendCluster) -> None:
    for choices in (Choices(topology="east"), Choices(resource="amd.com/gpu")):
        with pytest.raises(AskedWronglyError, match=r"there is no topology east|no node has amd"):
            async with served(Sources(cluster, built_in, NoLog()), choices):
                pass


def test_a_cluster_is_cut_off_once_nothing_is_heard_of_any_kind() -> None:
    assert not is_cut_off([None, None], 1e6), "nothing has been read yet"
    assert not is_cut_off([0.0, 900.0], 1000.0)
    assert is_cut_off([0.0, 800.0, None], 1000.0)


def test_events_are_shown_in_the_order_of_their_times() -> None:
    def at(text: str, uid: str = "u") -> Happening:
        raw = {"metadata": {"name": text}, "eventTime": text, "regarding": {"uid": uid}}
        return msgspec.convert(raw, Happening)

    later, sooner = at("2026-01-02T03:00:09Z"), at("2026-01-02T03:00:01Z")
    never = msgspec.convert({"metadata": {"name": "x"}, "regarding": {"uid": "u"}}, Happening)
    found = happenings.about([later, sooner, never, at(SAID, "other")], frozenset({"u"}))
    assert list(found) == [never, sooner, later]


async def test_the_way_of_a_gang_begins_with_its_set() -> None:
    scene = await Stage().beside(gang("one", 2, 4, at=["n-0-0-0-0"])).scene()
    view = scene.world.view(("default", "one"))
    assert view is not None
    owner = Meta("one", creation_timestamp=datetime.fromisoformat("2025-12-31T00:00:00Z"))
    found = timeline.detail(view, GangRow("Running"), owner, ())
    assert (found.marks[0].what, found.owner) == (timeline.SUBMITTED, "one")
    assert [pod.state for pod in found.pods] == ["bound", "gated"]
