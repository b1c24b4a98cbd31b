import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo import checkout

# One import for each contract in pyproject.toml, that breaks it and no other.
PLANTED = {
    "the front door over shells over engines over rules over words": (
        "policies/planted.py",
        "import certs.rotation",
    ),
    "who makes pods and who releases them do not see each other": (
        "controller/workloads/planted.py",
        "import controller.gangs.views",
    ),
    "the core does no I/O and reads no clock": ("certs/planted.py", "import random"),
    "only kube speaks HTTP to the API server": ("penstock/planted.py", "import aiohttp"),
    "the webhook never loads the kubernetes package": (
        "webhook/planted.py",
        "import kube.credentials",
    ),
    "numpy stays in the engine and its feeder": ("policies/planted.py", "import numpy"),
    "the waiter stays small and knows no controller": (
        "controller/waiter/planted.py",
        "import pydantic",
    ),
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [command, "--config", str(folder / "pyproject.toml"), "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(checkout.ROOT / "pyproject.toml", tmp_path)
    for package in checkout.PACKAGES:
        shutil.copytree(
            checkout.ROOT / package,
            tmp_path / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    return tmp_path


def verdicts(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    found = re.findall(r"^(.+) (KEPT|BROKEN)(?: \(.*\))?$", done.stdout, re.MULTILINE)
    return dict(found)


def test_imports_go_the_agreed_ways() -> None:
    done = lint(checkout.ROOT)
    assert done.returncode == 0, done.stdout
    assert verdicts(done) == dict.fromkeys(PLANTED, "KEPT")


@pytest.mark.parametrize("contract", PLANTED)
def test_a_planted_import_breaks_its_contract_and_no_other(contract: str, copy: Path) -> None:
    file, line = PLANTED[contract]
    (copy / file).write_text(f'"""Planted."""\n\n{line}\n')
    done = lint(copy)
    assert done.returncode != 0
    assert [name for name, what in verdicts(done).items() if what == "BROKEN"] == [contract]
    assert file.removesuffix(".py").replace("/", ".") in done.stdout
