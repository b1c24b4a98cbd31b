import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import orjson
import pytest

from api import names
from api.capacity import Capacity
from api.topology import ClusterTopologyBindingSpec
from kube.access import Credentials
from kube.clock import Clock, SystemClock
from kube.tokens import FixedHeader
from tests.support import fakeapi
from tests.support.chance import dice
from tests.support.manualclock import LeapingClock
from tests.support.polling import eventually
from tests.webhook.clusterstand import BINDINGS, CONFIGS, LEVELS, SETS, Stand, standing
from webhook.knowledge import MOST_ABSENT, Knowledge

SYSTEM = SystemClock()
NOTED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass
class Following:
    stand: Stand
    known: Knowledge

    async def binding(self, name: str) -> ClusterTopologyBindingSpec | None:
        """Ask as the threads do that answer reviews."""
        return await asyncio.to_thread(self.known.binding, name)

    async def is_synced(self) -> None:
        await eventually(lambda: self.known.synced, "the first lists")


@asynccontextmanager
async def following(
    stand: Stand | None = None,
    clock: Clock = SYSTEM,
    on_policy: Callable[[Mapping[str, str] | None], None] | None = None,
) -> AsyncIterator[Following]:
    async with standing(stand or Stand()) as serving:
        credentials = Credentials(serving.url, None, FixedHeader())
        known = Knowledge(credentials, names.NAMESPACE, clock, dice(1), on_policy)
        running = asyncio.create_task(known.run())
        try:
            yield Following(serving, known)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


async def test_what_there_is_is_known_once_the_lists_are_there() -> None:
    stand = Stand()
    stand.bind("dc")
    stand.kinds[SETS].place("a", "llm", {}, {names.MNNVL_ANNOTATION: "g"})
    stand.config(names.CAPACITY_CONFIG, **{names.CAPACITY_KEY: '{"node": {"cpu": 8000}}'})
    async with following(stand) as f:
        assert not f.known.synced
        await f.is_synced()
        assert f.known.bindings() == ["dc"]
        assert await f.binding("dc") == ClusterTopologyBindingSpec.model_validate(LEVELS)
        assert f.known.capacity() == Capacity({"cpu": 8000})
        assert f.known.set_annotations("a", "llm") == {names.MNNVL_ANNOTATION: "g"}
        assert f.known.set_annotations("a", "other") is None
        assert stand.gets == 0


async def test_each_text_of_the_policy_is_handed_on_and_its_going_too() -> None:
    stand, told = Stand(), list[object]()
    stand.config(names.POLICY_CONFIG, **{names.POLICY_KEY: "a"})
    async with following(stand, on_policy=told.append) as f:
        await f.is_synced()
        stand.config(names.POLICY_CONFIG, **{names.POLICY_KEY: "b"})
        await eventually(lambda: told == [{names.POLICY_KEY: each} for each in "ab"], "both texts")
        stand.kinds[CONFIGS].delete(names.NAMESPACE, names.POLICY_CONFIG)
        await eventually(lambda: told[2:] == [None], "its going")


async def test_changes_are_followed() -> None:
    async with following() as f:
        await f.is_synced()
        f.stand.bind("dc")
        f.stand.config(names.CAPACITY_CONFIG, **{names.CAPACITY_KEY: '{"node": {"cpu": 1}}'})
        await eventually(lambda: f.known.bindings() == ["dc"], "the change seen")
        await eventually(lambda: f.known.capacity() == Capacity({"cpu": 1}), "the change seen")
        f.stand.kinds[BINDINGS].delete("", "dc")
        await eventually(lambda: not f.known.bindings(), "the change seen")
        f.stand.config(names.CAPACITY_CONFIG)
        await eventually(lambda: f.known.capacity() is None, "the change seen")


async def test_of_sets_only_metadata_is_asked_for_and_only_our_annotations_are_kept() -> None:
    stand = Stand()
    ours = {names.UNPROTECTED_ANNOTATION: "true", names.READINESS_GATE_ANNOTATION: "true"}
    stand.kinds[SETS].place("a", "llm", {}, {**ours, NOTED: "x" * 1000, "team": "y"})
    async with following(stand) as f:
        await f.is_synced()
        assert f.known.set_annotations("a", "llm") == ours
        await eventually(lambda: len(stand.kinds[SETS].seen) >= 2, "the change seen")
        listed, watched = [seen.headers["Accept"] for seen in stand.kinds[SETS].seen[:2]]
        assert "as=PartialObjectMetadataList;" in listed
        assert "as=PartialObjectMetadata;" in watched


async def test_a_binding_that_the_watch_has_not_told_of_is_asked_for_once() -> None:
    async with following() as f:
        await f.is_synced()
        # As if the event were still under way.
        f.stand.kinds[BINDINGS].objects["", "dc"] = {
            "metadata": {"name": "dc", "uid": "u", "resourceVersion": "500"},
            "spec": LEVELS,
        }
        for _ in range(3):
            assert await f.binding("dc") is not None
        assert f.stand.gets == 1
        assert f.known.bindings() == ["dc"]


async def test_a_binding_that_is_not_there_is_not_asked_for_again_and_again() -> None:
    async with following() as f:
        await f.is_synced()
        for _ in range(10):
            assert await f.binding("dc") is None
        assert f.stand.gets == 1
        # It may come at any time, by the watch.
        f.stand.bind("dc")
        await eventually(lambda: f.known.bindings() == ["dc"], "the change seen")
        assert await f.binding("dc") is not None


@pytest.mark.parametrize("name", ["", "x" * 254])
async def test_what_can_be_no_name_is_never_asked_for(name: str) -> None:
    async with following() as f:
        await f.is_synced()
        assert await f.binding(name) is None
        assert f.stand.gets == 0


async def test_odd_names_reach_no_other_path() -> None:
    async with following() as f:
        await f.is_synced()
        assert await f.binding("../podcliquesets") is None
        assert f.stand.gets == 1
        assert not [s for s in f.stand.kinds[SETS].seen if "Partial" not in s.headers["Accept"]]


async def test_absent_names_do_not_pile_up() -> None:
    async with following() as f:
        await f.is_synced()
        for number in range(MOST_ABSENT + 5):
            await f.known._ask(f"b{number}")
        assert len(f.known._absent) <= MOST_ABSENT


async def test_a_silent_api_server_costs_a_review_half_a_second_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stand = Stand()
    stand.bind("dc")
    async with following(stand) as f:
        await f.is_synced()
        stand.silent = True
        clock = SystemClock()
        begun = clock.monotonic()
        assert await f.binding("other") is None
        assert clock.monotonic() - begun < 5
        warned = [m for m in caplog.messages if m.startswith("cannot ask for")]
        for number in range(20):
            assert await f.binding(f"b{number}") is None
        assert [m for m in caplog.messages if m.startswith("cannot ask for")] == warned
        # What is in memory is answered as ever.
        assert await f.binding("dc") is not None


async def test_who_asks_while_everything_ends_is_answered_from_memory() -> None:
    stand = Stand()
    async with following(stand) as f:
        await f.is_synced()
        stand.silent = True
        answer = asyncio.create_task(f.binding("other"))
        await eventually(lambda: f.known._asking == 1, "the question on its way")
        for task in asyncio.all_tasks():
            if getattr(task.get_coro(), "__qualname__", "") == "Knowledge._ask":
                task.cancel()
        assert await answer is None


async def test_what_was_known_stays_known_when_the_api_server_goes() -> None:
    stand = Stand()
    stand.bind("dc")
    stand.kinds[SETS].place("a", "llm", {}, {names.MNNVL_ANNOTATION: "g"})
    async with following(stand) as f:
        await f.is_synced()
        await stand.stop()
        assert await f.binding("dc") is not None
        assert await f.binding("other") is None
        assert f.known.set_annotations("a", "llm") == {names.MNNVL_ANNOTATION: "g"}
        assert f.known.synced


async def test_a_right_that_is_missing_is_tried_for_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stand = Stand()
    stand.bind("dc")
    stand.kinds[SETS].list_answers.append(fakeapi.status(403, "Forbidden", "no right to sets"))
    with caplog.at_level(logging.ERROR):
        async with following(stand, LeapingClock()) as f:
            await f.is_synced()
            assert f.known.bindings() == ["dc"]
    assert [m for m in caplog.messages if "no right to sets" in m]


async def test_what_cannot_be_read_is_said_and_does_no_harm(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stand = Stand()
    stand.bind("dc")
    stand.bind("odd", {"levels": "rack"})
    stand.config(names.CAPACITY_CONFIG, **{names.CAPACITY_KEY: "{"})
    async with following(stand) as f:
        await f.is_synced()
        assert f.known.bindings() == ["dc"]
        assert f.known.capacity() is None
    assert [m for m in caplog.messages if "ClusterTopologyBinding odd stays as it was" in m]
    assert [m for m in caplog.messages if "ConfigMap penstock-capacity cannot be read" in m]


async def test_only_our_own_config_map_is_followed() -> None:
    async with following() as f:
        await f.is_synced()
        for seen in f.stand.kinds["configmaps"].seen:
            assert seen.path == f"/api/v1/namespaces/{names.NAMESPACE}/configmaps"
            assert seen.query["fieldSelector"] in {
                f"metadata.name={name}" for name in (names.CAPACITY_CONFIG, names.POLICY_CONFIG)
            }


def test_before_anything_runs_nothing_is_known() -> None:
    nowhere = Credentials("http://127.0.0.1:1", None, FixedHeader())
    known = Knowledge(nowhere, names.NAMESPACE, SystemClock(), dice(1))
    assert known.binding("dc") is None
    assert known.bindings() == []
    assert known.capacity() is None
    assert known.set_annotations("a", "b") is None
    assert orjson.dumps(known.synced) == b"false"
