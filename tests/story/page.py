"""docs/story.md: the story with what its commands printed."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.story.script import STORY, Act, Looked

FILE = Path("docs/story.md")
HEAD = """\
# The first half hour

From a clone to a refused spec: what to type, why, and what is printed. You need to know Kubernetes,
and nothing of Penstock. `make story` types it in a lab of its own, and stops where an output lacks
what it must have; a test holds this page against what is printed then. Random names, ages, times,
ports and ids are made the same here, lines that tell of progress are left out, and `~/penstock` is
the clone.

This page is written by `make story ARGS=--record`, from `tests/story/script.py`.
"""
_BLOCK = re.compile(r"^```text\n\$ (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_READ = re.compile(r"^Under \*(.*?)\* it says:\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name(act: Act) -> str:
    """Give what an output is found by: the command, or the part of the page."""
    return f"under {act.heading}" if isinstance(act, Looked) else act.command


def names() -> list[str]:
    """List the story's acts. One that occurs again is told from the first by its number."""
    found: list[str] = []
    for step in STORY:
        for act in step.acts:
            found.append(numbered(name(act), found))
    return found


def numbered(wanted: str, there: Sequence[str]) -> str:
    """Tell a name from those that are there."""
    count = sum(each.partition(" #")[0] == wanted for each in there)
    return f"{wanted} #{count + 1}" if count else wanted


def written(outputs: Mapping[str, str]) -> str:
    """Write the page; outputs are stable, by the names of acts."""
    parts = [HEAD]
    found: list[str] = []
    for number, step in enumerate(STORY, 1):
        parts.append(f"## {number}. {step.title}\n\n{textwrap.fill(step.why, 100)}\n")
        for act in step.acts:
            found.append(numbered(name(act), found))
            parts.append(_block(act, outputs[found[-1]]))
    return "\n".join(parts)


def _block(act: Act, output: str) -> str:
    body = f"{output}\n" if output else ""
    if isinstance(act, Looked):
        return f"Under *{act.heading}* it says:\n\n```text\n{body}```\n"
    return f"```text\n$ {act.command}\n{body}```\n"


def shown(text: str) -> dict[str, str]:
    """Read the outputs out of the page."""
    found: dict[str, str] = {}
    blocks = [(at.start(), at[1], at[2]) for at in _BLOCK.finditer(text)]
    blocks += [(at.start(), f"under {at[1]}", at[2]) for at in _READ.finditer(text)]
    for _, named, output in sorted(blocks):
        found[numbered(named, [*found])] = output.rstrip("\n")
    return found
