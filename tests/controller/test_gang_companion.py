"""Beside another maker of gangs: whose pods are whose, what comes first, and what is written."""

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.models import Condition
from api.podgang import Phase, PodGangStatus
from api.streams import Custom, Pod
from controller.gangs import companion, reporting
from controller.gangs.deciding import Wait, next_step
from controller.gangs.modes import Mode
from controller.podgang import Gang, read_gang
from tests.support.gangscene import KEY, bare, encoded, gang_of, scene
from tests.support.patchapi import merged_with
from tests.support.sets import NOW, gang, member, pod_clique

BESIDE = Mode(companion=True)
SETS_OFF = Mode(sets=False)


def labelled(pod: Pod, **labels: str) -> Pod:
    told = {f"grove.io/{key.replace('_', '-')}": text for key, text in labels.items()}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=told))


def unowned(pod: Pod) -> Pod:
    meta = msgspec.structs.replace(pod.metadata, owner_references=())
    return msgspec.structs.replace(pod, metadata=meta)


def alone(found: Gang) -> Gang:
    meta = msgspec.structs.replace(found.metadata, owner_references=())
    return Gang(meta, found.spec, found.status)


OF_NOBODY = alone(gang({"a": (1, 1)}))
MINE = unowned(labelled(member("a", 0), podgang="demo-0", podclique="a"))


@pytest.mark.parametrize(
    ("pod", "whose"),
    [
        (MINE, [("a", 0)]),
        (unowned(labelled(member("a", 0), podgang="other", podclique="a")), []),
        (unowned(labelled(member("a", 0), podgang="demo-0", podclique="b")), []),
        (unowned(member("a", 0)), []),
    ],
)
def test_pods_of_a_gang_that_nobody_owns_are_told_by_their_labels(
    pod: Pod, whose: list[tuple[str, int]]
) -> None:
    found = companion.members_of(OF_NOBODY, {("default", "a-0"): pod}, {})
    assert [member.slot for member in found] == whose


def test_pods_of_a_gang_with_an_owner_are_told_by_theirs_here_too() -> None:
    owned = gang({"a": (1, 1)})
    cliques = {"a": pod_clique("a", 1)}
    stranger = unowned(labelled(member("a", 0), podgang="demo-0", podclique="a"))
    assert companion.members_of(owned, {("default", "a-0"): stranger}, cliques) == ()
    (mine,) = companion.members_of(owned, {("default", "a-0"): member("a", 0)}, cliques)
    assert mine.slot == ("a", 0)


@pytest.mark.parametrize("pod_first", [True, False])
async def test_a_scaled_gang_is_told_by_its_pods(*, pod_first: bool) -> None:
    async with scene(mode=BESIDE) as (s, _, _):
        pod = encoded(labelled(member("a", 0), podgang="demo-0", base_podgang="base"), 9)
        scaled = msgspec.json.encode(gang_of("demo-0", ["a-0"], 8))
        if pod_first:
            s.pods.observe(pod)
        s.gangs.observe(scaled)
        s.pods.observe(pod)
        found = s.world.view(KEY)
        assert found is not None
        assert found.gang.base == ("default", "base")
        step = next_step(found, NOW)
        assert isinstance(step, Wait)
        assert step.reason == names.REASON_WAITING_FOR_BASE


async def test_alone_what_pods_say_of_a_base_means_nothing() -> None:
    async with scene() as (s, _, _):
        s.pods.observe(encoded(labelled(member("a", 0), podgang="demo-0", base_podgang="b"), 9))
        s.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 8)))
        found = s.world.view(KEY)
        assert found is not None
        assert found.gang.base is None


async def test_startup_order_is_not_kept_by_us() -> None:
    clique = encoded(pod_clique("a", 1, "b"), 7)
    for mode, kept in ((Mode(), True), (BESIDE, False)):
        async with scene(mode=mode) as (s, _, _):
            s.cliques.observe(clique)
            s.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 8)))
            found = s.world.view(KEY)
            assert found is not None
            assert [m.slot for m in found.members] == [("a", 0)]
            assert bool(found.cliques) == kept


async def test_while_sets_are_off_their_gangs_are_nobodys_business() -> None:
    async with scene(mode=SETS_OFF) as (s, _, _):
        s.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 8)))
        assert s.world.view(KEY) is None


THEIRS: JsonObject = {
    "type": "Initialized", "status": "True", "reason": "x", "message": "theirs",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}  # fmt: skip


def stored(status: JsonObject) -> tuple[JsonObject, Gang]:
    body = {**gang_of("demo-0", ["a-0"], 8), "status": status}
    found = read_gang(msgspec.json.decode(msgspec.json.encode(body), type=Custom))
    assert found is not None
    return body, found


def wanted(*, phase: Phase = Phase.RUNNING) -> PodGangStatus:
    said = Condition(
        type=names.SCHEDULED, status="True", reason=names.REASON_BOUND,
        last_transition_time="2026-01-01T00:00:01Z",
    )  # fmt: skip
    return PodGangStatus(phase=phase, placement_score=1.0, conditions=[said])


def test_what_others_say_of_their_gang_is_kept_to_the_letter() -> None:
    body, found = stored({"phase": "Pending", "conditions": [THEIRS]})
    patch = companion.status_patch(found, companion.ours(found, wanted()))
    after = merged_with(body, patch)["status"]
    assert isinstance(after, dict)
    assert after["phase"] == "Pending"
    assert "placementScore" not in after
    conditions = after["conditions"]
    assert isinstance(conditions, list)
    assert conditions[0] == THEIRS, "nothing left out, and nothing filled in"
    assert [c["type"] for c in conditions if isinstance(c, dict)] == ["Initialized", "Scheduled"]
    meta: Json = patch["metadata"]
    assert meta == {"resourceVersion": "8"}, "whoever was faster wins"


def test_once_it_is_said_nothing_is_written_again() -> None:
    body, found = stored({"phase": "Pending", "conditions": [THEIRS]})
    assert not reporting.same(found.status, companion.ours(found, wanted()))
    after = merged_with(body, companion.status_patch(found, companion.ours(found, wanted())))
    again = read_gang(msgspec.json.decode(msgspec.json.encode(after), type=Custom))
    assert again is not None
    assert reporting.same(again.status, companion.ours(again, wanted()))


def test_of_a_gang_that_we_made_all_is_ours_to_say() -> None:
    body = bare(
        "PodGang", "train", 8, spec={"podgroups": []}, status={"conditions": [THEIRS]}
    )  # fmt: skip
    meta = body["metadata"]
    assert isinstance(meta, dict)
    meta["annotations"] = {names.SLOTS_ANNOTATION: "0"}
    found = read_gang(msgspec.json.decode(msgspec.json.encode(body), type=Custom))
    assert found is not None
    status = companion.status_patch(found, companion.ours(found, wanted()))["status"]
    assert isinstance(status, dict)
    assert status["phase"] == "Running"
    assert status["placementScore"] == 1.0
    conditions = status["conditions"]
    assert isinstance(conditions, list)
    assert len(conditions) == 2
