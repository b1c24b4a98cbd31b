"""The README begins as the story does, and the story's page is whole."""

import re

import pytest

from tests.repo import checkout, prose
from tests.story import page
from tests.story.script import LAB, QUICK, STORY, Looked, typed
from tests.story.stable import Places, stable

README = prose.read(checkout.ROOT / "README.md")
PAGE = prose.read(checkout.ROOT / page.FILE)
PLACES = Places(checkout.ROOT, checkout.ROOT / "build" / "nowhere")


def typed_in_the_readme() -> list[str]:
    """List the commands under "Try it" as far as the lab of the demo goes, without remarks."""
    begun, _, _ = prose.section(README, "## Try it").partition("Labs of your own")
    blocks = [content for language, content in prose.fences(begun) if language == "sh"]
    lines = [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


def test_the_readme_begins_with_the_storys_commands_and_ends_as_it_does() -> None:
    *first, last = typed_in_the_readme()
    assert first == typed(QUICK)
    assert last == typed(STORY)[-1]
    assert str(page.FILE) in prose.links(README)


def test_the_page_tells_the_story_as_it_is_now() -> None:
    shown = page.shown(PAGE)
    assert list(shown) == page.names()
    assert page.written(shown) == PAGE


def test_the_page_shows_what_the_story_asks_for() -> None:
    shown = page.shown(PAGE)
    acts = [act for step in STORY for act in step.acts]
    for named, act in zip(page.names(), acts, strict=True):
        plain = " ".join(shown[named].split())
        assert [words for words in act.says if " ".join(words.split()) not in plain] == [], named


@pytest.mark.parametrize("named", page.names())
def test_what_is_shown_is_stable(named: str) -> None:
    shown = page.shown(PAGE)[named]
    assert stable(shown, PLACES) == shown


def test_every_example_of_the_story_is_there() -> None:
    named = re.findall(r"examples/[\w/-]+\.yaml", " ".join(typed(STORY)))
    assert len(named) >= 3
    assert [each for each in named if not (checkout.ROOT / each).is_file()] == []


def test_the_demos_lab_is_called_what_the_story_calls_it() -> None:
    assert re.search(rf"^LAB \?= {LAB}$", prose.read(checkout.ROOT / "Makefile"), re.MULTILINE)


def test_the_story_looks_at_the_dashboard() -> None:
    read = [act.heading for step in STORY for act in step.acts if isinstance(act, Looked)]
    assert read == ["Waiting", "Refused specs"]


def test_what_the_readme_shows_of_the_demo_is_what_the_story_shows() -> None:
    (block,) = [c for kind, c in prose.fences(prose.section(README, "## Try it")) if kind == "text"]
    told = page.shown(PAGE)["make demo"].splitlines()
    lines = [line for line in stable(block, PLACES).splitlines() if line != "…"]
    assert len(lines) >= 5
    assert [line for line in lines if line not in told] == []
