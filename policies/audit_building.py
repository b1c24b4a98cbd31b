"""A record of the audit log from what was asked and what came of it. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
import orjson

from api.jsons import JsonObject
from policies import audit_excerpt, policy_reading, reading, syntax
from policies.answers import Allow, Refuse
from policies.audit_excerpt import Excerpt
from policies.audit_records import (
    LONGEST_LINE,
    NO_EXCERPT,
    Asked,
    Outcome,
    Record,
    User,
    Violation,
)
from policies.audit_words import Redacting, redacting
from policies.policy import Policy

MOST_VIOLATIONS: Final = 40
MOST_GROUPS: Final = 10
# The chain's own fields come on top of a record.
LONGEST_RECORD: Final = LONGEST_LINE - 1024
_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


@dataclass(frozen=True)
class Terms:
    """By which words a record is written: those of one policy, under one key."""

    policy: Policy
    revision: str
    told: Redacting


def terms(key: bytes, policy: Policy) -> Terms:
    """Give the terms of a policy. This costs milliseconds, so keep it while the policy lasts."""
    return Terms(policy, policy_reading.revision(policy), redacting(key, policy))


def timestamp(now: datetime) -> str:
    """Write an instant as records do, in UTC."""
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def record(asked: Asked, outcome: Outcome, now: datetime, pod: str, by: Terms) -> Record:
    """Write the record of a request; no text of the object is in it but as a tag."""
    told, raw = by.told, asked.object
    metadata = reading.mapping((raw or {}).get("metadata"))
    namespace = asked.namespace or _name(metadata.get("namespace"), told)
    excerpt = _excerpt(asked, namespace, by)
    found = list(_said(asked, outcome))
    answer = outcome.answer
    patch = answer.patch if isinstance(answer, Allow) else ()
    written = Record(
        ts=timestamp(now),
        pod=pod,
        audit_id=asked.uid,
        webhook=asked.webhook,
        op=asked.operation.value,
        dry_run=asked.dry_run,
        decision=outcome.decision,
        code=int(answer.code) if isinstance(answer, Refuse) else 0,
        gvk="/".join(filter(None, (asked.group, asked.version, asked.kind))),
        subresource=asked.subresource,
        ns=namespace,
        name=_name(asked.name or metadata.get("name"), told),
        generate_name=_name(metadata.get("generateName"), told),
        object_uid=_uid(metadata.get("uid")),
        owner=_owner(metadata, told),
        user=_user(asked),
        policy=by.revision,
        violations=[each.redacted(told) for each in found[:MOST_VIOLATIONS]],
        more_violations=max(0, len(found) - MOST_VIOLATIONS),
        queue=excerpt.queue,
        gang=excerpt.size,
        spec_digest=excerpt.digest,
        excerpt=msgspec.Raw(excerpt.text) if excerpt.text else NO_EXCERPT,
        excerpt_cut=excerpt.cut,
        patch_digest=f"hmac:{told.digest(orjson.dumps(patch))[:32]}" if patch else "",
        suppressed=outcome.suppressed,
        latency_ms=round(outcome.seconds * 1000, 3),
    )
    return _short_enough(written)


def _short_enough(written: Record) -> Record:
    if len(msgspec.json.encode(written)) <= LONGEST_RECORD:
        return written
    cut = msgspec.structs.replace(written, excerpt=NO_EXCERPT, excerpt_cut=True)
    if len(msgspec.json.encode(cut)) <= LONGEST_RECORD:
        return cut
    few, rest = cut.violations[:5], len(cut.violations[5:])
    more = cut.more_violations + rest
    return msgspec.structs.replace(cut, violations=few, more_violations=more, user=User())


def rules_of(asked: Asked, outcome: Outcome) -> str:
    """Name the rules that were broken, to tell one sort of refusal from another."""
    answer = outcome.answer
    named = {finding.rule for finding in answer.findings}
    if isinstance(answer, Refuse):
        named |= {problem.rule for problem in answer.problems if problem.rule}
    return ",".join(sorted(named)[:8]) or asked.webhook


def _excerpt(asked: Asked, namespace: str, by: Terms) -> Excerpt:
    if asked.object is None:
        return Excerpt()
    return audit_excerpt.of(asked.kind, namespace, asked.object, by.policy, by.told)


@dataclass(frozen=True)
class _Said:
    """What a rule said, in its own words."""

    rule: str
    path: str
    message: str
    mode: str = "enforce"

    def redacted(self, told: Redacting) -> Violation:
        path, message = told.path(self.path), told.message(self.message)
        return Violation(rule=self.rule, path=path, message=message, mode=self.mode)


def _said(asked: Asked, outcome: Outcome) -> Iterator[_Said]:
    answer = outcome.answer
    for finding in answer.findings:
        problem = finding.problem
        yield _Said(finding.rule, problem.path, problem.message, finding.mode.value)
    by_policy = {finding.told for finding in answer.findings}
    if isinstance(answer, Allow):
        told = set(map(str, by_policy))
        for warning in answer.warnings:
            if warning not in told:
                yield _Said(asked.webhook, "", warning, "warn")
        return
    for problem in answer.problems:
        if problem not in by_policy:
            yield _Said(problem.rule or asked.webhook, problem.path, problem.message)
    if not answer.problems:
        yield _Said(asked.webhook, "", answer.message)


def _name(value: object, told: Redacting) -> str:
    """Give a name that an object can have, and a tag for all else: it is no name of anything."""
    if not isinstance(value, str) or not value:
        return ""
    bare = value.rstrip("-.")  # as names to be generated end
    return value if syntax.is_subdomain(bare) else told.tag(value)


def _owner(metadata: JsonObject, told: Redacting) -> str:
    for each in reading.items(metadata.get("ownerReferences"))[:16]:
        owner = reading.mapping(each)
        if owner.get("controller") is True:
            kind, name = (reading.text(owner.get(key)) or "" for key in ("kind", "name"))
            return f"{told.value(kind)}/{told.tag(name)}/{_uid(owner.get('uid'))}"
    return ""


def _uid(value: object) -> str:
    return value if isinstance(value, str) and _UID.fullmatch(value) else ""


def _user(asked: Asked) -> User:
    user = asked.user
    return User(user.name, user.uid, list(user.groups[:MOST_GROUPS]), list(user.extra[:10]))
