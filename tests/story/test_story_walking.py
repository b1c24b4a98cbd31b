"""The story itself, in a lab of its own; and that it stops where something is amiss."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repo import checkout, prose
from tests.story import page, walking
from tests.story.script import STORY, Served, Step, Typed
from tests.story.walking import Desk, StoryError, walk, with_kubectl


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with walking.desk(tmp_path / "state", tmp_path / "pictures", os.environ) as made:
        yield made


def told(_: str) -> None:
    """Nobody listens."""


def one(*acts: Typed | Served) -> tuple[Step, ...]:
    return (Step("a step", "because", acts),)


def test_what_is_exported_holds_for_what_follows(desk: Desk) -> None:
    acts = (Typed('export A="$(echo b)"'), Typed("echo $A", ("b",)), Typed("echo $A", ("b",)))
    assert walk(one(*acts), desk, told) == {acts[0].command: "", "echo $A": "b", "echo $A #2": "b"}


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (Typed("echo tea", ("coffee",)), r"echo tea: it lacks \['coffee'\]; it said:\ntea"),
        (Typed("echo tea; false"), "ended with 1 instead of 0"),
        (Typed("true", code=1), "ended with 0 instead of 1"),
        (Served("echo http://127.0.0.1:1/", ("the dashboard",)), "it lacks"),
        (Served("echo nothing", ()), "it serves nowhere"),
    ],
)
def test_it_stops_at_the_first_step_that_does_not_come_to_what_it_should(
    desk: Desk, act: Typed | Served, why: str
) -> None:
    with pytest.raises(StoryError, match=why):
        walk(one(act, Typed("touch never")), desk, told)
    assert not (checkout.ROOT / "never").exists()


def test_a_question_is_asked_again(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "asked"
    ask = f"echo >>{file}; wc -l <{file}"
    assert walk(one(Typed(ask, ("3",), asks=True)), desk, told) == {ask: "3"}


def test_what_names_something_is_typed_again_while_that_is_not_found(
    desk: Desk, tmp_path: Path
) -> None:
    file = tmp_path / "typed"
    late = f"echo >>{file}; [ $(wc -l <{file}) = 3 ] || {{ echo not found; false; }}"
    assert walk(one(Typed(late, early=True)), desk, told) == {late: ""}
    refused = "echo denied; false"
    with pytest.raises(StoryError, match="ended with 1"):
        walk(one(Typed(f"echo >>{file}; {refused}", early=True)), desk, told)
    assert len(file.read_text()) == 4


def test_what_serves_ends_with_the_desk(tmp_path: Path) -> None:
    with walking.desk(tmp_path, tmp_path, os.environ) as made:
        serve = "python3 -uc 'import time; print(\"http://127.0.0.1:1/\"); time.sleep(600)'"
        walk(one(Served(serve, ())), made, told)
        aside = made.aside
        assert made.url == "http://127.0.0.1:1/"
        assert aside is not None
    assert aside.returncode is not None


@pytest.mark.browser
def test_the_story_goes_as_its_page_shows(desk: Desk) -> None:
    with_kubectl(desk)
    outputs = walk(STORY, desk, told)
    shown = page.shown(prose.read(checkout.ROOT / page.FILE))
    assert outputs.keys() == shown.keys()
    for name in ("waiting", "refused specs"):
        assert (desk.pictures / f"{name}.png").stat().st_size > 10_000
    for named, output in outputs.items():
        assert output == shown[named], f"{named}: make story ARGS=--record writes the page anew"
    assert not list((desk.state / "penstock" / "labs").glob("[!.]*"))
