"""Pods that wait for others on their slots are nominated, and nobody else is."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from api.jsons import Json, JsonObject
from api.reservation import State
from api.streams import Pod
from controller.gangs.holding import LASTS_SECONDS, Holder, changes, is_rival
from controller.gangs.views import GangView, Reservation
from kube.access import Credentials
from kube.cache import Cache
from kube.client import Client
from kube.objects import Key
from kube.resources import PODS
from kube.tokens import FixedHeader
from tests.support import fakeapi
from tests.support.chance import dice
from tests.support.clusters import pod
from tests.support.fakeapi import FakeApi
from tests.support.manualclock import LeapingClock
from tests.support.sets import gang, member, pod_clique, reservation, view

_ONLY: Json = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
_TERMS: Json = {"nodeSelectorTerms": [{"matchFields": [_ONLY]}]}
PINNED: Json = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _TERMS}}
GANG = gang({"first": (1, 1), "then": (2, 2)})
CLIQUES = [pod_clique("first", 1), pod_clique("then", 2, "first")]
SLOTS = {("first", 0): "n0", ("then", 0): "n1", ("then", 1): "n2"}
FIRST = member("first", 0, gated=False, node="n0")


def nominated(pod: Pod, node: str) -> Pod:
    status = msgspec.structs.replace(pod.status, nominated_node_name=node)
    return msgspec.structs.replace(pod, status=status)


def seen(
    *waiting: Pod, booked: Reservation | None = None, lost: frozenset[str] = frozenset()
) -> GangView:
    ledger = booked or reservation(SLOTS, State.LIFTING)
    return view(GANG, [FIRST, *waiting], ledger, lost=lost, cliques=CLIQUES)


def told(of: GangView) -> list[tuple[str, str]]:
    return [(hold.pod.metadata.name, hold.node) for hold in changes(of)]


WAITING = (member("then", 0), member("then", 1))


def test_who_waits_for_others_is_nominated_for_the_node_of_its_slot() -> None:
    assert told(seen(*WAITING)) == [("then-0", "n1"), ("then-1", "n2")]
    assert told(seen(nominated(WAITING[0], "n1"), WAITING[1])) == [("then-1", "n2")]


def test_a_nomination_follows_its_slot() -> None:
    assert told(seen(nominated(WAITING[0], "n9"), nominated(WAITING[1], "n2"))) == [
        ("then-0", "n1")
    ]


def test_on_a_node_that_is_lost_nothing_is_held() -> None:
    pods = [nominated(WAITING[0], "n1"), nominated(WAITING[1], "n2")]
    assert told(seen(*pods, lost=frozenset({"n1"}))) == [("then-0", "")]


def test_who_awaits_its_turn_is_nominated_where_others_look_for_room_and_stays_so() -> None:
    both = gang({"first": (1, 1), "other": (2, 2)})
    slots = {("first", 0): "n0", ("other", 0): "n1", ("other", 1): "n2"}
    booked = reservation(slots, State.LIFTING)
    due = [member("other", 0), member("other", 1)]
    seen_so = view(both, [FIRST, *due], booked)
    assert changes(seen_so) == []
    holds = changes(seen_so, rivals=True)
    assert [(each.pod.metadata.name, each.node) for each in holds] == [
        ("other-0", "n1"), ("other-1", "n2"),
    ]  # fmt: skip
    assert changes(view(both, [FIRST, *(nominated(p, "n1") for p in due)], booked)) == []


@pytest.mark.parametrize(
    ("found", "rival"),
    [
        (pod("p"), True),
        (pod("p", spec={"nodeName": "n1"}), False),
        (pod("p", spec={"schedulingGates": [{"name": "example.com/hold"}]}), False),
        (pod("p", status={"phase": "Succeeded"}), False),
        (pod("p", metadata={"deletionTimestamp": "2020-01-01T00:00:00Z"}), False),
        (pod("p", spec={"affinity": PINNED}), False),
    ],
)
def test_a_rival_is_who_may_be_given_what_it_sees_free(found: Pod, *, rival: bool) -> None:
    assert is_rival(found) is rival


@pytest.mark.parametrize("state", [State.HELD, State.ROLLED_BACK])
def test_before_a_gang_begins_and_after_it_was_rolled_back_nothing_is_held(state: State) -> None:
    booked = reservation(SLOTS, state)
    assert told(seen(*WAITING, booked=booked)) == []
    assert told(seen(nominated(WAITING[0], "n1"), WAITING[1], booked=booked)) == [("then-0", "")]


def test_who_is_about_to_be_lifted_keeps_what_it_has() -> None:
    up = msgspec.structs.replace(
        FIRST, status=msgspec.convert(
            {"conditions": [{"type": "ContainersReady", "status": "True"}]}, type(FIRST.status)
        )
    )  # fmt: skip
    pods = [up, nominated(WAITING[0], "n1"), WAITING[1]]
    of = view(GANG, pods, reservation(SLOTS, State.LIFTING), cliques=CLIQUES)
    assert told(of) == []


class Stand:
    """A Holder, its clock, and what it asked to be reminded of."""

    def __init__(self, client: Client, api: FakeApi) -> None:
        self.clock = LeapingClock()
        self.api = api
        self.later: list[float] = []
        pods = Cache(client, PODS, Pod, dice())
        self.holder = Holder(client, self.clock, pods, self._remind, lambda: 1)

    def _remind(self, _: Key, seconds: float) -> None:
        self.later.append(seconds)

    async def hold(self, of: GangView) -> list[object]:
        """Have it look once; returns the nominations that it wrote."""
        self.api.seen.clear()
        echo: JsonObject = {
            "metadata": {"name": "any", "namespace": "default", "resourceVersion": "1"}
        }
        self.api.answers.clear()
        self.api.answers.extend([fakeapi.json(echo)] * 4)
        await self.holder.hold(of)
        bodies = [msgspec.json.decode(request.body) for request in self.api.seen]
        return [body["status"]["nominatedNodeName"] for body in bodies]


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    async with (
        fakeapi.serving(FakeApi()) as api,
        Client(Credentials(api.url, None, FixedHeader()), "tester", LeapingClock()) as client,
    ):
        yield Stand(client, api)


async def test_a_wait_that_passes_by_is_not_worth_a_write(stand: Stand) -> None:
    assert await stand.hold(seen(*WAITING)) == []
    assert stand.later == [LASTS_SECONDS]
    stand.clock.skip(LASTS_SECONDS)
    assert sorted(map(str, await stand.hold(seen(*WAITING)))) == ["n1", "n2"]


async def test_a_nomination_for_nothing_is_taken_back_at_once(stand: Stand) -> None:
    booked = reservation({("first", 0): "n0"}, State.LIFTING)
    assert await stand.hold(seen(nominated(WAITING[0], "n1"), booked=booked)) == [None]
