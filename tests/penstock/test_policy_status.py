"""What is said of the cluster's policy: whether it is in force, since when, and what is wrong."""

from datetime import UTC, datetime

import msgspec
import pytest

from api import exits, names
from api.jsons import Json, JsonObject
from controller.gangs import scan_results
from controller.gangs.policy_keeping import PolicyStatus, judged, with_candidate
from controller.gangs.scan_results import Looked, Tally
from kube.access import Credentials
from kube.client import Client
from kube.tokens import FixedHeader
from penstock.ending import AskedWronglyError
from penstock.plugin import judging, planning
from penstock.plugin.reports import Report
from penstock.policy import in_force
from penstock.policy.in_force import Config, Holds, State
from policies import policy_source
from policies.findings import Finding
from policies.policy_queues import Mode
from policies.problems import Problem
from tests.support import fakeapi
from tests.support.fakeapi import FakeApi
from tests.support.manualclock import LeapingClock
from tests.support.scenes import shown

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
GOOD = "queues: [{name: small, namespaces: ['*'], default: true, limits: {gangs: 2}}]"
BETTER = "mode: warn"
BAD = "queues:\n  - nam: small\n    namespces: []\n"
HERE = "penstock-system"


def config(data: dict[str, str], hour: int = 10, annotation: PolicyStatus | None = None) -> Config:
    """A ConfigMap as the API server gives it, each key written by somebody at that hour."""
    writers: list[Json] = [
        {
            "manager": "kubectl-edit", "operation": "Update", "time": f"2026-01-02T{hour}:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {f"f:{key}": {} for key in data}},
        },
        {
            "manager": "gangs", "operation": "Update", "time": "2026-01-02T11:59:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:annotations": {}}},
        },
    ]  # fmt: skip
    metadata: JsonObject = {"managedFields": writers}
    if annotation is not None:
        told = msgspec.json.encode(annotation).decode()
        metadata["annotations"] = {names.POLICY_STATUS: told}
    body: JsonObject = {"metadata": metadata, "data": {**data}}
    return msgspec.json.decode(msgspec.json.encode(body), type=Config)


def written(text: str, annotation: PolicyStatus | None = None, **more: str) -> Config:
    return config({names.POLICY_KEY: text, **more}, 11, annotation)


def kept(text: str) -> Config:
    return config({names.POLICY_KEY: text}, 10)


EMPTY = Config()


def asking(api: FakeApi) -> Client:
    return Client(Credentials(api.url, None, FixedHeader()), "plugin", LeapingClock())


def told(policy: Config | None, kept: Config | None, scan: Config | None = None) -> Report:
    seen = in_force.look(HERE, NOW, policy, kept, scan)
    return Report(in_force.data(seen), lambda wide: in_force.drawn(seen, wide=wide))


def force(report: Report) -> JsonObject:
    found = report.data["inForce"]
    assert isinstance(found, dict)
    return found


def test_what_was_kept_is_in_force_since_it_was() -> None:
    report = told(written(GOOD), kept(GOOD))
    revision = policy_source.read("", GOOD).revision
    assert report.data["state"] == State.IN_FORCE
    assert force(report)["from"] == Holds.WRITTEN
    assert force(report)["since"] == "2026-01-02T10:00:00Z"
    assert report.data["written"] == {"at": "2026-01-02T11:00:00Z", "by": "kubectl-edit"}
    said = f"{HERE}/penstock-policy is in force for 2h, as revision {revision}\n"
    assert shown(report).startswith(f"{said}  mode enforce; 1 queue")


def test_a_new_one_is_not_in_force_before_it_was_kept() -> None:
    report = told(written(BETTER), kept(GOOD))
    assert report.data["state"] == State.NEW
    assert force(report)["from"] == Holds.LAST_GOOD
    assert force(report)["revision"] == policy_source.read("", GOOD).revision
    text = shown(report)
    assert "not in force yet; written 60m ago by kubectl-edit" in text
    assert "the last good one is in force for 2h" in text


@pytest.mark.parametrize("before", [GOOD, ""], ids=["after a good one", "as the first"])
def test_one_that_cannot_be_gone_by_is_told_with_every_fault_and_what_holds(before: str) -> None:
    report = told(written(BAD), kept(before) if before else EMPTY)
    assert report.data["state"] == State.REFUSED
    faults = report.data["faults"]
    assert isinstance(faults, list)
    fields = {(each["line"], each["field"]) for each in faults if isinstance(each, dict)}
    assert {(2, "queues[0].nam"), (3, "queues[0].namespces")} <= fields
    assert force(report)["from"] == (Holds.LAST_GOOD if before else Holds.BUILT_IN)
    assert force(report)["since"] == ("2026-01-02T10:00:00Z" if before else None)
    text = shown(report)
    assert "is not in force; written 60m ago" in text
    assert "line 2: queues[0].nam: " in text
    assert f"the {'last good' if before else 'built-in'} one is in force" in text


def test_without_a_policy_the_last_good_one_or_the_built_in_is_in_force() -> None:
    for there, holds in ((kept(GOOD), Holds.LAST_GOOD), (EMPTY, Holds.BUILT_IN)):
        report = told(None, there)
        assert (report.data["state"], force(report)["from"]) == (None, holds)
        assert "no policy is written" in shown(report)


def test_what_gangs_has_kept_is_in_force_although_this_version_cannot_read_it() -> None:
    newer = "words of a newer version: 1"
    assert told(written(newer), kept(newer)).data["state"] == State.IN_FORCE


def test_what_gangs_says_against_a_policy_that_seems_good_is_told() -> None:
    said = PolicyStatus(valid=False, revision="", fault="line 1: there is no such key")
    text = shown(told(written(BETTER, said), kept(GOOD)))
    assert "it said last: line 1: there is no such key" in text


def test_what_has_no_effect_is_doubted() -> None:
    over = (
        "exemptions: [{id: x, reason: y, rules: [no-such-rule], namespaces: [a],"
        " expires: 2026-01-01T00:00:00Z}]"
    )
    report = told(written(over), kept(over))
    assert "hardly meant" in shown(report), shown(report)
    assert "no rule is called 'no-such-rule'" in shown(report)


@pytest.mark.parametrize(
    ("candidate", "state"), [(BETTER, "Tried"), (BAD, "Refused")], ids=["good", "bad"]
)
def test_a_candidate_is_told_of_beside_it(candidate: str, state: str) -> None:
    status = with_candidate(judged(GOOD, None).status, candidate)
    more = {names.CANDIDATE_KEY: candidate}
    report = told(config({names.POLICY_KEY: GOOD, **more}, 11, status), kept(GOOD))
    found = report.data["candidate"]
    assert isinstance(found, dict)
    assert found["state"] == state
    assert bool(found["faults"]) == (state == "Refused")
    unlooked = told(config({names.POLICY_KEY: GOOD, **more}), kept(GOOD)).data["candidate"]
    assert isinstance(unlooked, dict)
    assert unlooked["state"] == ("New" if state == "Tried" else "Refused")


def test_what_of_all_that_is_there_breaks_it_is_told_by_rule() -> None:
    revision = policy_source.read("", GOOD).revision
    tally = Tally(revision)
    finding = Finding("queue-gangs-are-few", Mode.ENFORCE, Problem("spec.replicas", "too many"))
    for name in ("wide", "wider"):
        tally.add(Looked("grove.io/v1alpha1", "PodCliqueSet", "team-a", name, "u", (finding,)))
    scan = config({names.SCAN_KEY: scan_results.summary(tally, NOW)})
    report = told(written(GOOD), kept(GOOD), scan)
    assert isinstance(report.data["scan"], dict)
    text, wide = shown(report), shown(report, wide=True)
    row = "queue-gangs-are-few   enforce         2   PodCliqueSet team-a/wide: spec.replicas: too"
    assert row in text
    assert "team-a/wider" not in text
    assert "team-a/wider" in wide
    assert "by revision" in shown(told(written(BETTER), kept(BETTER), scan))


async def test_it_ends_with_what_became_of_the_policy() -> None:
    for text, held, code in (
        (GOOD, GOOD, exits.OK), (BETTER, GOOD, planning.WAITS), (BAD, GOOD, planning.REFUSED),
    ):  # fmt: skip
        api = FakeApi()
        maps = (written(text), kept(held), EMPTY)
        api.answers.extend(fakeapi.json(msgspec.to_builtins(each)) for each in maps)
        async with fakeapi.serving(api), asking(api) as client:
            report = await in_force.asked(client, "default", system=HERE)
        assert report.code == code
        assert [each.path.rpartition("/")[2] for each in api.seen] == [
            names.POLICY_CONFIG, names.KEPT_POLICY_CONFIG, names.SCAN_CONFIG,
        ]  # fmt: skip


async def test_where_there_is_nothing_of_penstock_it_says_how_to_name_the_place() -> None:
    api = FakeApi()
    api.answers.extend([fakeapi.status(404, "NotFound")] * 2)
    async with fakeapi.serving(api), asking(api) as client:
        with pytest.raises(AskedWronglyError, match="--penstock-namespace") as failed:
            await in_force.asked(client, "default", system="elsewhere")
    assert failed.value.code == judging.NOT_FOUND


async def test_who_may_not_read_it_is_told_which_role_to_ask_for() -> None:
    api = FakeApi()
    api.answers.append(fakeapi.status(403, "Forbidden"))
    async with fakeapi.serving(api), asking(api) as client:
        with pytest.raises(AskedWronglyError, match="ClusterRole penstock-viewer") as failed:
            await in_force.asked(client, "default", system=HERE)
    assert failed.value.code == exits.BAD_CREDENTIALS
