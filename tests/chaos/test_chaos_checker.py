"""The checker finds what it is there to find. Each test is a log that breaks one rule."""

import ast
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from api import names
from api.jsons import Json, JsonObject
from tests.chaos import audit_final, audit_log, checker
from tests.chaos.audit_final import MARK_FAULT, MARK_HEALED
from tests.chaos.audit_world import GANGS
from tests.chaos.script import (
    ADMIN,
    CLIQUE,
    FIRST,
    LIFT,
    MAKER,
    SECOND,
    SPACE,
    Script,
    begun_gang,
    found,
    half_bound,
    rules,
    verdict,
    whole_gang,
)


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    script = whole_gang()
    assert found(script, at_rest=True) == []
    assert verdict(script).figures["lifts"] == 2


def test_the_checker_shares_no_code_with_what_it_judges() -> None:
    for path in Path(checker.__file__).parent.glob("audit_*.py"):
        tree = ast.parse(path.read_text())
        named = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not [name for name in named if name.startswith(("controller", "scheduler", "kube"))]


# Gates.


def test_a_gate_taken_off_by_another_is_found() -> None:
    script = begun_gang()
    script.lift(0, "n0", user=ADMIN)
    assert found(script) == [("gates", "its gate was taken off by admin")]


def test_a_gate_that_goes_with_nobody_having_asked_is_found() -> None:
    script = begun_gang()
    script._change(0, {}, MAKER, {"metadata": {"labels": {}}}, None)
    assert "its gate went unseen" in found(script)[0][1]


def test_a_lift_that_a_killed_api_server_did_not_write_down_is_no_finding() -> None:
    script = begun_gang()
    line = len(script.lines)
    script.lift(0, "n0")
    del script.lines[line]
    script.restart()
    script.bind("p0", "n0")
    assert found(script) == []


def test_a_lift_of_which_the_answer_was_lost_is_no_finding() -> None:
    script = begun_gang()
    script.line("patch", "pods", "p0", user=GANGS, asked=LIFT, code=504)
    line = len(script.lines)
    script.lift(0, "n0")
    del script.lines[line]
    script.bind("p0", "n0")
    assert found(script) == []


# The ledger.


def test_a_lift_onto_another_node_than_the_slots_is_found() -> None:
    script = begun_gang()
    script.lift(0, "n2")
    assert found(script) == [("ledger", "lifted, though its slot is on n0 and not on n2")]


def test_a_lift_without_a_pin_is_found() -> None:
    script = begun_gang()
    script._change(0, {}, GANGS, LIFT, None)
    assert found(script) == [("ledger", "lifted, though its slot is on n0 and not on any node")]


def test_a_lift_without_a_slot_is_found() -> None:
    script = begun_gang()
    script.reserve("n0", state="Lifting", bind_by=45)
    script.lift(1, "n1")
    assert found(script) == [("ledger", "lifted, though no Reservation has its slot")]


def test_a_lift_before_the_reservation_is_begun_is_found() -> None:
    script = begun_gang()
    script.reserve("n0", "n1", state="Held")
    script.lift(0, "n0")
    assert found(script) == [("ledger", "lifted, though its Reservation is Held")]


def test_what_a_reservation_said_of_an_earlier_try_does_not_count() -> None:
    script = begun_gang()
    body = dict(script.objects["reservations", "g-0"])
    spec = body["spec"]
    assert isinstance(spec, dict)
    script.store("patch", "reservations", "g-0", {**body, "spec": {**spec, "attempt": 1}}, GANGS)
    script.lift(0, "n0")
    assert found(script) == [("ledger", "lifted, though its Reservation is Held")]


def test_a_pod_deleted_while_its_slot_is_in_the_ledger_is_found() -> None:
    script = whole_gang()
    script.delete(0, GANGS)
    assert rules(script) == ["ledger"]


def test_a_pod_may_be_deleted_once_its_slot_is_out_or_its_gang_rolled_back() -> None:
    script = begun_gang()
    script.lift(0, "n0")
    script.reserve("n2", state="RolledBack")
    script.delete(0, GANGS)
    assert found(script) == []


def test_who_made_a_pod_may_delete_it_at_any_time() -> None:
    script = whole_gang()
    script.delete(0, MAKER)
    assert found(script) == []


# Leaders.


def test_a_deposed_leaders_lift_that_differs_from_the_ledger_is_found() -> None:
    script = begun_gang()
    script.lead(SECOND)
    script.reserve("n2", "n1", state="Lifting", bind_by=45)
    script.lift(0, "n0", instance=FIRST)
    assert found(script) == [("deposed", "lifted, though its slot is on n2 and not on n0")]


def test_a_deposed_leaders_lift_that_is_as_the_ledger_says_does_no_harm() -> None:
    script = begun_gang()
    script.lead(SECOND)
    script.lift(0, "n0", instance=FIRST)
    assert found(script) == []
    assert verdict(script).figures["late_writes"] == 1


def test_a_deposed_leaders_deletion_of_a_pod_that_has_its_slot_is_found() -> None:
    script = whole_gang()
    script.lead(SECOND)
    script.delete(0, GANGS, instance=FIRST)
    assert rules(script) == ["deposed"]


# The end.


def test_what_takes_longer_than_a_minute_after_the_fault_is_found() -> None:
    script = half_bound()
    script.mark(f"{MARK_FAULT}-0")
    script.mark(f"{MARK_HEALED}-0")
    script.later(61)
    script.bind("p1", "n1")
    assert rules(script) == ["converged"]
    assert verdict(script).figures["converged"] > 61


def _unbound(script: Script) -> None:
    script.pod(0)


def _unmade(script: Script) -> None:
    script.drop("pods", "p0", "kubelet")


def _lifting(script: Script) -> None:
    script.reserve("n0", "n1", state="Lifting", bind_by=45)


def _kept(script: Script) -> None:
    script.reserve("n0", "n1", "n2", state="Bound")


def _orphaned(script: Script) -> None:
    script.drop("podgangs", "g-0", MAKER)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_unbound, "is not bound in the end: gated"),
        (_unmade, "has 1 of 2 pods"),
        (_lifting, "its Reservation is Lifting in the end"),
        (_kept, "keeps room for nobody in the end: ('g-0-engine', 2)"),
        (_orphaned, "is there in the end without its gang"),
    ],
)
def test_what_is_not_at_rest_in_the_end_is_found(
    spoil: Callable[[Script], None], said: str
) -> None:
    script = whole_gang()
    spoil(script)
    assert [why for _, why in found(script, at_rest=True) if said in why]


@pytest.mark.parametrize(
    ("cliques", "said"),
    [
        ([], "is not there in the end"),
        ([{"metadata": {"name": CLIQUE, "namespace": SPACE}, "spec": {"replicas": 3}}], "not 3"),
    ],
)
def test_a_set_that_lacks_something_is_found(cliques: list[JsonObject], said: str) -> None:
    state = {**whole_gang().state(), "podcliques": cliques}
    assert [each.why for each in audit_final.complete(state, 0.0) if said in each.why]


def test_a_set_that_is_deleted_and_still_there_is_found() -> None:
    (body,) = whole_gang().state()["podcliquesets"]
    meta = body["metadata"]
    assert isinstance(meta, dict)
    going: JsonObject = {**body, "metadata": {**meta, "deletionTimestamp": "now"}}
    state = {**whole_gang().state(), "podcliquesets": [going]}
    assert [each.why for each in audit_final.complete(state, 0.0)] == ["is still to go in the end"]


def test_a_pod_ends_by_any_write_once_it_was_deleted_without_grace() -> None:
    """Killed between the two steps of a deletion, an API server leaves the second to a write."""
    script = whole_gang()
    script.stranger("late", 0, "n3")
    body = script.objects["pods", "late"]
    meta: JsonObject = {
        "name": "late", "namespace": SPACE, "uid": "uid-late", "resourceVersion": "150",
        "deletionTimestamp": "2026-11-19T19:24:49Z", "deletionGracePeriodSeconds": 0,
    }  # fmt: skip
    gone: JsonObject = {**body, "kind": "Pod", "metadata": meta}
    script.line("patch", "pods", "late", user="gc", answer=gone, subresource="status")
    del script.objects["pods", "late"]
    assert found(script) == []


@pytest.mark.parametrize(
    ("blocks", "wrong"),
    [
        pytest.param(("b0", "b0"), [], id="one rack"),
        pytest.param(("b0", "b1"), ["None/b0/r, None/b1/r"], id="racks of one name in two blocks"),
    ],
)
def test_a_gang_that_must_be_in_one_rack_and_is_not_is_found(
    blocks: tuple[str, str], wrong: list[str]
) -> None:
    state = {**whole_gang().state(nodes=2)}
    state["nodes"] = [
        {"metadata": {"name": f"n{n}", "labels": {names.BLOCK_KEY: block, names.RACK_KEY: "r"}}}
        for n, block in enumerate(blocks)
    ]
    (gang,) = state["podgangs"]
    near: JsonObject = {"topologyConstraint": {"packConstraint": {"required": names.RACK_KEY}}}
    state["podgangs"] = [{**gang, "spec": near}]
    said = [each.why.partition("is in ")[2] for each in audit_final.packed(state, 0.0)]
    assert said == wrong


def test_a_log_that_tells_another_story_than_the_final_state_is_found() -> None:
    script = whole_gang()
    del script.lines[-1]
    assert rules(script) == ["replay"]


def test_a_pod_that_is_not_where_the_log_says_is_found() -> None:
    script = whole_gang()
    body = script.objects["pods", "p0"]
    spec = body["spec"]
    assert isinstance(spec, dict)
    script.objects["pods", "p0"] = {**body, "spec": {**spec, "nodeName": "n3"}}
    assert rules(script) == ["replay"]


# Reading.


def test_writes_are_ordered_by_revision_and_not_by_the_order_of_lines() -> None:
    script = whole_gang()
    script.lines.reverse()
    assert found(script, at_rest=True) == []


def test_dry_runs_and_refusals_are_no_writes() -> None:
    script = begun_gang()
    before = len(audit_log.read(script.lines).writes)
    script.line("patch", "pods", "p0", user=ADMIN, asked=LIFT, uri="/x?dryRun=All")
    script.line("patch", "pods", "p0", user=ADMIN, asked=LIFT, code=403)
    assert len(audit_log.read(script.lines).writes) == before


def test_half_a_line_of_a_killed_api_server_hides_no_other() -> None:
    script = whole_gang()
    script.lines[-1] = script.lines[-2][:40] + script.lines[-1]
    assert found(script, at_rest=True) == []


def test_what_is_gone_does_not_come_back_by_an_answer_out_of_order() -> None:
    script = whole_gang()
    revision = script.revision
    script.runs("p0", "n0")
    body = script.objects.pop(("pods", "p0"))
    meta: JsonObject = {
        "name": "p0", "namespace": SPACE, "uid": "uid-p0", "resourceVersion": str(revision)
    }  # fmt: skip
    script.line("delete", "pods", "p0", user=MAKER, answer={**body, "metadata": meta})
    assert found(script) == []


def test_objects_deleted_together_are_all_gone() -> None:
    script = whole_gang()
    items: Json = [script.objects.pop(("pods", f"p{i}")) for i in (0, 1)]
    script.revision += 1
    script.line("deletecollection", "pods", "", user=ADMIN, answer={"items": items})
    assert found(script) == []


def test_the_command_tells_what_it_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = begun_gang()
    script.lift(0, "n2")
    (tmp_path / "log").write_bytes(b"".join(script.lines))
    (tmp_path / "state").write_text(json.dumps(script.state()))
    with pytest.raises(SystemExit) as ended:
        checker.run([str(tmp_path / "log"), str(tmp_path / "state")])
    assert ended.value.code == 1
    assert "ledger: pod test/p0: lifted, though its slot is on n0" in capsys.readouterr().out
