"""The chart as helm renders it."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest
import yaml

from api import names
from api.jsons import Json, JsonObject
from tests.support.helm import find_helm

CHART = Path(__file__).parents[2] / "charts" / "penstock"
URL = "https://127.0.0.1:23456"

Objects = Mapping[tuple[str, str], JsonObject]


class Render(Protocol):
    """Renders the chart with `--set` settings, and flags of helm's."""

    def __call__(self, *settings: str) -> Objects: ...


@pytest.fixture(scope="session")
def helm() -> Path:
    found = find_helm()
    if found is None:
        raise FileNotFoundError("no helm: set PENSTOCK_BIN_DIR or run `make binaries` once")
    return found


@pytest.fixture(scope="session")
def render(helm: Path, tmp_path_factory: pytest.TempPathFactory) -> Render:
    home = tmp_path_factory.mktemp("helm")

    def run(*settings: str) -> Objects:
        done = subprocess.run(
            [
                *(helm, "template", "penstock", CHART, "--kube-version", "1.37.1"),
                *("--namespace", names.NAMESPACE),
                *(each if each.startswith("--") else f"--set={each}" for each in settings),
            ],
            capture_output=True,
            text=True,
            check=False,
            env={"HOME": str(home)},
        )
        if done.returncode:
            raise ValueError(done.stderr)
        # The loader in C: the definitions are long.
        loaded = yaml.load_all(done.stdout, yaml.CSafeLoader)
        documents = [each for each in loaded if each]
        found = {(each["kind"], each["metadata"]["name"]): each for each in documents}
        assert len(found) == len(documents), "two objects of one kind and name"
        return found

    return run


@pytest.fixture(scope="session")
def outside(render: Render) -> Objects:
    return render(f"webhook.url={URL}")


@pytest.fixture(scope="session")
def inside(render: Render) -> Objects:
    return render()


def items(value: Json, *path: str | int) -> list[Json]:
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step]
    return value if isinstance(value, list) else [] if value is None else [value]
