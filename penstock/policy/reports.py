"""Results as people read them, as data for tools, and as JUnit's XML for those who gather tests."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as Xml

from api.jsons import Json, JsonObject
from policies.policy_queues import Mode
from policies.verdicts import Decision, Difference, Verdict

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WIDTH: Final = 7


@dataclass(frozen=True)
class Case:
    """One thing that was looked at; with a complaint it did not come as it should."""

    title: str
    path: str
    complaint: str = ""


@dataclass(frozen=True)
class Trial:
    """One object, and what became of it."""

    case: Case
    verdict: Verdict
    wished: bool = False
    """Whether the complaint is about what was expected, and not only that it is refused."""


@dataclass(frozen=True)
class Flaw:
    """Something said about one place of a policy."""

    path: str
    line: int
    key: str
    field: str
    message: str
    fatal: bool

    @property
    def text(self) -> str:
        """Give it on one line, with the place first, as editors find it."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        field = f"{self.field}: " if self.field else ""
        return f"{place}: {'' if self.fatal else 'doubtful: '}{field}{self.message}"


@dataclass(frozen=True)
class Changed:
    """One object that two policies judge otherwise."""

    title: str
    path: str
    was: Verdict
    now: Verdict
    differences: tuple[Difference, ...]


def printed(text: str) -> str:
    """Give a text out of a manifest so that no terminal is moved by it."""
    return "".join(char if char.isprintable() else "?" for char in text)


def trial_text(trial: Trial) -> str:
    """Tell of one object on a few lines."""
    verdict = trial.verdict
    head = f"{verdict.decision:<{_WIDTH}} {trial.case.title}  ({trial.case.path})"
    lines = [
        *(f"{each.mode} {each.rule}: {each.problem}" for each in verdict.findings),
        *(f"built-in: {each}" for each in verdict.problems),
        *(f"warning: {each}" for each in _others(verdict)),
    ]
    if verdict.decision is Decision.REFUSE and not lines:
        lines = [verdict.message]
    if trial.wished and trial.case.complaint:
        lines.append(f"FAILED: {trial.case.complaint}")
    return "\n".join(printed(line) for line in (head, *(f"    {line}" for line in lines)))


def _others(verdict: Verdict) -> list[str]:
    """Give the warnings that are of no rule of the policy."""
    told = {str(each.told) for each in verdict.findings}
    return [each for each in verdict.warnings if each not in told]


def trial_json(trial: Trial) -> JsonObject:
    """Tell of one object with all there is."""
    verdict = trial.verdict
    findings: list[Json] = [
        {
            "rule": each.rule,
            "mode": each.mode.value,
            "path": each.problem.path,
            "message": each.problem.message,
        }
        for each in verdict.findings
    ]
    problems: list[Json] = [
        {"path": each.path, "message": each.message} for each in verdict.problems
    ]
    return {
        "object": trial.case.title,
        "file": trial.case.path,
        "decision": verdict.decision.value,
        "rules": [*verdict.rules],
        "message": verdict.message,
        "findings": findings,
        "problems": problems,
        "warnings": [*verdict.warnings],
        "failed": trial.case.complaint,
    }


def changed_text(changed: Changed) -> str:
    """Tell how one object is judged otherwise."""
    head = f"{changed.was.decision} → {changed.now.decision}  {changed.title}  ({changed.path})"
    lines = [f"    {each.rule}: {each.was} → {each.now}" for each in changed.differences]
    rules = {each.rule for each in changed.differences}
    for sign, verdict in (("-", changed.was), ("+", changed.now)):
        other = changed.now if sign == "-" else changed.was
        kept = {(each.rule, each.mode, each.problem) for each in other.findings}
        lines += [
            f"    {sign} {each.mode} {each.rule}: {each.problem}"
            for each in verdict.findings
            if each.rule in rules and (each.rule, each.mode, each.problem) not in kept
        ]
    return "\n".join(printed(line) for line in (head, *lines))


def changed_json(changed: Changed) -> JsonObject:
    """Tell the same with all there is."""
    return {
        "object": changed.title,
        "file": changed.path,
        "was": changed.was.decision.value,
        "now": changed.now.decision.value,
        "differences": [
            {"rule": each.rule, "was": each.was, "now": each.now} for each in changed.differences
        ],
    }


def flaw_json(flaw: Flaw) -> JsonObject:
    """Tell of one fault with all there is."""
    return {
        "file": flaw.path,
        "line": flaw.line,
        "key": flaw.key,
        "field": flaw.field,
        "message": flaw.message,
        "severity": "fault" if flaw.fatal else "doubt",
    }


def junit(suite: str, cases: Sequence[Case]) -> str:
    """Write cases as JUnit does."""
    failed = sum(bool(case.complaint) for case in cases)
    counts = {"name": suite, "tests": str(len(cases)), "failures": str(failed), "errors": "0"}
    root = Xml.Element("testsuites", counts)
    inside = Xml.SubElement(root, "testsuite", counts)
    for case in cases:
        about = {"name": _xml(case.title), "classname": _xml(case.path)}
        element = Xml.SubElement(inside, "testcase", about)
        if case.complaint:
            shown = _xml(case.complaint)
            failure = Xml.SubElement(element, "failure", {"message": shown.partition("\n")[0]})
            failure.text = shown
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True)


def _xml(text: str) -> str:
    return _NOT_XML.sub("?", text)


def refusals(verdict: Verdict) -> str:
    """Say in one line each what kept an object out."""
    found = [f"{each.rule}: {each.problem}" for each in verdict.findings if _keeps_out(each.mode)]
    return "\n".join([*found, *map(str, verdict.problems)]) or verdict.message


def _keeps_out(mode: Mode) -> bool:
    return mode is Mode.ENFORCE
