"""Commands of the documents, typed one after the other in one lab; what they print is as shown."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.repo import checkout, prose
from tests.story import walking
from tests.story.pages import ELSEWHERE, IN_THE_DEMO, QUICKSTART, Page, commands
from tests.story.script import Step, Typed
from tests.story.stable import is_shown
from tests.story.walking import Desk, walk, with_kubectl

DOCS = checkout.ROOT / "docs"
EXAMPLES = checkout.ROOT / "examples"
WALKED = (QUICKSTART, *IN_THE_DEMO)


def with_commands() -> set[str]:
    """Pages that have any; the story's are those of `make story`."""
    found = (page for page in checkout.documents() if page.parent == DOCS)
    return {page.stem for page in found if list(commands(prose.read(page)))}


def test_every_page_with_commands_is_typed_or_says_where_else() -> None:
    walked = [page.name for page in WALKED]
    assert len(walked) == len(set(walked)) > 10
    assert {*walked, *ELSEWHERE} == with_commands()
    assert not {*walked} & ELSEWHERE.keys()


@pytest.mark.parametrize("page", WALKED, ids=lambda page: page.name)
def test_what_is_left_out_of_a_page_is_there_and_something_is_typed(page: Page) -> None:
    found = [command for command, _ in commands(page.text)]
    for begun, why in page.left.items():
        assert why
        assert [line for line in found if line.startswith(begun)], begun
    assert page.codes.keys() <= set(found)
    assert page.step().acts


@pytest.mark.parametrize(
    "why", [*ELSEWHERE.values(), *(w for p in WALKED for w in p.left.values())]
)
def test_where_else_commands_are_tried_is_a_test(why: str) -> None:
    named = [word.strip(";,") for word in why.split() if word.startswith("tests/")]
    assert [name for name in named if not (checkout.ROOT / name).is_file()] == []


def test_what_asks_may_be_typed_again_and_what_scales_while_that_is_not_there() -> None:
    acts = [act for page in WALKED for act in page.step().acts]
    again = {act.command: (act.asks, act.early) for act in acts if isinstance(act, Typed)}
    assert again["penstock policy status"] == (True, False)
    assert again["kubectl get rsv -o wide"] == (True, False)
    assert again["kubectl scale pcsg agents-0-pipeline --replicas=2"] == (False, True)
    assert again["kubectl apply -f examples/story-agents.yaml"] == (False, False)
    assert again["penstock release --all --yes"] == (False, False)


def test_commands_are_read_with_what_is_shown_of_the_last_of_a_block() -> None:
    text = (
        "```sh\nmake a     # makes\nkubectl \\\n  get b\n```\n\nsays\n\n```text\nb 1\n```\n"
        "```console\n$ c\n1\n$ d\n```\n```sh\n# only a remark\ne\n```\n```yaml\nf: 1\n```\n"
    )
    assert [*commands(text)] == [
        ("make a", ""), ("kubectl get b", "b 1\n"), ("c", "1\n"), ("d", ""), ("e", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("page", "told", "so"),
    [
        ("a  1\nb", "a 1\n  b\n", True),
        ("a", "a\nb", False),
        ("a\n…", "a\nb", True),
        ("…\nb", "a\nb\nc", False),
        ("a\n…\nc\n…", "a\nb\nc\nd", True),
        ("c\n…\na", "a\nb\nc", False),
    ],
)
def test_what_a_page_shows_is_compared_word_by_word(page: str, told: str, *, so: bool) -> None:
    assert is_shown(page, told) is so


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with walking.desk(tmp_path / "state", tmp_path, os.environ) as made:
        with_kubectl(made)
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where pages have people be that write files; with the files of their own that they name."""
    made = tmp_path / "folder"
    (made / "manifests").mkdir(parents=True)
    for name in ("examples", "charts"):
        (made / name).symlink_to(checkout.ROOT / name)
    shutil.copy(EXAMPLES / "disaggregated.yaml", made / "manifests")
    for name in ("old", "new"):
        shutil.copy(EXAMPLES / "policies" / "serving.yaml", made / f"{name}.yaml")
    return made


@pytest.mark.walk
def test_the_pages_commands_do_what_the_pages_show(desk: Desk, folder: Path) -> None:
    whole = QUICKSTART.step()
    *begun, last = whole.acts
    assert isinstance(last, Typed)
    assert last.command == "make demo-down"
    said: list[str] = []
    walk((replace(whole, acts=tuple(begun)),), desk, said.append)
    desk.folder = folder
    walk(tuple(page.step() for page in IN_THE_DEMO), desk, said.append)
    desk.folder = checkout.ROOT
    walk((Step("The end", "", (last,)),), desk, said.append)
    assert len([line for line in said if line.startswith("$ ")]) > 60
    assert not list((desk.state / "penstock" / "labs").glob("[!.]*"))
