import asyncio
from contextlib import suppress

import pytest

from api.jsons import JsonObject
from kube import errors
from kube.access import Credentials
from kube.cache import Added, Cache, Change, Deleted, Modified
from kube.client import Client, Scope
from kube.clock import SystemClock
from kube.resources import CONFIGMAPS
from kube.tokens import FixedHeader
from tests.support import fakeapi
from tests.support.chance import dice
from tests.support.following import HASTY, PATIENT, Entry, Told, filled, following
from tests.support.polling import eventually


async def test_a_cache_lists_once_and_then_follows() -> None:
    async with following(filled()) as f:
        await f.cache.synced()
        assert f.cache.is_synced
        assert f.equal()
        f.api.put("a", "m1", "second")
        f.api.put("b", "m9", "new")
        f.api.delete("a", "m0")
        await f.becomes_equal()
        assert f.api.lists() == 1
        assert len(f.cache) == 3
        assert {entry.metadata.name for entry in f.cache} == {"m1", "m2", "m9"}
        found = f.cache.get("a", "m1")
        assert found is not None
        assert found.data == {"value": "second"}
        assert f.cache.get("a", "m0") is None
        assert f.cache.counters.relists == {}
        assert f.cache.counters.events == 3
        assert f.cache.counters.last_heard is not None


async def test_changes_are_told_in_order_with_the_states_before_and_after() -> None:
    async with following(filled()) as f:
        await f.cache.synced()
        f.told.changes.clear()
        before = f.cache.get("a", "m1")
        f.api.put("a", "m1", "second")
        f.api.delete("a", "m1")
        await f.becomes_equal()
        modified, deleted = f.told.changes
        assert isinstance(modified, Modified)
        assert modified.old is before
        assert modified.new.data == {"value": "second"}
        assert deleted == Deleted(modified.new)


async def test_scope_reaches_the_server_in_list_and_watch() -> None:
    async with following(filled(), scope=Scope("a", "l=1", "f=2")) as f:
        await f.watching()
        for seen in f.api.seen:
            assert seen.path == "/api/v1/namespaces/a/configmaps"
            assert (seen.query["labelSelector"], seen.query["fieldSelector"]) == ("l=1", "f=2")


async def test_watches_ask_for_bookmarks_and_for_different_times() -> None:
    api = filled()
    api.watch_answers.extend([fakeapi.stream(fakeapi.event("BOOKMARK", META_7))] * 6)
    async with following(api) as f:
        await f.watching(6)
        times = [int(seen.query["timeoutSeconds"]) for seen in api.watches()]
        assert all(290 <= seconds <= 580 for seconds in times)
        assert len(set(times)) > 1
        assert all(seen.query["allowWatchBookmarks"] == "true" for seen in api.watches())


META_7: JsonObject = {"metadata": {"resourceVersion": "7"}}


async def test_late_subscribers_are_told_what_is_there() -> None:
    async with following(filled()) as f:
        await f.cache.synced()
        late = Told()
        f.cache.subscribe(late)
        assert late.objects == dict(f.cache.items())


async def test_a_handler_that_raises_harms_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    async with following(filled()) as f:

        def broken(_: Change[Entry]) -> None:
            raise ValueError("broken on purpose")

        f.cache.subscribe(broken)
        also = Told()
        f.cache.subscribe(also)
        await f.cache.synced()
        f.api.put("a", "m1", "second")
        await f.becomes_equal()
        assert also.objects == f.told.objects
        assert "broken on purpose" in caplog.text


async def test_410_as_status_lists_again_and_tells_what_was_missed() -> None:
    api = filled()
    api.watch_answers.append(fakeapi.stream(b"", then="hang"))
    async with following(api, HASTY) as f:
        await f.watching()
        f.api.put("a", "m1", "missed")
        f.api.put("a", "m9", "missed")
        f.api.delete("a", "m0")
        f.api.compact()
        await f.becomes_equal()
        assert f.cache.counters.relists == {"expired": 1}
        kinds = [type(change) for change in f.told.changes[3:]]
        assert kinds == [Deleted, Modified, Added]


async def test_410_as_event_lists_again() -> None:
    api = filled()
    gone = fakeapi.event("ERROR", {"code": 410, "reason": "Expired"})
    api.watch_answers.append(fakeapi.stream(gone))
    async with following(api) as f:
        await f.watching(2)
        f.api.put("a", "m1", "later")
        await f.becomes_equal()
        assert f.cache.counters.relists == {"expired": 1}
        assert f.api.lists() == 2


async def test_a_version_from_the_servers_future_lists_again() -> None:
    api = filled()
    ahead: JsonObject = {
        "code": 504,
        "details": {"causes": [{"reason": "ResourceVersionTooLarge"}]},
    }
    api.watch_answers.append(fakeapi.stream(fakeapi.event("ERROR", ahead)))
    async with following(api) as f:
        await f.watching(2)
        assert f.cache.counters.relists == {"expired": 1}


@pytest.mark.parametrize(
    ("answer", "counted"),
    [
        pytest.param(fakeapi.hang_up, "Unreachable", id="connection dropped"),
        pytest.param(fakeapi.stream(b'{"type":"ADD', then="cut"), "Unreachable", id="cut mid-line"),
        pytest.param(fakeapi.stream(b'{"type":"ADD'), "Unreachable", id="ended mid-line"),
        pytest.param(fakeapi.stream(b'{"type":"ADDED","obj\n'), "Unreachable", id="garbled line"),
        pytest.param(fakeapi.say_nothing, "Stalled", id="stalled before the head"),
        pytest.param(fakeapi.stream(b"", then="hang"), "Stalled", id="stalled after the head"),
        pytest.param(fakeapi.status(500), "ServerFault", id="500"),
        pytest.param(fakeapi.status(503), "ServerFault", id="503"),
        pytest.param(
            fakeapi.status(429, headers={"Retry-After": "0"}), "TooManyRequests", id="429"
        ),
        pytest.param(fakeapi.status(429), "TooManyRequests", id="429 without a time"),
        pytest.param(fakeapi.status(403), "Forbidden", id="403 for a moment"),
        pytest.param(fakeapi.status(401), "Unauthorized", id="401 for a moment"),
        pytest.param(
            fakeapi.stream(fakeapi.event("ERROR", {"code": 500})), "ServerFault", id="500 as event"
        ),
    ],
)
async def test_a_watch_that_fails_goes_on_where_it_stood_without_a_list(
    answer: fakeapi.Answer, counted: str
) -> None:
    api = filled()
    api.watch_answers.extend([answer] * 2)
    async with following(api, HASTY) as f:
        await f.cache.synced()
        f.api.put("a", "m1", "missed")
        f.api.delete("a", "m2")
        await f.becomes_equal()
        assert f.cache.counters.watch_restarts[counted] >= 2
        assert f.api.lists() == 1
        assert {seen.query["resourceVersion"] for seen in api.watches()[:3]} == {"103"}


async def test_a_stalled_watch_resumes_from_the_last_event_not_from_the_list() -> None:
    api = filled()
    async with following(api, HASTY) as f:
        await f.watching()
        f.api.put("a", "m1", "second")
        await f.becomes_equal()
        await f.watching(3)
        assert api.watches()[-1].query["resourceVersion"] == str(f.api.version)
        assert f.cache.counters.watch_restarts["Stalled"] >= 1
        assert f.api.lists() == 1


async def test_bookmarks_move_the_place_to_resume_from() -> None:
    api = filled()
    mark = fakeapi.event("BOOKMARK", {"metadata": {"resourceVersion": "150"}})
    api.watch_answers.append(fakeapi.stream(mark, then="cut"))
    async with following(api) as f:
        await f.watching(2)
        assert api.watches()[1].query["resourceVersion"] == "150"
        assert f.cache.counters.relists == {}


async def test_an_echo_does_not_move_the_place_to_resume_from_back() -> None:
    api = filled()
    marks = [
        fakeapi.event("BOOKMARK", {"metadata": {"resourceVersion": version}})
        for version in ("150", "120")
    ]
    api.watch_answers.append(fakeapi.stream(*marks, then="cut"))
    async with following(api) as f:
        await f.watching(2)
        assert api.watches()[1].query["resourceVersion"] == "150"


async def test_echoes_and_swapped_events_change_nothing() -> None:
    api = filled()
    async with following(api) as f:
        await f.watching()
        f.api.put("a", "m1", "x")
        f.api.put("b", "m1", "y")
        f.api.delete("a", "m1")
        (_, first), (_, second), (_, third) = f.api.log[-3:]
        await f.becomes_equal()
        told = len(f.told.changes)
        # The same again, in another order, on the open watch.
        f.api.version += 1
        f.api.log += [(f.api.version, line) for line in (third, first, second, first)]
        f.api.put("z", "last", "z")
        await f.becomes_equal()
        assert len(f.told.changes) == told + 1


async def test_an_error_in_the_same_place_over_and_over_costs_a_list() -> None:
    api = filled()
    api.watch_answers.extend([fakeapi.stream(fakeapi.event("ERROR", {"code": 500}))] * 3)
    async with following(api) as f:
        await f.watching(4)
        assert f.cache.counters.relists == {"stuck": 1}


async def test_a_kind_that_went_away_is_listed_again_when_it_is_back() -> None:
    api = filled()
    api.watch_answers.append(fakeapi.status(404))
    async with following(api) as f:
        await f.cache.synced()
        await f.watching(2)
        await f.becomes_equal()
        assert f.cache.counters.relists == {"missing": 1}


async def test_a_server_that_closes_every_watch_at_once_is_not_hammered() -> None:
    api = filled()
    api.watch_answers.extend([fakeapi.stream()] * 3)
    async with following(api) as f:
        await f.watching(4)
        assert f.cache.counters.watch_restarts["Unreachable"] == 3
        assert f.api.lists() == 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (fakeapi.status(401), errors.Unauthorized),
        (fakeapi.status(403), errors.Forbidden),
        (fakeapi.status(404), errors.NotFound),
        (fakeapi.status(400), errors.ApiError),
        (fakeapi.json({"metadata": {}, "items": []}), errors.Undecodable),
    ],
)
async def test_what_waiting_cannot_mend_is_raised_at_the_first_list(
    answer: fakeapi.Answer, kind: type[errors.ApiError]
) -> None:
    api = filled()
    api.list_answers.append(answer)
    async with following(api) as f:
        with pytest.raises(kind):
            await f.cache.synced()
        with pytest.raises(kind):
            await f.task
        assert not f.cache.is_synced


@pytest.mark.parametrize(
    "answer", [fakeapi.status(500), fakeapi.status(410), fakeapi.status(429), fakeapi.hang_up]
)
async def test_what_passes_by_itself_is_waited_out_at_the_first_list(
    answer: fakeapi.Answer,
) -> None:
    api = filled()
    api.list_answers.extend([answer] * 6)
    async with following(api) as f:
        await f.cache.synced()
        assert f.equal()
        assert f.cache.counters.relists == {}


async def test_one_odd_object_leaves_the_others_and_its_own_last_state_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = filled()
    async with following(api, HASTY) as f:
        await f.watching()
        before = f.cache.get("a", "m1")
        api.put("a", "m1", 3)
        api.put("a", "m2", "later")
        await eventually(lambda: f.cache.counters.unreadable == 1, "the odd object was seen")
        assert f.cache.get("a", "m1") is before
        assert "ConfigMap a/m1 cannot be read" in caplog.text
        await eventually(
            lambda: (e := f.cache.get("a", "m2")) is not None and e.data["value"] == "later",
            "the others go on",
        )
        # In a list it is no different; one that was never readable is not there.
        api.put("a", "m7", 7)
        api.compact()
        api.watch_answers.append(fakeapi.status(410))
        await eventually(lambda: f.cache.counters.relists["expired"] == 1, "another list")
        assert f.cache.get("a", "m1") is before
        assert set(dict(f.cache.items())) == {("a", "m0"), ("a", "m1"), ("a", "m2")}


async def test_objects_without_a_version_make_the_stream_suspect() -> None:
    api = filled()
    named: JsonObject = {"metadata": {"name": "x", "namespace": "a"}}
    unnumbered = fakeapi.event("ADDED", named)
    versionless = fakeapi.event("BOOKMARK", {"metadata": {}})
    shapeless = fakeapi.event("DELETED", [])
    api.watch_answers.extend([fakeapi.stream(line) for line in (unnumbered, versionless)])
    api.watch_answers.append(fakeapi.stream(fakeapi.event("BOOKMARK", META_7), shapeless))
    async with following(api) as f:
        await f.watching(4)
        await f.becomes_equal()
        assert f.cache.counters.watch_restarts["Unreachable"] == 3


async def test_a_server_restart_is_survived_without_a_list() -> None:
    api = filled()
    async with fakeapi.serving(api):
        port = int(api.url.rsplit(":", 1)[1])
        client = Client(Credentials(api.url, None, FixedHeader()), "tester", SystemClock())
        async with client:
            cache = Cache(client, CONFIGMAPS, Entry, dice(), settings=PATIENT)
            task = asyncio.create_task(cache.run())
            await cache.synced()
            await eventually(lambda: bool(api.watches()), "the watch is open")
            await api.stop()
            api.put("a", "m1", "while away")
            await asyncio.sleep(0.1)
            await api.start(port)
            await eventually(
                lambda: (e := cache.get("a", "m1")) is not None and e.data["value"] == "while away",
                "the cache has caught up",
            )
            assert api.lists() == 1
            assert cache.counters.watch_restarts["Unreachable"] >= 1
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
