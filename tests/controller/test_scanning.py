"""Everything that is there is held against the policy, slowly, and nothing of it is touched."""

import asyncio

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry
from typing_extensions import override

from api import names
from api.jsons import JsonObject
from controller.gangs.scan_metering import Meters
from controller.gangs.scanning import (
    LOOK_EVERY,
    PAUSE,
    RETRIES,
    SCAN_EVERY,
)
from kube.errors import ApiError
from kube.resources import (
    CONFIGMAPS,
    MUTATING_WEBHOOKS,
    OPEN_REPORTS,
    PODCLIQUESETS,
    PODS,
    POLICY_REPORTS,
)
from tests.support.chance import dice
from tests.support.gangpods import PLAIN, pod
from tests.support.scanned import A_SET, FEW, standing


async def test_sets_and_pods_of_plain_gangs_are_counted_by_the_rules_they_break() -> None:
    async with standing() as stand:
        stand.says(FEW)
        stand.a_set("small")
        stand.a_set("large", 3)
        stand.put(PODS, {**pod({**PLAIN}), "spec": {"containers": [{"image": "x"}]}}, "worker")
        await stand.scanner.look()
        assert stand.said()["lookedAt"] == {"PodCliqueSet": 2, "Pod": 1}
        assert stand.broken() == {"digests": 3, "queue-gangs-are-few": 1}
        assert stand.api.writes == [names.SCAN_CONFIG], "nothing else is touched"


async def test_who_submitted_it_is_not_asked() -> None:
    async with standing() as stand:
        stand.says(FEW)
        stand.a_set("small")
        await stand.scanner.look()
        assert "queue-submitter" not in stand.broken()


async def test_reports_are_written_where_they_are_kept_and_go_when_all_is_well() -> None:
    async with standing(reports=True) as stand:
        stand.says(FEW)
        stand.a_set("large", 3, "a")
        stand.a_set("other", 3, "b")
        await stand.scanner.look()
        report = stand.report("a")
        assert report is not None
        assert report["summary"] == {"pass": 0, "fail": 1, "warn": 1, "error": 0, "skip": 0}
        stand.says(FEW.replace("gangs: 1", "gangs: 9").replace("mode: warn", "mode: 'off'"))
        await stand.scanner.look()
        assert stand.report("a") is None
        assert stand.report("b") is None


async def test_each_kind_of_report_is_written_that_is_served() -> None:
    async with standing(reports=True) as stand:
        stand.api.served.add(OPEN_REPORTS.plural)
        stand.says(FEW)
        stand.a_set("large", 3)
        await stand.scanner.look()
        report = stand.report()
        other = stand.api.objects.get(OPEN_REPORTS.path("team", names.POLICY_REPORT))
        assert report is not None
        assert other is not None
        assert (other["apiVersion"], other["kind"]) == ("openreports.io/v1alpha1", "Report")
        assert other["results"] == report["results"]
        stand.says("")
        await stand.scanner.look()
        assert OPEN_REPORTS.path("team", names.POLICY_REPORT) not in stand.api.objects


async def test_scans_are_counted_and_timed() -> None:
    async with standing() as stand:
        registry = CollectorRegistry()
        stand.scanner.meter = Meters(registry)
        stand.says(FEW)
        stand.a_set("large", 3)
        await stand.scanner.look()
        judged = registry.get_sample_value("penstock_gangs_scan_objects_total", A_SET)
        took = registry.get_sample_value("penstock_gangs_scan_seconds")
        assert judged == 1
        assert took == pytest.approx(PAUSE)


async def test_a_report_that_says_it_already_is_not_written_again() -> None:
    async with standing(reports=True) as stand:
        stand.says(FEW)
        stand.a_set("large", 3)
        await stand.scanner.look()
        before = len(stand.api.writes)
        await stand.scanner.look(again=True)
        assert stand.api.writes[before:] == [names.SCAN_CONFIG]
        stand.a_set("another", 3)
        await stand.scanner.look(again=True)
        assert stand.api.writes[before + 1 :] == [names.POLICY_REPORT, names.SCAN_CONFIG]


async def test_a_report_of_another_s_by_our_name_is_left_alone() -> None:
    theirs: JsonObject = {"summary": {"fail": 99}}
    async with standing(reports=True) as stand:
        stand.says(FEW)
        stand.put(POLICY_REPORTS, theirs, names.POLICY_REPORT)
        stand.put(POLICY_REPORTS, theirs, names.POLICY_REPORT, "empty")
        stand.a_set("large", 3)
        await stand.scanner.look()
        for namespace in ("team", "empty"):
            found = stand.report(namespace)
            assert found is not None
            assert found["summary"] == {"fail": 99}


async def test_what_goes_meanwhile_is_passed_over() -> None:
    async with standing() as stand:
        stand.says(FEW)
        stand.a_set("a")
        stand.a_set("b")
        listed = stand.api.asked.append

        class Going(list[str]):
            @override
            def append(self, path: str) -> None:
                listed(path)
                if path.endswith("/a"):
                    stand.api.objects.pop(PODCLIQUESETS.path("team", "b"), None)

        stand.api.asked = Going()
        await stand.scanner.look()
        assert stand.said()["lookedAt"] == {"PodCliqueSet": 1}


async def test_the_last_good_policy_is_gone_by_where_the_one_written_cannot_be() -> None:
    async with standing() as stand:
        stand.says("mode: strict")
        stand.put(CONFIGMAPS, {"data": {names.POLICY_KEY: FEW}}, names.KEPT_POLICY_CONFIG, "ours")
        stand.a_set("large", 3)
        await stand.scanner.look()
        assert stand.broken()["queue-gangs-are-few"] == 1


async def test_without_a_policy_nothing_is_even_looked_at() -> None:
    async with standing() as stand:
        stand.a_set("large", 3)
        await stand.scanner.look()
        assert stand.said()["lookedAt"] == {}
        assert PODCLIQUESETS.path() not in stand.api.asked


async def test_sets_of_another_maker_are_left_out() -> None:
    async with standing(sets=False) as stand:
        stand.says(FEW)
        stand.a_set("large", 3)
        await stand.scanner.look()
        assert stand.said()["lookedAt"] == {}


async def test_namespaces_that_admission_leaves_out_are_left_out() -> None:
    selector: JsonObject = {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["tools"]},
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team"]},
            {"key": "other", "operator": "NotIn", "values": ["team"]},
        ]
    }
    configuration: JsonObject = {"metadata": {}, "webhooks": [{"namespaceSelector": selector}, {}]}
    async with standing() as stand:
        stand.api.put(MUTATING_WEBHOOKS.path(None, names.WEBHOOK_CONFIGURATION), configuration)
        stand.says(FEW)
        for namespace in ("team", "tools", "ours", "kube-system"):
            stand.a_set("large", 3, namespace)
        await stand.scanner.look()
        assert stand.said()["lookedAt"] == {"PodCliqueSet": 1}


async def test_an_object_rests_for_a_moment_so_that_few_are_asked_for_a_second() -> None:
    async with standing() as stand:
        stand.says(FEW)
        for i in range(5):
            stand.a_set(f"s{i}")
        await stand.scanner.look()
        assert stand.clock.slept.count(PAUSE) == 5


async def test_who_no_longer_leads_writes_nothing() -> None:
    async with standing(reports=True) as stand:
        stand.says(FEW)
        stand.a_set("large", 3)
        stand.leads.append(None)
        await stand.scanner.look()
        assert stand.api.writes == []


@pytest.mark.parametrize("write", [1, 2])
async def test_a_successor_of_one_who_died_at_any_write_comes_to_the_same(write: int) -> None:
    async with standing(reports=True) as stand:
        stand.says(FEW)
        stand.a_set("large", 3)
        stand.a_set("large", 3, "b")
        done = 0

        def die(_: str) -> None:
            nonlocal done
            done += 1
            if done > write:
                raise web.HTTPInternalServerError

        stand.api.before = die
        with pytest.raises(ApiError):
            await stand.scanner.look()
        stand.api.before = lambda _: None
        await stand.scanner.look()  # as another would: nothing was remembered
        for namespace in ("team", "b"):
            report = stand.report(namespace)
            assert report is not None
            assert report["summary"] == {"pass": 0, "fail": 1, "warn": 1, "error": 0, "skip": 0}
        assert stand.broken()["queue-gangs-are-few"] == 2


async def test_a_namespace_that_goes_does_not_keep_others_from_their_report() -> None:
    async with standing(reports=True) as stand:
        stand.says(FEW)
        stand.a_set("large", 3)
        stand.a_set("large", 3, "b")

        def terminating(path: str) -> None:
            if "/namespaces/b/" in path:
                raise web.HTTPForbidden

        stand.api.before = terminating
        await stand.scanner.look()
        assert stand.report("b") is None
        assert stand.report("team") is not None
        assert stand.broken()["queue-gangs-are-few"] == 2


async def test_what_fails_is_tried_again_after_a_while_and_not_at_once() -> None:
    async with standing() as stand:
        stand.says(FEW)
        stand.a_set("small")
        tries: list[float] = []

        def refuse(_: str) -> None:
            tries.append(stand.clock.monotonic())
            if len(tries) == 3:  # before it hears of that one
                running.cancel()
            raise web.HTTPForbidden

        stand.api.before = refuse
        registry = CollectorRegistry()
        stand.scanner.meter = Meters(registry)
        running = asyncio.ensure_future(stand.scanner.run(dice()))
        done, _ = await asyncio.wait([running], timeout=30)
        assert done, f"tried {len(tries)} times"
        assert registry.get_sample_value("penstock_gangs_scan_failures_total") == 2.0
        first, second, third = tries
        assert second - first >= RETRIES.floor
        assert third - second >= RETRIES.floor


@pytest.mark.no_cover
async def test_it_scans_when_the_policy_is_another_and_now_and_then() -> None:
    async with standing() as stand:
        stand.says(FEW)
        stand.a_set("small")
        looks: list[float] = []
        limit = 3 * SCAN_EVERY
        begun = stand.clock.monotonic()

        class OverError(Exception):
            pass

        def noted(write: str) -> None:
            looks.append(stand.clock.monotonic() - begun)
            if len(looks) == 1:
                stand.says(FEW.replace("gangs: 1", "gangs: 2"))
                stand.scanner.wake()

        stand.api.before = noted
        original = stand.clock.sleep

        async def sleep(seconds: float) -> None:
            if stand.clock.monotonic() - begun > limit:
                raise OverError
            # A wake without another policy is no reason to scan.
            if seconds == LOOK_EVERY:
                stand.scanner.wake()
            await original(seconds)

        stand.clock.sleep = sleep  # type: ignore[method-assign]
        with pytest.raises(OverError):
            await stand.scanner.run(dice())
        assert looks[0] < 2 * LOOK_EVERY
        assert looks[1] < looks[0] + 3 * LOOK_EVERY
        assert len(looks) == 4
        assert looks[2] - looks[1] >= SCAN_EVERY
