"""Runs are drawn from their seed, added up, and judged by whether they are as they must be."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos import __main__ as command
from tests.chaos import results
from tests.chaos.audit_rules import Finding
from tests.chaos.faults import FAULTS
from tests.chaos.load import SHAPES
from tests.chaos.meddling import KINDS, Ambush, Meddler
from tests.chaos.mutations import EXPECTED, MUTATIONS
from tests.chaos.proxy import Head, Trouble
from tests.chaos.results import Result
from tests.chaos.running import concerning, drawn
from tests.support.chance import dice

LIFT = Head("PATCH", "/api/v1/namespaces/a/pods/p?fieldManager=x")
TELL = Head("PATCH", "/api/v1/namespaces/a/pods/p/status")
BOOK = Head("POST", "/apis/penstock.dev/v1alpha1/namespaces/a/reservations")
BEGIN = Head("PATCH", "/apis/penstock.dev/v1alpha1/namespaces/a/reservations/r/status")
RENEW = Head("PATCH", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l")
READ = Head("GET", "/api/v1/pods")


def result(
    *findings: str, faults: Sequence[str] = ("kill-gangs",), mutation: str = "", trouble: str = ""
) -> Result:
    found = [Finding(rule, 1.0, "pod a/p", "why") for rule in findings]
    figures = {"converged": 3.0}
    return Result(1, "abc", "now", 20.0, list(faults), [], found, figures, trouble, mutation)


def test_a_seed_always_gives_the_same_run() -> None:
    assert [drawn(seed) for seed in range(50)] == [drawn(seed) for seed in range(50)]
    assert {fault for seed in range(200) for fault in drawn(seed).faults} == FAULTS.keys()


def test_only_the_faults_that_were_asked_for_are_drawn() -> None:
    assert {drawn(seed, ("burst",)).faults for seed in range(20)} == {("burst",)}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_seed_always_gives_the_same_sets(shape: object) -> None:
    assert callable(shape)
    assert shape("s", dice(5)) == shape("s", dice(5))


@pytest.mark.parametrize(
    ("kind", "those"),
    [
        ("write", [LIFT, TELL, BOOK, BEGIN]),
        ("lift", [LIFT]),
        ("reserve", [BOOK]),
        ("begin", [BEGIN]),
    ],
)
def test_a_kind_of_write_is_told_from_others(kind: str, those: list[Head]) -> None:
    every = (LIFT, TELL, BOOK, BEGIN, RENEW, READ)
    assert [head for head in every if KINDS[kind](head)] == those


class _Actor:
    component = "gangs"


async def test_an_ambush_acts_once_on_the_nth_write_of_its_component() -> None:
    acted: list[bytes] = []

    async def act(_actor: object, body: bytes) -> None:
        acted.append(body)

    meddler, other = Meddler(), _Actor()
    other.component = "workloads"
    with meddler.ambush(Ambush("gangs", KINDS["lift"], 2, act, early=True)) as lain:
        for actor, head, body in (
            (_Actor(), LIFT, b"1"),
            (_Actor(), TELL, b"tell"),
            (other, LIFT, b"other"),
            (_Actor(), LIFT, b"2"),
            (_Actor(), LIFT, b"3"),
        ):
            await meddler.before(actor, head, body)  # type: ignore[arg-type]
            await meddler.after(actor, head)  # type: ignore[arg-type]
    assert (acted, lain.met.is_set(), lain.sprung.is_set()) == ([b"2"], True, True)


async def test_weather_counts_what_it_made_of_requests_and_others_may_begin_meanwhile() -> None:
    meddler = Meddler()
    conflict, busy = (Trouble.CONFLICT,), (Trouble.BUSY,)
    async with meddler.weather(1.0, conflict, dice(1)) as conflicts:
        async with meddler.weather(1.0, busy, dice(1)) as others:
            pass
        met = [await meddler.before(_Actor(), head, b"") for head in (LIFT, READ)]  # type: ignore[arg-type]
    # Nobody can be in conflict who only reads.
    assert (met, dict(conflicts), dict(others)) == ([*conflict * 2], {Trouble.CONFLICT: 1}, {})
    assert await meddler.before(_Actor(), LIFT, b"") is None  # type: ignore[arg-type]


def test_runs_are_added_to_those_there_are(tmp_path: Path) -> None:
    for each in (result(), result("room")):
        results.append(each, tmp_path)
    assert results.read(tmp_path) == [result(), result("room")]
    assert results.read(tmp_path / "none") == []


def test_runs_are_added_up_by_fault() -> None:
    both = ("kill-gangs", "burst")
    found = results.sums([result(), result("room", "room", faults=both), result(trouble="no lab")])
    assert (found["all"].runs, found["all"].clean, found["all"].troubled) == (3, 1, 1)
    assert (found["burst"].runs, found["burst"].found) == (1, {"room": 1})


def test_a_run_in_which_the_harness_did_wrong_counts_for_nothing() -> None:
    assert results.sums([result("gates", mutation="lift-by-admin")]) == {}


@pytest.mark.parametrize(
    ("made", "well"),
    [
        (result(), True),
        (result("room"), False),
        (result(trouble="no lab"), False),
        (result("gates", mutation="lift-by-admin"), True),
        (result(mutation="lift-by-admin"), False),
        (result("room", mutation="lift-by-admin"), False),
    ],
)
def test_a_run_is_well_without_findings_or_with_those_of_its_mutation(
    made: Result, *, well: bool
) -> None:
    assert (command.missed([made]) == []) is well


def test_findings_of_runs_made_abreast_go_to_the_run_they_are_about() -> None:
    one, other, both = (
        Finding("settled", 1.0, what, "why") for what in ("gang a/g", "gang aa/g", "node n")
    )
    spaces = ["a", "aa"]
    assert list(concerning("a", [one, other, both], spaces)) == [one, both]
    assert list(concerning("aa", [one, other, both], spaces)) == [other, both]


def test_each_mutation_has_a_rule_that_must_find_it() -> None:
    assert MUTATIONS.keys() == EXPECTED.keys()


def test_all_mutations_are_made_in_turn() -> None:
    told = command.options(["--mutate", "all", "--runs", "4", "--seed", "900"])
    assert {script.mutation for script in command.scripts(told)} == MUTATIONS.keys()


def test_a_fault_that_is_not_known_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.options(["--only", "late-write,flood"])
    assert "flood is none of kill-gangs" in capsys.readouterr().err


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.options(["--help"])
    assert "make chaos RUNS=20 SEED=1" in capsys.readouterr().out
