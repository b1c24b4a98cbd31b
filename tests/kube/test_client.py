from collections.abc import Awaitable, Callable

import msgspec
import pytest
from aiohttp import web

from kube import errors
from kube.access import Credentials
from kube.client import Client, Deletion
from kube.objects import BareObject
from kube.resources import CONFIGMAPS, PODS
from kube.tokens import FixedHeader
from kube.transport import Patience
from tests.support import fakeapi
from tests.support.manualclock import LeapingClock
from tests.support.talking import NOBODY, talking


class Echo(msgspec.Struct):
    metadata: dict[str, str]


async def test_get_decodes_into_the_type_asked_for() -> None:
    async with talking() as t:
        t.api.answers.append(fakeapi.json({"metadata": {"name": "b"}}))
        assert (await t.client.get(PODS, Echo, "b", "a")).metadata == {"name": "b"}
        (seen,) = t.api.seen
        assert (seen.method, seen.path) == ("GET", "/api/v1/namespaces/a/pods/b")
        assert seen.headers["User-Agent"] == "penstock/tester"


async def test_an_instance_is_named_behind_its_component() -> None:
    async with fakeapi.serving(fakeapi.FakeApi()) as api:
        api.answers.append(fakeapi.text(200, "ok"))
        access, clock = Credentials(api.url, None, NOBODY), LeapingClock()
        async with Client(access, "gangs", clock, instance="host_7_ab") as client:
            await client.raw_get("/readyz")
        assert api.seen[0].headers["User-Agent"] == "penstock/gangs (host_7_ab)"


async def test_an_answer_of_the_wrong_shape_names_the_path() -> None:
    async with talking() as t:
        t.api.answers.append(fakeapi.json({"metadata": []}))
        with pytest.raises(errors.Undecodable, match="namespaces/a/pods/b"):
            await t.client.get(PODS, Echo, "b", "a")


async def test_raw_get_returns_the_body_as_it_is() -> None:
    async with talking() as t:
        t.api.answers.append(fakeapi.text(200, "ok"))
        assert await t.client.raw_get("/readyz") == b"ok"


async def test_lists_are_read_in_pages() -> None:
    async with talking() as t:
        t.api.page_size = 2
        for n in range(5):
            t.api.put("a", f"m{n}", "x")
        listing = await t.client.list_pages(CONFIGMAPS, BareObject, "a", labels="x=y", fields="z=1")
        assert [item.metadata.name for item in listing.items] == [f"m{n}" for n in range(5)]
        assert listing.resource_version == str(t.api.version)
        assert [seen.query.get("continue") for seen in t.api.seen] == [None, "2", "4"]
        assert {seen.query["limit"] for seen in t.api.seen} == {"500"}
        assert {seen.query["labelSelector"] for seen in t.api.seen} == {"x=y"}
        assert {seen.query["fieldSelector"] for seen in t.api.seen} == {"z=1"}


async def test_a_list_whose_token_expires_on_the_way_begins_anew() -> None:
    async with talking() as t:
        t.api.page_size = 2
        for n in range(3):
            t.api.put("a", f"m{n}", "x")

        async def first_page(request: web.Request) -> web.StreamResponse:
            t.api.list_answers.append(fakeapi.status(410, "Expired"))
            return t.api._list(request)

        t.api.list_answers.append(first_page)
        listing = await t.client.list_pages(CONFIGMAPS, BareObject)
        assert len(listing.items) == 3
        assert [seen.query.get("continue") for seen in t.api.seen] == [None, "2", None, "2"]


async def test_a_list_that_keeps_expiring_gives_up() -> None:
    async with talking() as t:
        t.api.answers.extend([fakeapi.status(410, "Expired")] * 9)
        with pytest.raises(errors.Gone):
            await t.client.list_pages(CONFIGMAPS, BareObject)
        assert len(t.api.seen) == 4


@pytest.mark.parametrize("body", ["no json", '{"items":[]}', "[]"])
async def test_a_list_that_is_none_is_said_to_be_none(body: str) -> None:
    async with talking() as t:
        t.api.answers.append(fakeapi.text(200, body))
        with pytest.raises(errors.Undecodable, match="no list"):
            await t.client.list_pages(CONFIGMAPS, BareObject)


async def test_items_of_the_wrong_shape_name_the_kind() -> None:
    async with talking() as t:
        t.api.answers.append(
            fakeapi.json({"metadata": {"resourceVersion": "1"}, "items": [{"metadata": 3}]})
        )
        with pytest.raises(errors.Undecodable, match="configmaps"):
            await t.client.list_pages(CONFIGMAPS, BareObject)


Write = Callable[[Client], Awaitable[bytes]]
WRITES: dict[str, Write] = {
    "create": lambda c: c.create(PODS, {"a": 1}, "n"),
    "create in": lambda c: c.create_in(PODS, "p", "eviction", {"a": 1}, "n"),
    "json patch": lambda c: c.json_patch(PODS, "p", [{"op": "test"}], "n"),
    "merge patch": lambda c: c.merge_patch(PODS, "p", {"a": 1}, "n"),
    "apply": lambda c: c.apply(PODS, "p", {"a": 1}, "n"),
    "delete": lambda c: c.delete(PODS, "p", "n"),
}
every_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())


@pytest.mark.parametrize(
    ("write", "method", "path", "media", "body", "query"),
    [
        (
            WRITES["create"],
            "POST",
            "/api/v1/namespaces/n/pods",
            "application/json",
            b'{"a":1}',
            {"fieldManager": "penstock-tester"},
        ),
        (
            lambda c: c.create(PODS, b'{"raw": 1}', "n", manager="me", strict=True),
            "POST",
            "/api/v1/namespaces/n/pods",
            "application/json",
            b'{"raw": 1}',
            {"fieldManager": "me", "fieldValidation": "Strict"},
        ),
        (
            WRITES["create in"],
            "POST",
            "/api/v1/namespaces/n/pods/p/eviction",
            "application/json",
            b'{"a":1}',
            {},
        ),
        (
            lambda c: c.json_patch(PODS, "p", [{"op": "test"}], "n", subresource="status"),
            "PATCH",
            "/api/v1/namespaces/n/pods/p/status",
            "application/json-patch+json",
            b'[{"op":"test"}]',
            {"fieldManager": "penstock-tester"},
        ),
        (
            lambda c: c.merge_patch(PODS, "p", {"a": 1}, "n", manager="me"),
            "PATCH",
            "/api/v1/namespaces/n/pods/p",
            "application/merge-patch+json",
            b'{"a":1}',
            {"fieldManager": "me"},
        ),
        (
            WRITES["apply"],
            "PATCH",
            "/api/v1/namespaces/n/pods/p",
            "application/apply-patch+yaml",
            b'{"a":1}',
            {"fieldManager": "penstock-tester", "force": "true"},
        ),
        (
            WRITES["delete"],
            "DELETE",
            "/api/v1/namespaces/n/pods/p",
            "application/json",
            b'{"apiVersion":"v1","kind":"DeleteOptions"}',
            {},
        ),
    ],
)
async def test_each_write_is_sent_as_the_api_server_reads_it(
    write: Write, method: str, path: str, media: str, body: bytes, query: dict[str, str]
) -> None:
    async with talking() as t:
        t.api.answers.append(fakeapi.json({"done": True}))
        assert msgspec.json.decode(await write(t.client)) == {"done": True}
        (seen,) = t.api.seen
        assert (seen.method, seen.path, seen.body, seen.query) == (method, path, body, query)
        assert seen.headers["Content-Type"] == media


def test_deletion_says_only_what_is_wanted() -> None:
    how = Deletion("u", "7", 0, "Background")
    assert msgspec.json.decode(how.body()) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Background",
    }


@every_write
async def test_writes_wait_out_429_since_nothing_happened(write: Write) -> None:
    async with talking() as t:
        busy = fakeapi.status(429, "TooManyRequests", headers={"Retry-After": "3"})
        t.api.answers.extend([busy, busy, fakeapi.json({})])
        await write(t.client)
        assert t.clock.slept == [3.0, 3.0]


@every_write
async def test_writes_are_never_repeated_after_a_lost_connection(write: Write) -> None:
    async with talking() as t:
        t.api.answers.extend([fakeapi.hang_up, fakeapi.json({})])
        with pytest.raises(errors.Unreachable):
            await write(t.client)
        assert len(t.api.seen) == 1


async def test_writes_are_not_repeated_on_a_reused_connection_either() -> None:
    async with talking() as t:
        t.api.answers.extend([fakeapi.json({}), fakeapi.hang_up, fakeapi.json({})])
        await t.client.raw_get("/warm")
        with pytest.raises(errors.Unreachable):
            await t.client.delete(PODS, "p", "n")
        assert len(t.api.seen) == 2


@every_write
async def test_writes_are_not_repeated_after_a_server_fault(write: Write) -> None:
    async with talking() as t:
        t.api.answers.append(fakeapi.status(500))
        with pytest.raises(errors.ServerFault):
            await write(t.client)
        assert len(t.api.seen) == 1


async def test_reads_are_repeated_after_lost_connections_a_few_times() -> None:
    async with talking() as t:
        t.api.answers.extend([fakeapi.hang_up, fakeapi.hang_up, fakeapi.json({})])
        await t.client.raw_get("/x")
        assert t.clock.slept == [0.0, 0.1]
        assert len(t.api.seen) == 3
        t.api.answers.extend([fakeapi.hang_up] * 20)
        with pytest.raises(errors.Unreachable, match=r"cannot reach http://127\.0\.0\.1"):
            await t.client.raw_get("/x")


BEHIND = fakeapi.text(504, '{"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}')


async def test_reads_wait_for_a_server_whose_copy_is_behind() -> None:
    async with talking() as t:
        t.api.answers.extend([BEHIND, BEHIND, fakeapi.json({})])
        await t.client.raw_get("/x")
        assert t.clock.slept == [0.0, 0.1]
        t.api.answers.extend([BEHIND] * 20)
        with pytest.raises(errors.ServerFault):
            await t.client.raw_get("/x")
        assert len(t.api.seen) == 3 + Patience().lost_attempts


@pytest.mark.parametrize("code", [500, 503, 504])
async def test_reads_are_not_repeated_after_other_faults_of_the_server(code: int) -> None:
    async with talking() as t:
        t.api.answers.append(fakeapi.status(code))
        with pytest.raises(errors.ServerFault):
            await t.client.raw_get("/x")
        assert len(t.api.seen) == 1


async def test_a_429_without_retry_after_is_a_rule_and_not_waited_out() -> None:
    async with talking() as t:
        t.api.answers.append(fakeapi.status(429))
        with pytest.raises(errors.TooManyRequests):
            await t.client.raw_get("/x")
        assert t.clock.slept == []


async def test_a_server_that_stays_busy_is_given_up_and_long_waits_are_cut() -> None:
    async with talking() as t:
        t.api.answers.extend(
            [fakeapi.status(429, headers={"Retry-After": "1000"}) for _ in range(9)]
        )
        with pytest.raises(errors.TooManyRequests):
            await t.client.raw_get("/x")
        assert t.clock.slept == [30.0] * 5


async def test_a_server_that_says_nothing_is_unreachable_in_the_end() -> None:
    async with talking(patience=Patience(request_seconds=0.05, lost_attempts=2)) as t:
        t.api.answers.extend([fakeapi.say_nothing] * 2)
        with pytest.raises(errors.Unreachable):
            await t.client.raw_get("/x")


async def test_redirects_are_not_followed_with_our_credentials() -> None:
    async with talking(FixedHeader("Bearer s")) as t:

        async def elsewhere(_: web.Request) -> web.StreamResponse:
            return web.Response(status=302, headers={"Location": "/other"})

        t.api.answers.append(elsewhere)
        await t.client.raw_get("/x")
        assert [seen.path for seen in t.api.seen] == ["/x"]


class Renewable:
    """Tokens t0, t1, ... : the next one after each refusal."""

    def __init__(self) -> None:
        self.count = 0

    async def authorization(self) -> str | None:
        return f"Bearer t{self.count}"

    def refused(self) -> bool:
        self.count += 1
        return True


async def test_a_refused_token_is_renewed_and_tried_once_more() -> None:
    async with talking(Renewable()) as t:
        t.api.answers.extend([fakeapi.status(401, "Unauthorized"), fakeapi.json({})])
        await t.client.create(PODS, {}, "n")
        assert [s.headers["Authorization"] for s in t.api.seen] == ["Bearer t0", "Bearer t1"]


async def test_a_token_refused_twice_is_an_error() -> None:
    async with talking(Renewable()) as t:
        t.api.answers.extend([fakeapi.status(401, "Unauthorized")] * 3)
        with pytest.raises(errors.Unauthorized):
            await t.client.raw_get("/x")
        assert len(t.api.seen) == 2


async def test_a_token_that_cannot_be_renewed_is_not_tried_again() -> None:
    async with talking(FixedHeader("Bearer x")) as t:
        t.api.answers.append(fakeapi.status(401, "Unauthorized"))
        with pytest.raises(errors.Unauthorized):
            await t.client.raw_get("/x")
        assert len(t.api.seen) == 1


async def test_a_client_that_is_not_open_says_so() -> None:
    client = Client(Credentials("http://127.0.0.1:1", None, NOBODY), "x", LeapingClock())
    with pytest.raises(RuntimeError, match="async with"):
        await client.raw_get("/x")


async def test_probe_asks_for_one_object_only() -> None:
    async with talking() as t:
        await t.client.probe(CONFIGMAPS, "a")
        assert t.api.seen[0].query == {"limit": "1"}
