import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api import exits
from penstock.__main__ import LAB_COMMANDS, app
from penstock.lab import stages
from tests.repo import checkout, prose

PAGES = checkout.documents()
ARCHITECTURE = checkout.ROOT / "docs" / "architecture.md"
LAB = checkout.ROOT / "docs" / "lab.md"
PROCESSES = checkout.ROOT / "docs" / "processes.md"
DECISIONS = checkout.ROOT / "docs" / "adr"
MAKEFILE = (checkout.ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z][a-z%-]*):", MAKEFILE, re.MULTILINE))
CHANGES = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def broken_links(page: Path, text: str) -> list[str]:
    return [link for link in prose.links(text) if "://" not in link and not _leads(page, link)]


def _leads(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists() or not target.is_relative_to(checkout.ROOT):
        return False
    return not anchor or anchor in prose.anchors(prose.read(target))


def unknown_targets(text: str) -> list[str]:
    named = [word for line in prose.commands(text, "make") for word in _targets(line)]
    return [target for target in named if not _is_target(target)]


def _targets(line: str) -> list[str]:
    words = line.split()[1:]
    return [word for word in words if "=" not in word and not word.startswith("-")]


def _is_target(target: str) -> bool:
    name = target.removeprefix("bench-")
    if name != target:
        return name == "NAME" or (checkout.ROOT / "tests" / "bench" / f"{name}.py").is_file()
    return target in TARGETS


@pytest.mark.parametrize("page", PAGES, ids=checkout.shown)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page, prose.read(page)) == []


def test_a_link_that_leads_nowhere_is_found() -> None:
    text = "[a](docs/nowhere.md) [b](README.md#no-such-heading) [c](LICENSE) [d](#none)\n"
    found = broken_links(checkout.ROOT / "README.md", text)
    assert found == ["docs/nowhere.md", "README.md#no-such-heading", "#none"]


@pytest.mark.parametrize("page", PAGES, ids=checkout.shown)
def test_make_targets_exist(page: Path) -> None:
    assert unknown_targets(prose.read(page)) == []


def test_a_make_target_that_does_not_exist_is_found() -> None:
    text = "`make test`, `make coffee`, `make bench-tea` and\n```sh\nmake demo-up LAB=x\n```\n"
    assert unknown_targets(text) == ["demo-up", "coffee", "bench-tea"]


def misread(line: str) -> str:
    """Give what the command line says of a line it does not take; nothing is carried out."""
    words = shlex.split(line.replace("…", ""))[1:]
    # Before the first option, so that no option can take it for its value and run.
    place = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
    result = CliRunner().invoke(app, [*words[:place], "--help", *words[place:]])
    return "" if result.exit_code == 0 else result.output or repr(result.exception)


@pytest.mark.parametrize("page", PAGES, ids=checkout.shown)
def test_command_lines_are_understood(page: Path) -> None:
    lines = set(prose.commands(prose.read(page), "penstock"))
    found = {line: complaint for line in sorted(lines) if (complaint := misread(line))}
    assert found == {}


@pytest.mark.parametrize(
    "line",
    ["penstock lab fly", "penstock lab up --wings 2", "penstock lab down --name", "penstock tea"],
)
def test_a_command_line_that_is_not_understood_is_found(line: str) -> None:
    assert misread(line)


def test_command_lines_are_found_wherever_they_stand() -> None:
    text = (
        "Use `penstock lab list` or `kubectl penstock lab list`, not `helm upgrade penstock x`.\n"
        "```sh\n$ .venv/bin/penstock lab up && penstock lab install  # both\n"
        'export KUBECONFIG="$(penstock lab kubeconfig --name a)"\n'
        "penstock lab up --nodes 4 \\\n  --gpus 8\npenstock-other x\n```\n"
    )
    assert sorted(" ".join(line.split()) for line in prose.commands(text, "penstock")) == [
        "penstock lab install",
        "penstock lab kubeconfig --name a",
        "penstock lab list",
        "penstock lab list",
        "penstock lab up",
        "penstock lab up --nodes 4 --gpus 8",
    ]


@pytest.mark.parametrize("page", PAGES, ids=checkout.shown)
def test_files_named_in_code_exist(page: Path) -> None:
    named = re.findall(r"`((?:[\w.-]+/)+(?:[\w.-]+\.(?:py|md|yaml|toml))?)`", prose.read(page))
    packages = (*checkout.PACKAGES, "tests", "docs", "charts", "examples")
    ours = [name for name in named if name.partition("/")[0] in packages and "NAME" not in name]
    assert [name for name in ours if not (checkout.ROOT / name).exists()] == []


def test_the_architecture_names_every_module() -> None:
    named = set(re.findall(r"`([\w/.]+)`", prose.read(ARCHITECTURE)))
    modules = [checkout.shown(path) for path in checkout.modules()]
    ours = [name for name in modules if name.partition("/")[0] in checkout.PACKAGES]
    silent = [name for name in ours if not {Path(name).stem, name} & named]
    assert [name for name in silent if "__" not in name] == [], "add them to the tables"


def test_every_annotation_of_the_lab_is_described() -> None:
    table = prose.rows(prose.section(prose.read(LAB), "## How pretend pods behave"))
    assert {row[0].strip("`") for row in table} == set(stages.ANNOTATIONS)


def test_every_command_of_the_lab_is_described() -> None:
    shown = {line.split()[2] for line in prose.commands(prose.read(LAB), "penstock lab")}
    assert shown == {entry.name for entry in LAB_COMMANDS}


@pytest.mark.parametrize(
    ("module", "heading"),
    [
        ("webhook", "## Webhook"),
        ("controller.workloads", "## Controllers"),
        ("controller.gangs", "## Controllers"),
    ],
)
def test_every_flag_of_a_process_is_described(module: str, heading: str) -> None:
    told = "".join(row[0] for row in prose.rows(prose.section(prose.read(PROCESSES), heading)))
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True
    )
    usage = done.stdout.partition("\n\n")[0]
    flags = set(re.findall(r"--[a-z-]+", usage)) - {"--help"}
    assert flags
    assert {flag for flag in flags if f"`{flag}`" not in told} == set()
    assert module == "webhook" or f"example: python -m {module} --kubeconfig" in done.stdout


def test_the_readme_says_how_to_test_and_ci_calls_exactly_that() -> None:
    readme = prose.read(checkout.ROOT / "README.md")
    blocks = prose.fences(prose.section(readme, "## Test"))
    assert [content.strip() for _, content in blocks] == ["make test"]
    script = (checkout.ROOT / ".ci" / "run").read_text().splitlines()
    acts = [line for line in script if line and not line.startswith(("#", "set ", "cd "))]
    assert acts[0] == "make test"


def test_ci_runs_what_not_every_machine_can_or_says_that_it_did_not() -> None:
    script = (checkout.ROOT / ".ci" / "run").read_text()
    called = set(re.findall(r"^ *(?:time )?make (test-[a-z]+)$", script, re.MULTILINE))
    assert {"test-chart", "test-image", "test-browser", "test-node"} <= called <= TARGETS
    # What needs no more than `make test` is run without asking.
    for target in called - {"test-chart"}:
        assert f"not run: make {target}" in script
    assert "not run: make test-chart" not in script


def test_the_charts_long_tests_are_all_in_the_target_that_ci_runs() -> None:
    said = subprocess.run(
        ["make", "--dry-run", "test-chart"], cwd=checkout.ROOT, check=True,
        capture_output=True, text=True,
    ).stdout  # fmt: skip
    (line,) = [each for each in said.splitlines() if "test_chart_" in each]
    files = {checkout.shown(path) for path in checkout.ROOT.glob("tests/cluster/test_chart_*.py")}
    further = {f"tests/cluster/test_{each}.py" for each in ("proving", "companion")}
    assert {word for word in line.split() if word.endswith(".py")} == files | further


def test_the_readme_stays_short() -> None:
    assert len(prose.read(checkout.ROOT / "README.md").splitlines()) <= 150


def test_the_table_of_exit_codes_is_current() -> None:
    table = prose.rows(prose.section(prose.read(ARCHITECTURE), "## Exit codes"))
    shown = {name.strip("`"): int(code) for code, name, *_ in table}
    assert shown == {name: value for name, value in vars(exits).items() if name.isupper()}


def test_the_index_of_decisions_is_current() -> None:
    pages = sorted(DECISIONS.glob("[0-9]*.md"))
    index = prose.rows(prose.read(DECISIONS / "README.md"))
    assert [row[0] for row in index] == [f"[{page.name[:4]}]({page.name})" for page in pages]
    titles = [prose.headings(prose.read(page))[0] for page in pages]
    assert [f"{page.name[:4]}. {row[1]}" for page, row in zip(pages, index, strict=True)] == titles


@pytest.mark.parametrize("page", sorted(DECISIONS.glob("[0-9]*.md")), ids=checkout.shown)
def test_a_decision_has_context_and_consequences(page: Path) -> None:
    _, *parts = prose.headings(prose.read(page))
    assert parts == ["Context", "Decision", "Consequences"]


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(page.name[:4]) for page in sorted(DECISIONS.glob("[0-9]*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_changelog_keeps_to_its_form() -> None:
    first, second, *rest = prose.headings(prose.read(checkout.ROOT / "CHANGELOG.md"))
    assert (first, second) == ("Changelog", "[Unreleased]")
    assert {heading for heading in rest if not heading.startswith("[")} <= CHANGES
