"""`penstock policy lint`, `test` and `diff`."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

import typer

from api import exits
from api.jsons import JsonObject
from kube.clock import SystemClock
from penstock.documents import FORMS, document
from penstock.policy import expecting, files, reports
from penstock.policy.expecting import Expected
from penstock.policy.files import BadFileError, PolicyText, Written
from penstock.policy.flags import Output, Pair
from penstock.policy.reports import Case, Changed, Flaw, Trial
from policies import policy_doubts, policy_source, trying, verdicts
from policies.admission import User
from policies.known import Snapshot
from policies.policy import Policy
from policies.policy_source import BadPolicyError
from policies.trying import Submitter, Tried
from policies.verdicts import Decision

BAD_INPUT: Final = exits.BAD_SETTINGS


def lint(
    paths: list[Path],
    *,
    output: Output,
    strict: bool,
) -> None:
    """Find all that is wrong with policies, with file, line and field."""
    with _complaining("lint"):
        texts = [each for path in paths for each in files.policy_texts(path)]
    now = SystemClock().now()
    found = {text.origin: _flaws(text, now) for text in texts}
    flaws = [flaw for each in found.values() for flaw in each]
    counted = [flaw for flaw in flaws if flaw.fatal or strict]
    if output in FORMS:
        faults: JsonObject = {"faults": [*map(reports.flaw_json, flaws)]}
        typer.echo(document(faults, output), nl=False)
    elif output is Output.JUNIT:
        cases = [
            Case(origin, origin, "\n".join(flaw.text for flaw in each if flaw in counted))
            for origin, each in found.items()
        ]
        typer.echo(reports.junit("penstock policy lint", cases))
    else:
        for flaw in flaws:
            typer.echo(reports.printed(flaw.text))
        bad = sum(any(flaw.fatal for flaw in each) for each in found.values())
        typer.echo(f"{len(found)} looked at: {len(found) - bad} good, {bad} bad")
    sys.exit(exits.UNEXPECTED if counted else exits.OK)


def try_out(  # noqa: PLR0913  (each is a flag)
    policy: Path,
    manifests: list[Path],
    *,
    user: str,
    group: list[str] | None,
    namespace: str,
    candidate: bool,
    expect: Path | None,
    at: str,
    output: Output,
) -> None:
    """Judge manifests as the webhook would if they were applied now."""
    with _complaining("test"):
        by = files.policy(policy, candidate=candidate).policy
        stage = Stage(files.manifests(manifests), _submitter(user, group, namespace), _when(at))
        if expect is None:
            trials = _plainly(stage, by)
        else:
            trials = _as_expected(stage, by, expecting.read(expect))
    failed = sum(bool(trial.case.complaint) for trial in trials)
    if output in FORMS:
        results: JsonObject = {
            "results": [*map(reports.trial_json, trials)], "failed": failed,
        }  # fmt: skip
        typer.echo(document(results, output), nl=False)
    elif output is Output.JUNIT:
        typer.echo(reports.junit("penstock policy test", [trial.case for trial in trials]))
    else:
        for trial in trials:
            typer.echo(reports.trial_text(trial))
        typer.echo(_counted(trials))
    sys.exit(exits.UNEXPECTED if failed else exits.OK)


def diff(  # noqa: PLR0913  (each is a flag)
    old: Path,
    new: Path,
    manifests: list[Path],
    *,
    user: str,
    group: list[str] | None,
    namespace: str,
    candidate: bool,
    at: str,
    output: Pair,
) -> None:
    """Show which manifests two policies judge otherwise."""
    with _complaining("diff"):
        before = files.policy(old).policy
        after = files.policy(new, candidate=candidate).policy
        stage = Stage(files.manifests(manifests), _submitter(user, group, namespace), _when(at))
        tried = list(stage.tried(stage.submitter))
        _see_there_is_one(tried)
    found = [
        changed
        for written, each in tried
        if (changed := _changed(written, each, stage, before, after)) is not None
    ]
    if output is not Pair.TEXT:
        told: JsonObject = {
            "judged": len(tried), "otherwise": [*map(reports.changed_json, found)],
        }  # fmt: skip
        typer.echo(document(told, output), nl=False)
    else:
        for each in found:
            typer.echo(reports.changed_text(each))
        typer.echo(f"{len(tried)} judged: {len(found)} otherwise")
    sys.exit(exits.UNEXPECTED if found else exits.OK)


class Stage:
    """The manifests, who applies them and when."""

    def __init__(self, written: list[Written], submitter: Submitter, now: datetime) -> None:
        self.written: Final = written
        self.submitter: Final = submitter
        self.now: Final = now
        self.known: Final[Snapshot] = trying.known_from(each.raw for each in written)

    def tried(self, submitter: Submitter) -> Iterator[tuple[Written, Tried]]:
        """Give what admission would be asked about."""
        for each in self.written:
            tried = trying.asked(each.raw, submitter, self.now)
            if tried is not None:
                yield each, tried


def _flaws(text: PolicyText, now: datetime) -> list[Flaw]:
    try:
        policy = policy_source.read(text.origin, text.text).policy
    except BadPolicyError as error:
        places, fatal = error.places, True
    else:
        places, fatal = policy_source.placed(text.text, policy_doubts.doubts(policy, now)), False
    return [
        Flaw(text.path, text.line(at.line), text.key, at.problem.path, at.problem.message, fatal)
        for at in places
    ]


def _plainly(stage: Stage, policy: Policy) -> list[Trial]:
    """Judge everything once; what is refused is a failure."""
    tried = list(stage.tried(stage.submitter))
    _see_there_is_one(tried)
    trials: list[Trial] = []
    for written, each in tried:
        found = verdicts.verdict(trying.judged(policy, stage.known, each))
        refused = found.decision is Decision.REFUSE
        complaint = f"refused: {reports.refusals(found)}" if refused else ""
        trials.append(Trial(Case(each.title, written.path, complaint), found))
    return trials


def _as_expected(stage: Stage, policy: Policy, expected: Sequence[Expected]) -> list[Trial]:
    """Judge what is expected something of."""
    trials: list[Trial] = []
    for wish in expected:
        tried = stage.tried(wish.submitter(stage.submitter))
        about = [(written, each) for written, each in tried if wish.is_about(each)]
        if not about:
            raise BadFileError(f"no manifest has the {wish.kind} {wish.name} that is expected")
        for written, each in about:
            found = verdicts.verdict(trying.judged(policy, stage.known, each))
            case = Case(wish.title, written.path, wish.complaint(found))
            trials.append(Trial(case, found, wished=True))
    return trials


def _changed(
    written: Written, tried: Tried, stage: Stage, before: Policy, after: Policy
) -> Changed | None:
    was, now = (trying.judged(each, stage.known, tried) for each in (before, after))
    differences = verdicts.differences(was, now)
    if not differences:
        return None
    both = (verdicts.verdict(was), verdicts.verdict(now))
    return Changed(tried.title, written.path, *both, differences)


def _counted(trials: Sequence[Trial]) -> str:
    counts = [
        (sum(trial.verdict.decision is decision for trial in trials), said)
        for decision, said in (
            (Decision.REFUSE, "refused"),
            (Decision.WARN, "let in with warnings"),
            (Decision.ALLOW, "let in"),
        )
    ]
    return f"{len(trials)} judged: " + ", ".join(f"{count} {said}" for count, said in counts)


def _see_there_is_one(tried: Sequence[object]) -> None:
    if not tried:
        raise BadFileError("nothing in these files is judged: no set, no pod of a plain gang")


def _submitter(user: str, groups: list[str] | None, namespace: str) -> Submitter:
    if groups and not user:
        raise BadFileError("--group is of a user: give --user too")
    return Submitter(expecting.user_of(user, groups or []) if user else User(), namespace)


def _when(text: str) -> datetime:
    if not text:
        return SystemClock().now()
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadFileError(f"--at: {text!r} is no time such as 2027-01-31T00:00:00Z") from error
    if found.tzinfo is None:
        raise BadFileError(f"--at: {text!r} names no time zone: add a Z")
    return found


@contextmanager
def _complaining(command: str) -> Iterator[None]:
    try:
        yield
    except (BadFileError, BadPolicyError) as error:
        typer.echo(f"penstock policy {command}: {reports.printed(str(error))}", err=True)
        sys.exit(BAD_INPUT)
