"""The last good policy outlives bad ones, and people are told what became of theirs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import msgspec
import pytest

from api import names
from api.jsons import JsonObject
from controller.gangs import patience
from controller.gangs.policy_keeping import (
    CANDIDATE_NOT_TRIED,
    NOT_TAKEN,
    TAKEN,
    Kept,
    PolicyKeeper,
    PolicyStatus,
    Rejected,
    judged,
)
from controller.voicing import Tell
from kube.errors import Conflict
from kube.resources import CONFIGMAPS
from policies import policy_source
from policies.policy import Policy, TimeoutPolicy
from policies.policy_source import BadPolicyError
from tests.support.patchapi import PatchApi, patching

GOOD = "pods: {queue: a}"
BETTER = "pods: {queue: b}"
BAD = "pods:\n  queeu: a\n"


def test_a_good_policy_is_kept_under_its_revision() -> None:
    first, second = judged(GOOD, None), judged(BETTER, GOOD)
    assert isinstance(first, Kept)
    assert isinstance(second, Kept)
    assert (first.text, first.status.valid, first.status.fault) == (GOOD, True, "")
    assert first.status.revision != second.status.revision


@pytest.mark.parametrize("kept", [None, GOOD, "words of an older version: 1"])
def test_a_bad_one_is_told_with_line_and_field_and_what_holds_instead(kept: str | None) -> None:
    verdict = judged(BAD, kept)
    assert isinstance(verdict, Rejected)
    assert "line 2: pods.queeu: there is no such key" in verdict.status.fault
    good = judged(GOOD, None)
    assert verdict.status.revision == (good.status.revision if kept == GOOD else "")


@dataclass
class Voice:
    told: list[Tell] = field(default_factory=list)

    def tell(self, tell: Tell, namespace: str, *, news: bool = False) -> None:
        assert (namespace, news) == ("ours", True)
        self.told.append(tell)


POLICY = CONFIGMAPS.path("ours", names.POLICY_CONFIG)
KEPT = CONFIGMAPS.path("ours", names.KEPT_POLICY_CONFIG)


@dataclass
class Stand:
    api: PatchApi
    keeper: PolicyKeeper
    voice: Voice

    def says(self, text: str, candidate: str | None = None) -> None:
        """A person edits the policy."""
        found = self.api.objects.get(POLICY, {}).get("metadata")
        before = found.get("annotations") if isinstance(found, dict) else None
        metadata: JsonObject = {"name": names.POLICY_CONFIG, "uid": "u"}
        metadata["annotations"] = before or {}
        data: JsonObject = {names.POLICY_KEY: text}
        if candidate is not None:
            data[names.CANDIDATE_KEY] = candidate
        self.api.put(POLICY, {"metadata": metadata, "data": data})

    def kept(self) -> object:
        data = self.api.objects[KEPT].get("data") or {}
        assert isinstance(data, dict)
        return data.get(names.POLICY_KEY)

    def status(self) -> PolicyStatus:
        metadata = self.api.objects[POLICY]["metadata"]
        assert isinstance(metadata, dict)
        annotations = metadata["annotations"]
        assert isinstance(annotations, dict)
        told = annotations[names.POLICY_STATUS]
        return msgspec.json.decode(str(told), type=PolicyStatus)


@asynccontextmanager
async def keeping() -> AsyncIterator[Stand]:
    async with patching() as (api, client, _):
        api.put(KEPT, {"metadata": {"name": names.KEPT_POLICY_CONFIG}})
        voice = Voice()
        yield Stand(api, PolicyKeeper(client, "ours", lambda: 1, voice), voice)


async def test_a_good_policy_is_kept_and_told_of_once() -> None:
    async with keeping() as stand:
        stand.says(GOOD)
        for _ in range(3):
            await stand.keeper.look()
        assert stand.kept() == GOOD
        assert stand.status().valid
        assert len(stand.api.writes) == 2
        assert [tell.reason for tell in stand.voice.told] == [TAKEN]


async def test_a_bad_one_leaves_the_last_good_one_and_says_where_it_is_bad() -> None:
    async with keeping() as stand:
        stand.says(GOOD)
        await stand.keeper.look()
        revision = stand.status().revision
        stand.says(BAD)
        await stand.keeper.look()
        assert stand.kept() == GOOD
        status = stand.status()
        assert (status.valid, status.revision) == (False, revision)
        assert "line 2: pods.queeu" in status.fault
        assert [tell.reason for tell in stand.voice.told] == [TAKEN, NOT_TAKEN]
        assert stand.voice.told[-1].warning


async def test_what_is_taken_away_stays_kept() -> None:
    async with keeping() as stand:
        stand.says(GOOD)
        await stand.keeper.look()
        del stand.api.objects[POLICY]
        await stand.keeper.look()
        stand.api.put(POLICY, {"metadata": {"name": names.POLICY_CONFIG, "uid": "v"}})
        await stand.keeper.look()
        assert stand.kept() == GOOD


async def test_a_successor_of_one_who_died_between_the_two_writes_says_the_rest() -> None:
    async with keeping() as stand:
        stand.says(GOOD)
        stand.api.objects[KEPT]["data"] = {names.POLICY_KEY: GOOD}
        await stand.keeper.look()
        assert stand.api.writes == [names.POLICY_CONFIG]
        assert stand.status().valid


async def test_a_policy_that_changes_meanwhile_is_not_told_what_became_of_another() -> None:
    async with keeping() as stand:
        stand.says(GOOD)

        def edited(write: str) -> None:
            if write.endswith(names.POLICY_CONFIG):
                stand.says(BAD)

        stand.api.before = edited
        with pytest.raises(Conflict):
            await stand.keeper.look()
        stand.api.before = lambda _: None
        await stand.keeper.look()
        assert not stand.status().valid


async def test_a_candidate_is_never_kept_and_a_bad_one_is_told_of_alone() -> None:
    async with keeping() as stand:
        stand.says(GOOD, candidate="pods: {queue: tried}")
        await stand.keeper.look()
        good = stand.status()
        assert (good.valid, good.candidate_fault) == (True, "")
        assert good.candidate_revision not in ("", good.revision)
        stand.says(GOOD, candidate=BAD)
        for _ in range(2):
            await stand.keeper.look()
        status = stand.status()
        assert (status.valid, status.revision) == (True, good.revision)
        assert status.candidate_revision == ""
        assert "key candidate.yaml: line 2: pods.queeu" in status.candidate_fault
        assert stand.kept() == GOOD
        assert [tell.reason for tell in stand.voice.told] == [TAKEN, CANDIDATE_NOT_TRIED]
        stand.says(GOOD)
        await stand.keeper.look()
        assert stand.status() == PolicyStatus(valid=True, revision=good.revision)
        assert len(stand.voice.told) == 2


WAITS = "timeouts: {gang: 30m}\n"


async def test_whoever_goes_by_the_policy_is_told_of_the_one_in_force() -> None:
    async with keeping() as stand:
        told: list[str | None] = []
        stand.keeper.goes_by = lambda policy: told.append(policy.timeouts.gang)
        await stand.keeper.look()
        assert told == []
        stand.says(WAITS)
        await stand.keeper.look()
        stand.says(BAD)
        await stand.keeper.look()
        del stand.api.objects[POLICY]
        await stand.keeper.look()
        assert told == ["30m", "30m", "30m"]
        stand.says("")
        await stand.keeper.look()
        assert told[-1] is None


@pytest.mark.parametrize(
    ("said", "seconds"), [(None, 60), ("30m", 1800), ("0", 0), ("0s", 0), ("1h30m", 5400)]
)
def test_the_policys_gang_timeout_goes_before_the_flags(said: str | None, seconds: int) -> None:
    policy = Policy(timeouts=TimeoutPolicy(gang=said))
    flag = timedelta(seconds=60)
    assert patience.of_policy(policy, flag) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["soon", "-1s", "30"])
def test_a_gang_timeout_that_is_none_is_a_fault_of_the_policy(text: str) -> None:
    with pytest.raises(BadPolicyError, match=r"line 1: timeouts\.gang"):
        policy_source.read("p", f"timeouts: {{gang: '{text}'}}")
