"""What a rule reports: where in the object, what is wrong, and how to mend it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from typing_extensions import override

# The API server hands a refusal on as one line of text; more than this nobody reads there.
MOST_SHOWN: Final = 20
LONGEST_MESSAGE: Final = 300
_BY_RULE: Final = " (policy rule "
# Nobody chooses from more, and sorting them for each problem would cost.
_MOST_NAMES: Final = 100


@dataclass(frozen=True)
class Problem:
    """One reason to refuse an object. `path` is spelled as in the manifest."""

    path: str
    message: str
    rule: str = field(default="", compare=False)
    """The rule that found it, where that is known; what is wrong is the same by any name."""

    @override
    def __str__(self) -> str:
        """Give `path: message`, with text out of the object kept short and on one line."""
        line = f"{self.path}: {self.message}" if self.path else self.message
        # Cut first: a name may be as long as the whole request.
        line = shortened(line, LONGEST_MESSAGE)
        return "".join(char if char.isprintable() else "?" for char in line)


def by_rule(message: str, rule: str) -> str:
    """Say at the end of a message which rule of the policy it is about."""
    return f"{message}{_BY_RULE}{rule})"


def shortened(line: str, longest: int) -> str:
    """Cut a line that is too long; a rule that is named at its end stays, to be asked about."""
    if len(line) <= longest:
        return line
    at = line.rfind(_BY_RULE)
    end = line[at:] if 0 < len(line) - at <= longest * 3 // 4 and at >= 0 else ""
    return f"{line[: longest - 1 - len(end)]}…{end}"


def summary(problems: Sequence[Problem]) -> str:
    """Put all problems in one message in the order given, capped with how many more there are."""
    shown = [str(problem) for problem in problems[:MOST_SHOWN]]
    rest = len(problems) - len(shown)
    if rest:
        shown.append(f"+{rest} more")
    return "; ".join(shown)


def choice(known: Collection[str]) -> str:
    """Say what there is to choose from, for the end of a message about what there is not."""
    if not 0 < len(known) <= _MOST_NAMES:
        return ""
    names = sorted(known)
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"; there are {', '.join(names[:5])}{more}"
