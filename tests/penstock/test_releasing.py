"""Which pods an emergency release lifts, in which order, and by which patch."""

import jsonpatch
import msgspec
import pytest
from typer.testing import CliRunner

from api import exits, names
from api.jsons import Json, JsonObject
from api.streams import Pod
from controller.gangs import freeing
from kube.resources import PODS
from penstock.__main__ import app
from penstock.release import Tally, carry_out, lift, lift_all
from penstock.releasing import Batch, Scope, batches, still_held
from tests.support.clusters import pod
from tests.support.patchapi import patching
from tests.support.sets import NOW

FOREIGN = "example.com/quota"
MADE: dict[str, str] = {names.MANAGED_BY_LABEL: names.MANAGED_BY, names.PART_OF_LABEL: "chat"}


def waiting(
    name: str,
    labels: dict[str, str],
    *,
    namespace: str = "default",
    gates: tuple[str, ...] = (names.GATE,),
    annotations: dict[str, str] | None = None,
) -> Pod:
    listed: list[Json] = [{"name": gate} for gate in gates]
    meta: JsonObject = {
        "labels": {**labels},
        "annotations": {**(annotations or {})},
        "resourceVersion": "7",
    }
    return pod(name, namespace=namespace, metadata=meta, spec={"schedulingGates": listed})


BASE = waiting("a-0", {**MADE, names.PODGANG_LABEL: "chat-0"})
OTHER = waiting("a-1", {**MADE, names.PODGANG_LABEL: "chat-0"})
SCALED = waiting("b-0", {**MADE, names.PODGANG_LABEL: "aaa-0", names.BASE_PODGANG_LABEL: "chat-0"})
PLAIN = waiting("t-0", {names.GANG_LABEL: "train"})
FAR = waiting("f-0", {names.GANG_LABEL: "train"}, namespace="far")
LIFTED = waiting("z-0", {names.GANG_LABEL: "train"}, gates=(FOREIGN,))
ALL = [SCALED, LIFTED, FAR, PLAIN, OTHER, BASE]


def titles(found: list[Batch]) -> list[str]:
    return [batch.title for batch in found]


def test_gangs_go_one_by_one_and_a_scaled_one_after_its_base() -> None:
    found = batches(ALL, Scope())
    assert titles(found) == ["default/chat-0", "default/train", "default/aaa-0", "far/train"]
    assert found[0].pods == (BASE, OTHER)
    assert found[1].pods == (PLAIN,), "another waits behind somebody else's gate alone"


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope("far"), ["far/train"]),
        (Scope("default", "train"), ["default/train"]),
        (Scope("default", "chat"), ["default/chat-0", "default/aaa-0"]),
        (Scope("default", "chat-0"), ["default/chat-0"]),
        (Scope("default", "b-0"), []),
    ],
)
def test_a_release_is_about_a_namespace_or_a_set_or_a_gang(
    scope: Scope, expected: list[str]
) -> None:
    assert titles(batches(ALL, scope)) == expected


def test_a_label_of_a_set_counts_only_on_what_was_made_for_one() -> None:
    stranger = waiting("s-0", {names.PART_OF_LABEL: "chat", names.GANG_LABEL: "train"})
    assert batches([stranger], Scope("default", "chat")) == []


def test_gates_of_others_are_named() -> None:
    held = waiting("t-1", {names.GANG_LABEL: "train"}, gates=(names.GATE, FOREIGN))
    assert still_held(batches([held, PLAIN], Scope())) == [FOREIGN]


@pytest.mark.parametrize("annotations", [{}, {"note": "x"}])
def test_the_patch_takes_our_gate_and_no_other_and_leaves_a_mark(
    annotations: dict[str, str],
) -> None:
    held = waiting("t-1", {}, gates=(FOREIGN, names.GATE), annotations=annotations)
    raw = msgspec.to_builtins(held)
    raw["metadata"]["resourceVersion"] = "7"
    raw["spec"]["schedulingGates"] = [{"name": FOREIGN}, {"name": names.GATE}]
    if not annotations:
        del raw["metadata"]["annotations"]
    after = jsonpatch.apply_patch(raw, freeing.patch(held, NOW))
    assert after["spec"]["schedulingGates"] == [{"name": FOREIGN}]
    assert after["metadata"]["annotations"] == {
        **annotations,
        names.RELEASED_ANNOTATION: "2026-01-02T03:04:05Z",
    }
    assert after["spec"].get("affinity") == raw["spec"].get("affinity"), "no pin"


def test_annotations_that_came_meanwhile_are_never_wiped_out() -> None:
    held = waiting("t-1", {})
    raw = {
        "metadata": {"uid": "uid-t-1", "resourceVersion": "8", "annotations": {"came": "late"}},
        "spec": {"schedulingGates": [{"name": names.GATE}]},
    }
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        jsonpatch.apply_patch(raw, freeing.patch(held, NOW))


def stored(gates: tuple[str, ...] = (names.GATE,), uid: str = "uid-t-0") -> JsonObject:
    listed: list[Json] = [{"name": gate} for gate in gates]
    return {
        "metadata": {"name": "t-0", "namespace": "default", "uid": uid},
        "spec": {"schedulingGates": listed},
    }


PATH = PODS.path("default", "t-0")


async def test_who_writes_the_pod_meanwhile_only_makes_us_look_again() -> None:
    async with patching() as (api, client, clock):
        api.put(PATH, stored())  # of another version than was seen
        tally = Tally()
        await lift(client, clock, PLAIN, tally)
        assert (tally.lifted, tally.passed, tally.refused) == (1, 0, [])
        after = msgspec.convert(api.objects[PATH], Pod)
        assert after.gates == ()
        assert freeing.is_free(after)


@pytest.mark.parametrize(
    "there", [stored(gates=()), stored(uid="another")], ids=["lifted", "made anew"]
)
async def test_what_others_did_meanwhile_is_left_at_that(there: JsonObject) -> None:
    async with patching() as (api, client, clock):
        api.put(PATH, there)
        tally = Tally()
        await lift(client, clock, PLAIN, tally)
        assert (tally.lifted, tally.passed, tally.refused) == (0, 1, [])
        assert api.writes == []


async def test_a_pod_that_is_gone_needs_no_lift() -> None:
    async with patching() as (_, client, clock):
        tally = Tally()
        await lift(client, clock, PLAIN, tally)
        assert (tally.lifted, tally.passed) == (0, 1)


async def test_what_is_refused_again_and_again_is_told_of() -> None:
    async with patching() as (api, client, clock):
        api.put(PATH, stored())
        api.before = lambda _: api.touch(PATH)
        tally = Tally()
        await lift(client, clock, PLAIN, tally)
        assert tally.lifted == 0
        assert [line.partition(":")[0] for line in tally.refused] == ["default/t-0"]


async def test_tools_are_told_which_pods_of_which_gangs_were_lifted_or_would_be() -> None:
    waits = {**stored()}
    waits["metadata"] = {
        "name": "t-0", "namespace": "default", "uid": "uid-t-0", "resourceVersion": "7",
        "labels": {names.GANG_LABEL: "train"},
    }  # fmt: skip
    gone = waiting("t-1", {names.GANG_LABEL: "train"})
    async with patching() as (api, client, clock):
        api.objects[PODS.path("default")] = {"metadata": {}, "items": [waits]}
        shown = await carry_out(client, clock, Scope("default"), lambda _: None, sure=False)
        assert api.writes == []
        api.put(PATH, stored())
        tally = Tally()
        await lift_all(client, clock, Batch("default", "train", (PLAIN, gone)), tally)
    gang: JsonObject = {"namespace": "default", "name": "train"}
    assert shown.json()["gangs"] == [{**gang, "pods": ["t-0"], "lifted": 0}]
    assert tally.json() == {
        "gangs": [{**gang, "pods": ["t-0", "t-1"], "lifted": 1}],
        "lifted": 1, "byOthers": 1, "refused": [], "otherGates": [],
    }  # fmt: skip


@pytest.mark.parametrize("arguments", [(), ("--yes",), ("--all", "chat"), ("--all", "-n", "x")])
def test_what_is_to_be_released_must_be_said(arguments: tuple[str, ...]) -> None:
    told = CliRunner().invoke(app, ["release", *arguments])
    assert told.exit_code == exits.BAD_SETTINGS
    assert "--all, --namespace NAMESPACE, or NAME" in told.output
