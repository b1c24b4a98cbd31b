import subprocess
import sys
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.repo import checkout

NAME = "penstock"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=checkout.ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def content(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_no_other_distribution_supplies_our_package_names() -> None:
    suppliers = packages_distributions()
    strangers = {
        package: others
        for package in checkout.PACKAGES
        if (others := sorted(set(suppliers.get(package, [])) - {NAME}))
    }
    assert strangers == {}, "these would be imported in place of ours, or ours in place of theirs"


def test_the_list_of_packages_is_the_folders_that_are_packages() -> None:
    assert {path.parent.name for path in checkout.ROOT.glob("*/__init__.py")} == {
        *checkout.PACKAGES
    }


def test_the_wheel_has_every_module(content: set[str]) -> None:
    ours = {checkout.shown(path) for path in checkout.modules()}
    ours = {name for name in ours if name.partition("/")[0] in checkout.PACKAGES}
    assert {name for name in content if name.endswith(".py")} == ours


@pytest.mark.parametrize("package", checkout.PACKAGES)
def test_the_wheel_says_that_a_package_is_typed(package: str, content: set[str]) -> None:
    assert f"{package}/py.typed" in content


def test_the_wheel_brings_the_whole_chart(content: set[str]) -> None:
    chart = checkout.ROOT / "charts" / NAME
    files = [path for path in checkout.files() if path.is_relative_to(chart)]
    assert files
    missing = {f"{NAME}/_chart/{path.relative_to(chart)}" for path in files} - content
    assert missing == set()


def test_the_wheel_brings_the_schemas_that_definitions_are_made_with(content: set[str]) -> None:
    assert "api/kubernetes.json" in content


def test_the_wheel_may_not_be_published_and_carries_its_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        text = archive.read(metadata).decode()
        assert any(name.endswith("/licenses/LICENSE") for name in archive.namelist())
    assert "Classifier: Private :: Do Not Upload" in text
    assert "License-Expression: Apache-2.0" in text


def test_an_unpacked_wheel_finds_its_chart_without_the_clone(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    # Put before the editable installation, which would lead back into the clone.
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from penstock.lab import helm; print(helm.chart())"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd="/",
        env={},  # no coverage either: it would count the unpacked copies as modules of ours
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    assert Path(done.stdout.strip()) == tmp_path / NAME / "_chart"
