"""Old faults are not held against a change that leaves them as they were."""

from collections import Counter
from collections.abc import Callable, Sequence

from api.jsons import JsonObject
from policies import answers, reading, syntax
from policies.answers import Allow, Answer
from policies.problems import Problem
from policies.rules import MOST_FOUND


def answered(
    kind: str,
    raw: JsonObject,
    found: Sequence[Problem],
    before: Callable[[], Sequence[Problem]],
    allow: Callable[[], Allow],
) -> Answer:
    """Refuse the object for what is newly wrong with it, or let it in with warnings of the rest.

    `before` gives what was wrong with the old object; it is asked only if anything is wrong with
    the new one. `allow` gives the answer if nothing is.
    """
    if not found:
        return allow()
    # Rules stop at so many; what they did not come to say any more could be new.
    new, old = _parted(found, before() if len(found) < MOST_FOUND else ())
    if new:
        name = reading.text(reading.mapping(raw.get("metadata")).get("name"))
        # A name that is too long is among the problems, and cut there.
        fits = name is not None and 0 < len(name) <= syntax.LONGEST_NAME
        return answers.invalid(f"{kind} {name!r}" if fits else kind, new)
    let_be = tuple(f"let be as it was before: {problem}" for problem in old)
    allowed = allow()
    return Allow(allowed.patch, (*let_be, *allowed.warnings))


def _parted(
    found: Sequence[Problem], before: Sequence[Problem]
) -> tuple[list[Problem], list[Problem]]:
    """Part what is new from what was there before in the very same words."""
    left = Counter(before)
    new: list[Problem] = []
    old: list[Problem] = []
    for problem in found:
        left[problem] -= 1
        (old if left[problem] >= 0 else new).append(problem)
    return new, old
