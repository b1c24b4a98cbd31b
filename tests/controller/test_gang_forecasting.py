"""Whoever will find no room is told before its pods are made, from its cliques' templates."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.objects import condition_of
from api.podgang import PodGangStatus
from api.streams import PodSpec
from controller.gangs import asking, templates
from controller.gangs.forecasting import GATHER, PATIENCE, SHORT, _Question
from controller.gangs.reconciling import Reconciler
from controller.gangs.views import GangView
from kube.objects import Key
from tests.support.clusters import node
from tests.support.fakeapi import FakeApi
from tests.support.gangscene import Scene, encoded, gang_of, scene
from tests.support.manualclock import LeapingClock, settle
from tests.support.polling import eventually
from tests.support.sets import gang, member, pod_clique, reservation, slots_of, view

GPU = "nvidia.com/gpu"


def spec(gpus: Json = 8, **more: Json) -> JsonObject:
    container: JsonObject = {"name": "main", "resources": {"limits": {GPU: gpus}}}
    return {"containers": [container], **more}


def read(body: JsonObject) -> PodSpec:
    found = templates.read(msgspec.json.encode(body))
    assert found is not None
    return found


def no_class(_: PodSpec) -> int:
    return 0


def test_amounts_in_a_template_may_be_numbers_and_keys_null() -> None:
    found = read({**spec(8, overhead={"cpu": 0.5}), "affinity": None})
    assert found.containers[0].resources.limits == {GPU: "8"}
    assert found.overhead == {"cpu": "0.5"}
    assert found.affinity is None


def test_claims_that_nobody_has_met_yet_are_left_out() -> None:
    claims: Json = [{"name": "x", "resourceClaimTemplateName": "x"}]
    volumes: Json = [{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]
    found = read(spec(resourceClaims=claims, volumes=volumes))
    assert (found.resource_claims, found.volumes) == ((), ())


@pytest.mark.parametrize(
    "raw", [b"[]", b"{", b'{"containers": 3}', b'{"tolerations": [{"key": 1}]}']
)
def test_a_template_that_cannot_be_read_tells_nothing(raw: bytes) -> None:
    assert templates.read(raw) is None


def foreseen(of: GangView, **more: JsonObject) -> tuple[list[tuple[str, int]], GangView] | None:
    specs = {"a": read(spec()), "b": read(spec(2))} | {k: read(v) for k, v in more.items()}
    found = templates.foreseen(of, specs, no_class)
    return None if found is None else (slots_of(found[1].minimum), found[0])


def test_pods_that_are_missing_from_the_minimum_are_made_up() -> None:
    seen = view(gang({"a": (3, 4), "b": (1, 1)}, initialized=False), [member("a", 1)])
    found = foreseen(seen)
    assert found is not None
    asked, then = found
    assert asked == [("a", 1), ("a", 0), ("a", 2), ("b", 0)]
    assert [m.pod.spec.containers[0].resources.limits.get(GPU) for m in then.members] == [
        None, "8", "8", "2",
    ]  # fmt: skip
    assert all(m.pod.gates == (names.GATE,) for m in then.members)


def test_no_more_than_the_minimum_is_asked_for() -> None:
    pods = [member("a", index) for index in range(3)]
    found = foreseen(view(gang({"a": (2, 3), "b": (1, 1)}, initialized=False), pods))
    assert found is not None
    assert found[0] == [("a", 0), ("a", 1), ("b", 0)]


def test_where_templates_do_not_tell_nothing_is_foreseen() -> None:
    pair = gang({"a": (2, 2)}, initialized=False)
    assert foreseen(view(pair, [])) is not None
    unmade = view(pair, [])
    assert foreseen(replace(unmade, cliques={})) is None, "its PodClique is not there yet"
    assert foreseen(view(pair, [], base_started=False)) is None, "it waits for its base"
    assert foreseen(view(pair, [], reservation({}))) is None, "it has room already"
    assert foreseen(view(pair, [member("a", 0, gated=False)])) is None, "it is not at its beginning"
    held: Json = [{"name": "other.example/gate"}]
    assert foreseen(unmade, a=spec(schedulingGates=held)) is None, "somebody else holds it back"
    assert templates.foreseen(unmade, {"a": None}, no_class) is None


def test_what_is_foreseen_is_asked_for_like_what_comes() -> None:
    """Labels aside: those of its set are on a pod, and tell others who it is."""
    raw = spec(nodeSelector={"disk": "fast"}, priority=7)
    pods = [msgspec.structs.replace(member("a", i), spec=read(raw)) for i in range(2)]
    gated: JsonObject = {**raw, "schedulingGates": [{"name": names.GATE}], "hostname": "x"}
    pods = [msgspec.structs.replace(each, spec=read(gated)) for each in pods]
    seen = view(gang({"a": (2, 2)}, initialized=False), [])
    found = templates.foreseen(seen, {"a": read(raw)}, lambda _: 7)
    assert found is not None
    asked = asking.request(*found)
    assert [(w.clique, w.index, w.need) for w in asked.minimum] == [
        ("a", 0, {GPU: 8, "pods": 1}),
        ("a", 1, {GPU: 8, "pods": 1}),
    ]
    assert asked.minimum[0].constraints.selector == (("disk", "fast"),)
    assert asked.priority == 7


class Town:
    """A reconciler at work on gangs whose pods never come."""

    def __init__(self, s: Scene, api: FakeApi) -> None:
        self.s, self.api = s, api
        self.clock = LeapingClock()
        self.reconciler = Reconciler(s.client, self.clock, s.caches, lambda: 1, "one")
        self.version = 50

    def made(self, name: str, gpus: int, pods: int = 1, **more: Json) -> None:
        """A gang of one clique, of which nothing is there but the PodClique."""
        clique = f"{name}-a"
        raw = msgspec.Raw(msgspec.json.encode(spec(gpus, **more)))
        there = pod_clique(clique, pods)
        there = msgspec.structs.replace(
            there,
            metadata=msgspec.structs.replace(there.metadata, generation=self.version),
            spec=msgspec.structs.replace(there.spec, pod_spec=raw),
        )
        self.s.cliques.observe(encoded(there, self._next()))
        body = gang_of(name, [f"{clique}-{index}" for index in range(pods)], self._next())
        group: Json = {
            "name": clique, "minReplicas": pods,
            "podReferences": [
                {"namespace": "default", "name": f"{clique}-{i}"} for i in range(pods)
            ],
        }  # fmt: skip
        body["spec"] = {"podgroups": [group]}
        body["status"] = {}
        self.s.gangs.observe(msgspec.json.encode(body))

    def pod_of_class(self, called: str, priority: int) -> None:
        """A pod that takes no room, but tells what its class is worth."""
        pod = member("elsewhere", 0)
        what = read(spec(0, priorityClassName=called, priority=priority))
        what = msgspec.structs.replace(what, scheduling_gates=pod.spec.scheduling_gates)
        self.s.pods.observe(encoded(msgspec.structs.replace(pod, spec=what), self._next()))

    def nodes(self, *called: str) -> None:
        for name in called:
            self.s.nodes.observe(encoded(node(name), self._next()))

    def told(self, name: str) -> tuple[str, str] | None:
        """What was said last of the gang."""
        said = [each for each in self.api.seen if each.path.endswith(f"/{name}/status")]
        if not said:
            return None
        status = PodGangStatus.model_validate(msgspec.json.decode(said[-1].body)["status"])
        found = condition_of(status.conditions, names.SCHEDULED)
        return (found.reason, found.message) if found else None

    async def hears(self, name: str, reason: str) -> str:
        """Wait until this reason is given, and give the message."""
        await eventually(lambda: (self.told(name) or ("", ""))[0] == reason, f"{name}: {reason}")
        told = self.told(name)
        assert told is not None
        return told[1]

    def _next(self) -> int:
        self.version += 1
        return self.version


@asynccontextmanager
async def town(*nodes: str) -> AsyncIterator[Town]:
    async with scene() as (s, api, _):
        made = Town(s, api)
        made.nodes("n1", *nodes)
        running = asyncio.create_task(made.reconciler.run(2))
        try:
            yield made
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


async def test_a_gang_that_will_find_no_room_is_told_before_its_pods_are_there() -> None:
    async with town() as there:
        there.made("large", gpus=8, pods=2)
        message = await there.hears("large", names.REASON_NEVER_FITS)
        assert f"{GPU}: 16 needed, 8 free, 8 short" in message


@pytest.mark.parametrize("after", [pytest.param(0.0, id="soon"), pytest.param(60.0, id="later")])
async def test_of_two_that_want_the_same_room_the_later_one_is_told(after: float) -> None:
    """Nothing is reserved for the first: its pods are not there either."""
    async with town() as there:
        there.made("first", gpus=8)
        await there.hears("first", names.REASON_WAITING_FOR_PODS)
        there.clock.skip(after)
        there.made("second", gpus=8)
        message = await there.hears("second", names.REASON_INSUFFICIENT)
        assert "8 needed, 0 free" in message
        assert (there.told("first") or ("",))[0] == names.REASON_WAITING_FOR_PODS


async def test_where_room_is_short_the_next_gang_is_judged_without_waiting_for_its_pods() -> None:
    async with town() as there:
        there.made("first", gpus=9)
        await there.hears("first", names.REASON_NEVER_FITS)
        assert pytest.approx(PATIENCE) in there.clock.slept
        there.clock.slept.clear()
        there.made("second", gpus=9)
        await there.hears("second", names.REASON_NEVER_FITS)
        assert pytest.approx(PATIENCE) not in there.clock.slept
        there.clock.skip(SHORT)
        there.made("third", gpus=9)
        await there.hears("third", names.REASON_NEVER_FITS)
        assert pytest.approx(PATIENCE) in there.clock.slept


async def test_for_who_has_its_pods_by_now_nothing_is_judged() -> None:
    """After a judgement it would rest; and others are judged as ever."""
    async with town() as there:
        forecaster = there.reconciler.forecaster
        await settle()
        there.clock.slept.clear()
        forecaster._woken.set()  # by one that was forgotten before it came up
        await eventually(lambda: not forecaster._woken.is_set(), "nobody waits")
        await settle()
        assert there.clock.slept == [GATHER]
        there.made("large", gpus=9)
        await there.hears("large", names.REASON_NEVER_FITS)


async def test_who_was_told_of_no_room_hears_when_there_is_some() -> None:
    async with town() as there:
        there.made("large", gpus=8, pods=2)
        await there.hears("large", names.REASON_NEVER_FITS)
        there.nodes("n2")
        await there.hears("large", names.REASON_WAITING_FOR_PODS)


async def test_a_gang_that_asks_for_less_by_now_is_judged_anew() -> None:
    async with town() as there:
        there.made("large", gpus=9)
        await there.hears("large", names.REASON_NEVER_FITS)
        there.made("large", gpus=8)
        await there.hears("large", names.REASON_WAITING_FOR_PODS)


async def test_a_gang_whose_class_becomes_known_is_judged_anew() -> None:
    """Until then it comes first, and whoever else wants the room is not held against it."""
    async with town() as there:
        there.made("first", gpus=8)
        await there.hears("first", names.REASON_WAITING_FOR_PODS)
        there.made("second", gpus=8, priorityClassName="low")
        await there.hears("second", names.REASON_WAITING_FOR_PODS)
        there.pod_of_class("low", -5)
        message = await there.hears("second", names.REASON_INSUFFICIENT)
        assert "8 needed, 0 free" in message


async def test_a_class_that_becomes_known_while_a_gang_is_judged_counts_too() -> None:
    async with town() as there:
        forecaster = there.reconciler.forecaster
        there.made("first", gpus=8)
        await there.hears("first", names.REASON_WAITING_FOR_PODS)
        async with forecaster._engine:
            there.made("second", gpus=8, priorityClassName="low")
            await eventually(
                lambda: len(forecaster._asked) > len(forecaster._waiting), "it is judged"
            )
            there.pod_of_class("low", -5)
        await there.hears("second", names.REASON_INSUFFICIENT)


async def test_a_class_that_others_have_is_learnt_once() -> None:
    """Whoever's own is still unknown is judged anew, and those without one are not."""
    async with town() as there:
        forecaster = there.reconciler.forecaster
        judged: list[str] = []
        right = forecaster._judge

        async def judge(waiting: Mapping[Key, _Question]) -> None:
            judged.extend(name for _, name in waiting)
            await right(waiting)

        forecaster._judge = judge  # type: ignore[method-assign]

        def at_rest() -> bool:
            return not forecaster._asked and not forecaster._waiting

        there.made("plain", gpus=9)
        there.made("low", gpus=9, priorityClassName="low")
        for name in ("plain", "low"):
            await there.hears(name, names.REASON_NEVER_FITS)
        await eventually(at_rest, "nobody is judged")
        judged.clear()
        there.pod_of_class("other", 7)
        await eventually(lambda: "low" in judged and at_rest(), "it is judged once more")
        assert "plain" not in judged
        judged.clear()
        for name in ("plain", "low"):
            there.reconciler.queue.add(("default", name))  # as if something else had happened
        there.made("next", gpus=9)
        await there.hears("next", names.REASON_NEVER_FITS)
        assert judged == ["next"]


async def test_a_fault_of_the_engine_is_not_met_again_and_again() -> None:
    """These gangs wait until their pods are there; the others are told."""
    async with town() as there:
        forecaster = there.reconciler.forecaster
        faults: list[object] = []

        async def judge(waiting: object) -> None:
            faults.append(waiting)
            raise ValueError("a fault")

        right = forecaster._judge
        forecaster._judge = judge  # type: ignore[method-assign]
        there.made("odd", gpus=9)
        await there.hears("odd", names.REASON_WAITING_FOR_PODS)
        forecaster._judge = right  # type: ignore[method-assign]
        there.made("large", gpus=9)
        await there.hears("large", names.REASON_NEVER_FITS)
        assert len(faults) == 1
