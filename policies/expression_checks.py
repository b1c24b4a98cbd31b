"""Rules that owners write as expressions, held against a set once or against each of its pods."""

from collections.abc import Iterator
from dataclasses import dataclass

from policies.cel.expression import Expression, Holds, Unclear, Verdict
from policies.cel.running import Meter
from policies.expression_view import PodSeen, SetSeen
from policies.once import Once
from policies.policy_checks import PodCheck, read_expression
from policies.problems import Problem

_LONGEST_SHOWN = 160
_WHOLE = "spec"


@dataclass(frozen=True)
class Gang:
    """What expressions see of a gang in the making; `set` is None for a plain gang's pod."""

    queue: str
    pods: tuple[tuple[str, PodSeen], ...]
    set: SetSeen | None

    @Once
    def seen(self) -> list[PodSeen]:
        """Its pods without their places."""
        return [pod for _, pod in self.pods]


def check(rule: PodCheck, gang: Gang) -> Iterator[Problem]:
    """Find where an expression is not true, or has no answer."""
    asked = read_expression(rule.cel or "")
    if "set" in asked.uses and gang.set is None:
        return
    # What one rule takes another need not have: who tries a rule out breaks no other.
    meter = Meter()
    whole: dict[str, object] = {"queue": gang.queue, "set": gang.set}
    if "pod" not in asked.uses:
        yield from _told(rule, asked, _WHOLE, asked.ask(whole, meter))
        return
    for i, verdict in asked.failures(whole, "pod", gang.seen, meter):
        yield from _told(rule, asked, gang.pods[i][0], verdict)


def _told(rule: PodCheck, asked: Expression, path: str, verdict: Verdict) -> Iterator[Problem]:
    if isinstance(verdict, Holds):
        return
    said = rule.message or f"must hold: {' '.join(asked.text.split())[:_LONGEST_SHOWN]}"
    if isinstance(verdict, Unclear):
        said = f"cannot be judged, as {verdict.why}: {said}"
    yield Problem(path, said)
