"""The manual of the engine shows what is printed, and leaves out nothing that tools may read."""

import json
import re
from typing import Final, get_args

import pytest

from api import exits
from scheduler.__main__ import main
from scheduler.answers import STOPS, Cause, Remedy
from tests.repo import checkout, prose

MANUAL: Final = prose.read(checkout.ROOT / "docs" / "engine.md")
EXAMPLE: Final = str(checkout.ROOT / "examples" / "snapshot.json")
STEPS: Final = re.compile(r"(?<= )[0-9]+$", re.MULTILINE)


def listed(heading: str) -> set[str]:
    """What stands in the first column of a table."""
    cells = [row[0] for row in prose.rows(prose.section(MANUAL, heading))]
    return {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


def test_what_is_shown_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    shown = [text for language, text in prose.fences(MANUAL) if language == "console"]
    assert len(shown) == 3
    for text in shown:
        command, _, output = text.partition("\n")
        words = command.split()
        assert words[:6] == ["$", "python", "-m", "scheduler", "plan", "examples/snapshot.json"]
        assert main(["plan", EXAMPLE, *words[6:]]) == exits.OK
        # How many steps a search takes is no promise.
        assert STEPS.sub("N", capsys.readouterr().out) == STEPS.sub("N", output)


def test_every_cause_and_every_remedy_is_explained() -> None:
    assert listed("### Causes") == {cause.value for cause in Cause}
    assert listed("### Remedies") == {kind.__name__ for kind in get_args(Remedy)}


def test_every_field_of_a_refusal_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", EXAMPLE, "--explain", "team/train-0", "-o", "json"]) == exits.OK
    assert listed("### The whole refusal") == set(json.loads(capsys.readouterr().out))
    told = prose.section(MANUAL, "### The whole refusal").split("|\n")[-1]
    assert set(re.findall(r"`(\w+)`", told)) == set(STOPS)


def test_every_flag_and_exit_code_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["plan", "--help"])
    flags = set(re.findall(r"--[a-z-]+", capsys.readouterr().out.partition("examples:")[0]))
    told = set(re.findall(r"--[a-z-]+", MANUAL))
    assert flags - told == {"--help", "--output"}
    codes = [int(row[0]) for row in prose.rows(prose.section(MANUAL, "### How it ends"))]
    assert codes == [exits.OK, exits.UNEXPECTED, exits.BAD_SETTINGS]
