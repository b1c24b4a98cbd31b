"""`python -m scheduler` replays what was saved, and says in one line what it cannot read."""

import dataclasses
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from api import exits, names
from scheduler import explain, saving, showing
from scheduler.__main__ import main
from scheduler.answers import (
    AskFewer,
    Cause,
    FreeRoom,
    Loosen,
    MoreNodes,
    NoFit,
    Plan,
    Uncordon,
    Widen,
)
from scheduler.requests import GangRequest
from tests.repo import checkout

EXAMPLE: Final = checkout.ROOT / "examples" / "snapshot.json"
FIRST: Final = ["--priority", "team/train-0=1000"]


def replayed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a plan of the example prints."""
    assert main(["plan", str(EXAMPLE), *arguments]) == exits.OK
    out, err = capsys.readouterr()
    assert err == ""
    return out


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code, and the line on stderr."""
    code = main(["plan", *arguments])
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return code, err


def test_the_example_is_read_back_as_it_is_written() -> None:
    saved = saving.loads(EXAMPLE.read_bytes())
    assert saving.loads(saving.dumps(saved)) == saved


def test_placements_and_refusals_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = replayed(capsys).splitlines()
    assert lines[0] == "3 gangs on 12 nodes: 2 placed, 1 refused"
    assert lines[2].split() == ["GANG", "DOMAIN", "PODS", "SCORE", "FRAGMENTED", "STEPS"]
    assert [line.split()[0] for line in lines[3:5]] == ["team/llm-0", "team/bench-0"]
    assert lines[6].startswith("team/train-0: no rack has room for all 3 pods of the minimum")


def test_the_same_file_gives_the_same_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert replayed(capsys, "-o", "json") == replayed(capsys, "-o", "json")


def test_tools_get_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(replayed(capsys, "-o", "json"))
    assert found["nodes"] == 12
    assert [each["gang"]["name"] for each in found["placements"]] == ["llm-0", "bench-0"]
    pods = found["placements"][0]["pods"]
    assert {each["clique"] for each in pods} == {"prefill", "decode"}
    assert [each["cause"] for each in found["refusals"]] == ["NotEnoughInAnyDomain"]
    assert "difference" not in found


def test_a_refusal_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    told = replayed(capsys, "--explain", "team/train-0")
    assert "cause: NotEnoughInAnyDomain" in told
    assert "rack (required)" in told
    assert "any one of these would do:" in told
    assert "  uncordon node-223" in told
    found = json.loads(replayed(capsys, "--explain", "team/train-0", "-o", "json"))
    assert found["remedies"][0]["kind"] == "Uncordon"


def test_a_placement_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    told = replayed(capsys, "--explain", "team/llm-0")
    assert told.startswith("team/llm-0 is placed in b1")
    assert sum(line.startswith(("prefill", "decode")) for line in told.splitlines()) == 4
    found = json.loads(replayed(capsys, "--explain", "team/llm-0", "-o", "json"))
    assert len(found["pods"]) == 4


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        (["--remove-gang", "team/chat-0"], "team/train-0: placed now"),
        (["--add", "1", "--like", "node-211", *FIRST], "team/train-0: placed now"),
        (
            ["--add", "3", "--like", "node-111", "--label", f"{names.RACK_KEY}=r9", *FIRST],
            "team/train-0: placed now",
        ),
        (["--drain", "node-211"], "team/chat-0: 1 pod drained, and not placed again here"),
        (["--remove-gang", "team/llm-0"], "team/llm-0: not asked about any more"),
        (FIRST, "team/llm-0: 4 pods moved to b2"),
        (["--priority", "team/bench-0=-1"], "nothing changes"),
    ],
)
def test_edits_are_compared_with_what_was_saved(
    edits: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = replayed(capsys, *edits)
    assert "against the saved snapshot:\n" in told
    assert f"  {says}\n" in told


def test_the_difference_is_there_for_tools_too(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(replayed(capsys, "-o", "json", "--remove-gang", "team/chat-0"))
    assert found["difference"]["placed"] == [["team", "train-0"]]
    assert found["difference"]["displaced"] == []
    found = json.loads(replayed(capsys, "-o", "json", "--drain", "node-211"))
    assert found["difference"]["displaced"] == [{"namespace": "team", "name": "chat-0", "pods": 1}]


def test_gzip_and_standard_input_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / "snapshot.json.gz"
    packed.write_bytes(gzip.compress(EXAMPLE.read_bytes()))
    assert main(["plan", str(packed)]) == exits.OK
    expected = capsys.readouterr().out
    done = subprocess.run(
        [sys.executable, "-m", "scheduler", "plan", "-"],
        input=packed.read_bytes(),
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == expected == replayed(capsys)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no saved snapshot"),
        (b"apiVersion: v1\n", "no saved snapshot"),
        (b'{"kind": "List"}', "no saved snapshot"),
        (b'{"version": 99, "saved": {}}', "version 99"),
        (b"\x1f\x8b broken", "broken gzip"),
        (b'{"version": 1, "saved": {"levels": [], "nodes": []}}', "no topology"),
        (EXAMPLE.read_bytes()[:1_000], "no saved snapshot"),
    ],
)
def test_a_file_that_is_no_saved_snapshot_is_named(
    data: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.json"
    broken.write_bytes(data)
    code, said = failed(capsys, str(broken))
    assert code == exits.UNEXPECTED
    assert said.startswith(f"{broken}: ")
    assert says in said


def test_a_file_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = failed(capsys, str(tmp_path / "none.json"))
    assert code == exits.UNEXPECTED
    assert said == f"{tmp_path / 'none.json'}: No such file or directory\n"
    assert failed(capsys, str(tmp_path))[0] == exits.UNEXPECTED


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--explain", "train-0"], "train-0 is no gang: write NAMESPACE/NAME"),
        (["--explain", "team/none"], "no gang team/none asks for room"),
        (["--drain", "node-999"], "there is no node node-999 to drain"),
        (["--add", "1"], "--add N and --like NODE go together"),
        (["--like", "node-111"], "--add N and --like NODE go together"),
        (["--add", "1", "--like", "node-999"], "there is no node node-999"),
        (["--add", "1", "--like", "node-111", "--label", "x"], "write KEY=VALUE"),
        (["--remove-gang", "none"], "none is no gang"),
        (["--priority", "team/train-0"], "write NS/NAME=N"),
        (["--priority", "team/train-0=high"], "high is no number"),
        (["--priority", "team/none=1"], "no gang team/none asks for room"),
    ],
)
def test_a_wrong_flag_is_told_in_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = failed(capsys, str(EXAMPLE), *arguments)
    assert code == exits.BAD_SETTINGS
    assert says in said


@pytest.mark.parametrize("arguments", [[], ["fly"], ["plan"], ["plan", "x", "--add", "many"]])
def test_a_command_line_that_is_none_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == exits.BAD_SETTINGS


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--help"])
    assert ended.value.code == exits.OK
    assert "python -m scheduler plan examples/snapshot.json" in capsys.readouterr().out


def test_every_kind_of_remedy_can_be_shown() -> None:
    remedies = (
        Uncordon(("a", "b")),
        Widen("x", names.RACK_KEY, names.BLOCK_KEY, ("b1",)),
        Widen("", names.RACK_KEY, "", ()),
        Loosen(names.RACK_KEY),
        FreeRoom((), {"cpu": 1500}, {"a": {"cpu": 1000}, "b": {"cpu": 500}}),
        MoreNodes((), 2, "a"),
        AskFewer((), {"w": 1, "v": 2}),
    )
    gang = GangRequest("team", "g", ())
    refusal = NoFit(gang, 0, {}, {}, 0, 0, {}, cause=Cause.COMPANY, remedies=remedies)
    told = showing.gang_explained(Plan((), (refusal,)), ("team", "g"))
    assert told is not None
    assert told.partition("any one of these would do:\n")[2].splitlines() == [
        "  uncordon a, b",
        "  require of x block instead of rack: it fits b1",
        "  require no level and not rack: it fits the cluster",
        "  let replicas share a rack",
        "  free 1 cpu on a; 500m cpu on b",
        "  add 2 nodes like a",
        "  ask for no more than 1 w, 2 v: these fit the cluster",
    ]
    assert explain.sentence(dataclasses.replace(refusal, remedies=remedies[:2])).endswith(
        "; it would fit with a and b uncordoned (counting all 0 nodes)"
    )


def test_an_empty_plan_is_shown() -> None:
    assert showing.plan_text(Plan((), ()), 1) == "0 gangs on 1 node: 0 placed, 0 refused\n"
    assert showing.gang_explained(Plan((), ()), ("team", "g")) is None
