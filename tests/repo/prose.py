"""Reading Markdown as far as tests of the documents need it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_FENCE: Final = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_INLINE: Final = re.compile(r"`([^`\n]+)`")
_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING: Final = re.compile(r"^(#+) +(.+?) *$", re.MULTILINE)
_BEFORE: Final = r"(?:^|\$ |\$\(|&& |\| )(?:\.venv/bin/|kubectl )?"


def fences(text: str) -> list[tuple[str, str]]:
    """List code blocks: language and content."""
    return [(found[1], found[2]) for found in _FENCE.finditer(text)]


def without_fences(text: str) -> str:
    """Give the text outside code blocks."""
    return _FENCE.sub("", text)


def links(text: str) -> list[str]:
    """List where links lead."""
    return [found[1] for found in _LINK.finditer(without_fences(text))]


def headings(text: str) -> list[str]:
    """List headings, without their marks."""
    return [found[2] for found in _HEADING.finditer(without_fences(text))]


def anchors(text: str) -> set[str]:
    """Give the anchors that a renderer makes of headings."""
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings(text)]
    return {heading.replace(" ", "-") for heading in plain}


def section(text: str, heading: str) -> str:
    """Give what stands between a heading and the next of any level."""
    _, _, rest = text.partition(f"\n{heading}\n")
    assert rest, f"there is no heading {heading!r}"
    lines: list[str] = []
    fenced = False
    for line in rest.splitlines():
        fenced ^= line.lstrip().startswith("```")
        if line.startswith("#") and not fenced:
            break
        lines.append(line)
    return "\n".join(lines) + "\n"


def code(text: str) -> Iterator[str]:
    """List pieces of code: inline ones, and the lines of shell blocks with continuations joined."""
    for language, content in fences(text):
        if language in {"", "sh", "console", "bash"}:
            yield from content.replace("\\\n", " ").splitlines()
    for found in _INLINE.finditer(without_fences(text)):
        yield found[1]


def commands(text: str, program: str) -> Iterator[str]:
    """List the command lines of one program, wherever in a shell line they stand."""
    line = re.compile(rf"{_BEFORE}({program}(?: [^&|;)>\"#]*)?)(?![\w/.-])")
    for piece in code(text):
        yield from (found[1].strip() for found in line.finditer(piece.strip()))


def rows(text: str) -> list[list[str]]:
    """List the cells of table rows, headers and rules left out."""
    lines = [line.strip() for line in text.splitlines() if line.lstrip().startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells[1:] if not set("".join(row)) <= {"-", ":"}]


def read(path: Path) -> str:
    """Read a page."""
    return path.read_text(encoding="utf-8")
