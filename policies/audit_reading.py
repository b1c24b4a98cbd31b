"""What is asked of an audit log: which records, how many of each sort, one of them anew. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import orjson

from api.jsons import JsonObject
from policies import audit_chain, evaluating, podcliqueset_admission, podcliqueset_view, reading
from policies.admission import User
from policies.audit_records import Record, Summary
from policies.audit_verifying import Segment
from policies.audit_words import TAG
from policies.evaluating import Subject
from policies.known import Known
from policies.policy import Policy

DRY_RUN: Final = "dry-run"

_STAND_IN: Final = r"redacted-\2"
_STOOD_IN: Final = "redacted-"


@dataclass(frozen=True)
class Entry:
    """A record, with its number and its line as it was written."""

    seq: int
    record: Record
    text: bytes

    @property
    def rules(self) -> str:
        """The broken rules, each once."""
        return ",".join(dict.fromkeys(each.rule for each in self.record.violations))


@dataclass(frozen=True)
class Wanted:
    """Which records are wanted; what is empty is not asked."""

    namespace: str = ""
    user: str = ""
    rule: str = ""
    decision: str = ""
    name: str = ""
    since: str = ""
    """A timestamp as records have it: these sort as text."""
    dry_run: bool | None = None
    """Dry runs alone, or all but these."""

    def takes(self, record: Record) -> bool:
        """Tell whether a record is among them."""
        return (
            self.namespace in ("", record.ns)
            and self.user in ("", record.user.name)
            and self.decision in ("", record.decision)
            and self.name in ("", record.name, record.generate_name)
            and self.since <= record.ts
            and self.dry_run in (None, record.dry_run)
            and (not self.rule or any(each.rule == self.rule for each in record.violations))
        )


def entries(segments: Iterable[Segment]) -> Iterator[Entry]:
    """Give the records of a log; what is no line of one is left to `verify`."""
    for segment in segments:
        for text in segment.text.split(b"\n"):
            found = audit_chain.read(text) if b'"line":"record"' in text[:200] else None
            if found is not None and isinstance(found.said, Record):
                yield Entry(found.seq, found.said, text)


@dataclass(frozen=True)
class Top:
    """How often each rule was broken, by whom, and where; and how much of it has no record.

    Of a dry run nothing would have been stored, so that it is only counted as such.
    """

    rules: Counter[str] = field(default_factory=Counter)
    namespaces: Counter[str] = field(default_factory=Counter)
    users: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)


def top(segments: Iterable[Segment], wanted: Wanted) -> Top:
    """Count records, each with those like it that had none."""
    found = Top()
    for segment in segments:
        for text in segment.text.split(b"\n"):
            line = audit_chain.read(text) if text else None
            match line.said if line else None:
                case Record() as record if wanted.takes(record):
                    _count(found, record)
                case Summary(dry_run=True) as summary if _takes(wanted, summary):
                    found.decisions[DRY_RUN] += summary.suppressed
                case Summary() as summary if _takes(wanted, summary):
                    _add(
                        found,
                        summary.rules.split(","),
                        summary.ns,
                        summary.user,
                        summary.suppressed,
                    )
                    found.decisions["suppressed"] += summary.suppressed
                    found.decisions["dropped"] += summary.dropped
    return found


def _takes(wanted: Wanted, summary: Summary) -> bool:
    return (
        wanted.namespace in ("", summary.ns)
        and wanted.user in ("", summary.user)
        and (not wanted.rule or wanted.rule in summary.rules.split(","))
        and not wanted.decision
        and not wanted.name
        and wanted.since <= summary.ts
    )


def _count(found: Top, record: Record) -> None:
    weight = 1 + record.suppressed
    if record.dry_run:
        found.decisions[DRY_RUN] += weight
        return
    rules = dict.fromkeys(each.rule for each in record.violations)
    _add(found, rules, record.ns, record.user.name, weight)
    found.decisions[record.decision] += weight


def _add(found: Top, rules: Iterable[str], namespace: str, user: str, weight: int) -> None:
    if not weight:
        return
    for rule in rules:
        found.rules[rule] += weight
    found.namespaces[namespace] += weight
    found.users[user] += weight


@dataclass(frozen=True)
class Anew:
    """What one policy rule would find in the excerpt today. `told` is empty if nothing."""

    rule: str
    then: str
    now: str
    mode: str = ""
    is_sure: bool = True
    """False where it depends on text that the record does not have."""


def explained(record: Record, policy: Policy, known: Known, now: datetime) -> list[Anew] | None:
    """Hold what is kept of an object against a policy; None where nothing was kept.

    Only the policy's rules are asked: the built-in ones are about text that is not there.
    """
    subject = _subject(record, now)
    if subject is None:
        return None
    found = evaluating.evaluate(policy, known, subject)
    then: dict[str, str] = {}
    for each in record.violations:
        then.setdefault(each.rule, f"{each.path}: {each.message}")
    today = {each.rule: each for each in reversed(found)}
    asked = {*today, *(rule for rule in then if _is_of_policy(rule, policy))}
    return [
        Anew(
            rule,
            then.get(rule, ""),
            str(today[rule].problem) if rule in today else "",
            today[rule].mode.value if rule in today else "",
            is_sure=_is_sure(str(today[rule].problem) if rule in today else then.get(rule, "")),
        )
        for rule in sorted(asked)
    ]


def _is_sure(told: str) -> bool:
    return _STOOD_IN not in told and TAG.search(told) is None


def _is_of_policy(rule: str, policy: Policy) -> bool:
    return rule.startswith(evaluating.QUEUE_PREFIX) or any(x.id == rule for x in policy.rules)


def _subject(record: Record, now: datetime) -> Subject | None:
    text = bytes(record.excerpt).decode()
    if not text:
        return None
    raw: JsonObject = orjson.loads(TAG.sub(_STAND_IN, text))
    labels = reading.mapping(reading.mapping(raw.get("metadata")).get("labels"))
    user = User(record.user.name, tuple(record.user.groups)) if record.user.name else None
    if record.gvk.endswith(f"/{podcliqueset_admission.KIND}"):
        seen = podcliqueset_view.view(raw)
        pods = tuple((clique.pod_path, clique.pod) for clique in seen.cliques)
        return Subject(record.ns, record.name, labels, pods, seen, user, now)
    if record.gvk.endswith("/Pod"):
        pods = (("spec", reading.mapping(raw.get("spec"))),)
        return Subject(record.ns, record.name, labels, pods, None, user, now)
    return None
