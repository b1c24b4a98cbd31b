"""The pages of the documentation as a whole: all are found, and say all that they promise to."""

import re
from pathlib import Path

import pytest

from api import names
from scheduler.answers import Cause
from tests.repo import checkout, prose

DOCS = checkout.ROOT / "docs"
TROUBLESHOOTING = prose.read(DOCS / "troubleshooting.md")
STATUS = prose.read(DOCS / "status.md")
# Conditions and their reasons are the only words of `api/names.py` in this form.
TOLD = sorted(
    {value for value in vars(names).values() if re.fullmatch(r"[A-Z][A-Za-z]+", str(value))}
)


def pages_from(start: Path) -> set[Path]:
    """Give all pages that links lead to, one after another."""
    found: set[Path] = set()
    ahead = [start]
    while ahead:
        page = ahead.pop()
        if page in found:
            continue
        found.add(page)
        for link in prose.links(prose.read(page)):
            target = (page.parent / link.partition("#")[0]).resolve()
            if "://" not in link and target.suffix == ".md" and target.is_file():
                ahead.append(target)
    return found


def test_every_page_can_be_reached_from_the_readme() -> None:
    pages = {page for page in checkout.documents() if page.is_relative_to(DOCS)}
    assert len(pages) > 30
    unreached = pages - pages_from(checkout.ROOT / "README.md")
    assert {checkout.shown(page) for page in unreached} == set(), "link them in docs/README.md"


def test_the_conditions_and_reasons_are_found() -> None:
    assert {"Scheduled", "InsufficientCapacity", "QuotaExceeded", "RoomKept"} <= set(TOLD)


@pytest.mark.parametrize("word", TOLD)
def test_troubleshooting_tells_of_every_condition_and_reason(word: str) -> None:
    assert f"`{word}`" in TROUBLESHOOTING


@pytest.mark.parametrize("word", TOLD)
def test_the_tables_of_statuses_have_every_condition_and_reason(word: str) -> None:
    cells = [cell for row in prose.rows(STATUS) for cell in row[:2]]
    assert any(f"`{word}`" in cell for cell in cells)


@pytest.mark.parametrize("cause", list(Cause))
def test_troubleshooting_says_what_to_do_about_every_cause(cause: Cause) -> None:
    causes = prose.section(TROUBLESHOOTING, "### What `explain` says of the cause")
    assert any(f"`{cause.value}`" in row[0] and row[1] for row in prose.rows(causes))


def test_an_upgrade_is_of_the_release_that_was_installed_and_keeps_its_values() -> None:
    found = [
        line
        for page in checkout.documents()
        for _, content in prose.fences(prose.read(page))
        for line in content.replace("\\\n", " ").splitlines()
        if line.startswith("helm upgrade penstock charts/penstock ")
    ]
    assert len(found) > 5
    for line in found:
        assert "--namespace penstock-system" in line, line
        assert "--install" in line or "--reset-then-reuse-values" in line, line
