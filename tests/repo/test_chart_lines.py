"""Lines of the documents that install a chart: helm knows their flags, the chart their values."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.repo import checkout
from tests.story.pages import commands

# What only concerns a release that is there; of `helm upgrade`, and not of `helm template`.
RELEASE: Final = {"--install", "--wait", "--reset-then-reuse-values", "--reuse-values"}
TAKES_A_VALUE: Final = {"--timeout", "--namespace", "--set", "-f"}
LINES: Final = sorted(
    {
        command
        for page in checkout.documents()
        for command, _ in commands(page.read_text(encoding="utf-8"))
        if command.startswith("helm ")
    }
)


def flags(words: list[str]) -> list[str]:
    return [word for word in words if word.startswith("-")]


def test_there_are_lines() -> None:
    assert len(LINES) > 8


@pytest.mark.parametrize("line", LINES)
def test_helm_knows_the_flags(line: str, helm: Path) -> None:
    _, act, *words = shlex.split(line)
    told = subprocess.run([helm, act, "--help"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", told))
    assert [flag for flag in flags(words) if flag not in known] == []


@pytest.mark.parametrize("line", [line for line in LINES if " upgrade " in line])
def test_the_chart_takes_the_values(line: str, helm: Path, tmp_path: Path) -> None:
    _, _, *words = shlex.split(line.replace("sha256:…", f"sha256:{'0' * 64}"))
    kept = [word for word in words if word not in RELEASE]
    done = subprocess.run(
        [helm, "template", *kept, "--kube-version", "1.37.1"],
        cwd=checkout.ROOT, env={"HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
