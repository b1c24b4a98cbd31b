"""What is found in audit logs, for people and as data for tools."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import orjson

from api.jsons import Json, JsonObject
from policies.audit_reading import Anew, Entry, Top
from policies.audit_verifying import Report

MOST_SHOWN: Final = 10


def entry_text(entry: Entry) -> str:
    """Give a record on a line, with what was wrong below."""
    record = entry.record
    what = f"{record.gvk.rpartition('/')[2]} {record.ns}/{record.name or record.generate_name}"
    dry = " (dry run)" if record.dry_run else ""
    more = f", and {record.suppressed} more like it" if record.suppressed else ""
    lines = [
        f"{record.ts}  {record.decision}  {record.op} {what} by {record.user.name}{dry}{more}",
        f"  {record.pod}  {record.audit_id}  policy {record.policy}",
    ]
    for each in record.violations:
        place = f"{each.path}: " if each.path else ""
        lines.append(f"  {each.rule} ({each.mode}): {place}{each.message}")
    if record.more_violations:
        lines.append(f"  +{record.more_violations} more")
    return "\n".join(lines)


def entry_json(entry: Entry) -> Json:
    """Give a record as it was written."""
    found: Json = orjson.loads(entry.text)
    return found


def top_text(found: Top) -> str:
    """Give the most frequent of each sort."""
    parts = (
        ("decisions", found.decisions),
        ("rules", found.rules),
        ("namespaces", found.namespaces),
        ("users", found.users),
    )
    lines: list[str] = []
    for title, counts in parts:
        lines.append(title)
        lines += [f"  {count:>8}  {what or '(none)'}" for what, count in _most(counts)]
    return "\n".join(lines)


def _most(counts: Counter[str]) -> list[tuple[str, int]]:
    return [(what, count) for what, count in counts.most_common(MOST_SHOWN) if count]


def top_json(found: Top) -> JsonObject:
    """Give all of each sort."""
    return {
        "decisions": {**found.decisions},
        "rules": {**found.rules},
        "namespaces": {**found.namespaces},
        "users": {**found.users},
    }


def report_text(replica: str, report: Report) -> str:
    """Say whether a log is whole, and all that is wrong with it."""
    verdict = "whole" if report.is_whole else f"NOT whole, {len(report.faults)} faults"
    lines = [
        f"{replica}: {verdict}: lines {report.first} to {report.last}, {report.records} records, "
        f"{report.suppressed} suppressed, {report.dropped} dropped, {report.missed} not written; "
        f"signed up to line {report.sealed} by {', '.join(sorted(report.keys)) or 'nobody'}"
    ]
    return "\n".join([*lines, *(f"  {fault}" for fault in report.faults)])


def report_json(replica: str, report: Report) -> JsonObject:
    """Give the same for tools."""
    return {
        "replica": replica,
        "whole": report.is_whole,
        "first": report.first,
        "last": report.last,
        "lines": report.lines,
        "records": report.records,
        "suppressed": report.suppressed,
        "dropped": report.dropped,
        "missed": report.missed,
        "signedUpTo": report.sealed,
        "keys": [*sorted(report.keys)],
        "faults": [
            {"file": fault.segment, "line": fault.line, "problem": fault.problem}
            for fault in report.faults
        ],
    }


def anew_text(found: Sequence[Anew] | None) -> str:
    """Say what today's policy makes of a record."""
    if found is None:
        return "today: nothing of the object was kept that could be judged"
    if not found:
        return "today: no rule of the policy has anything to say"
    return "\n".join(map(_anew_line, found))


def _anew_line(each: Anew) -> str:
    if each.now:
        sure = "" if each.is_sure else ", as far as can be told without the redacted text"
        return f"today: {each.rule} ({each.mode}) is broken{sure}: {each.now}"
    if each.is_sure:
        return f"today: {each.rule} is broken no more"
    return f"today: {each.rule} cannot be told without the redacted text"


def anew_json(found: Sequence[Anew] | None) -> Json:
    """Give the same for tools."""
    if found is None:
        return None
    return [
        {
            "rule": each.rule,
            "then": each.then,
            "now": each.now,
            "mode": each.mode,
            "certain": each.is_sure,
        }
        for each in found
    ]
