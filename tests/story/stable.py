"""Makes what commands print the same each time: ages, random names, ports, paths and the like."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Letters and digits that the API server makes random names of; words of ours have vowels.
_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]{5}"
_PROGRESS = re.compile(
    r"^(?:» |make(?:\[\d+\])?: |(?:chart|accounts|processes|waiting): )"
    r"|: (?:done in|stopped after) | \.\.\. \d"
)
_AGE = re.compile(r"\b(?:\d+m)?\d+(?:\.\d+)?s\b(?P<room> *)")
_WORDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"-{_RANDOM}(?=[\s,]|$)", re.MULTILINE), "-xxxxx"),
    (re.compile(r"\b\d+(?:\.\d+)? s\b"), "1 s"),
    (re.compile(r"\b(?:\d+ (?:seconds?|minutes?)|now) ago\b"), "5 seconds ago"),
    (re.compile(r"\b(?:127\.0\.0\.1|localhost):\d+"), "127.0.0.1:12345"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "2027-01-02T03:04:05Z"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "03:04:05"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "0a1b2c3d-…"),
    (re.compile(r"\bwebhook-\d\b"), "webhook-0"),
)
_POD = re.compile(r"(?P<branch>[│ ]*[├└]── )(?P<pod>\S+-xxxxx  .*)")


@dataclass(frozen=True)
class Places:
    """Folders of this machine that outputs name, and what a reader has in their stead."""

    root: Path
    state: Path

    def hidden(self, text: str) -> str:
        text = text.replace(str(self.state), "~/.local/state")
        return text.replace(str(self.root), "~/penstock")


def stable(text: str, places: Places) -> str:
    """Give the text without progress, and with one and the same word for all that varies."""
    lines = [line.rstrip() for line in places.hidden(text).splitlines()]
    told = "\n".join(line for line in lines if not _PROGRESS.search(line))
    told = _AGE.sub(_aged, told)
    for pattern, word in _WORDS:
        told = pattern.sub(word, told)
    return "\n".join(_ordered(told.splitlines())).strip("\n")


def is_shown(text: str, told: str) -> bool:
    """Whether a page shows what was told, both stable; breaks of lines and columns do not count.

    A line of `…` alone stands for whatever is between.
    """
    parts = re.split(r"^ *…$", text, flags=re.MULTILINE)
    wanted = ".*".join(re.escape(" ".join(part.split())) for part in parts)
    return re.fullmatch(wanted, " ".join(told.split()), re.DOTALL) is not None


def _aged(found: re.Match[str]) -> str:
    """Write an age that takes as much room as the one there was, so that columns stay."""
    return "5s" + found["room"].rjust(len(found[0]) - 2) if found["room"] else "5s"


def _ordered(lines: list[str]) -> list[str]:
    """Put pods of one clique in order again: by their node, since their names were random."""
    made: list[str] = []
    run: list[re.Match[str]] = []
    for line in [*lines, ""]:
        found = _POD.fullmatch(line)
        if run and (found is None or not _siblings(run[-1], found)):
            made += _sorted(run)
            run = []
        if found:
            run.append(found)
        else:
            made.append(line)
    return made[:-1]


def _siblings(one: re.Match[str], other: re.Match[str]) -> bool:
    return len(one["branch"]) == len(other["branch"]) and "└" not in one["branch"]


def _sorted(run: list[re.Match[str]]) -> list[str]:
    pod: Callable[[re.Match[str]], str] = lambda found: found["pod"]  # noqa: E731
    return [one["branch"] + other for one, other in zip(run, sorted(map(pod, run)), strict=True)]
