"""What a look at everything that is there comes to: reports by namespace, and a summary. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import orjson

from api import names
from api.jsons import Json, JsonObject
from kube.resources import OPEN_REPORTS, POLICY_REPORTS, Resource
from policies.findings import Finding
from policies.policy_queues import Mode

SOURCE: Final = "penstock"
MOST_OF_RULE: Final = 50
MOST_IN_REPORT: Final = 500
MOST_EXAMPLES: Final = 20

# Kinds of reports that people's tools read, alike in all that is said here: the policy working
# group's, and what came of it.
KINDS: Final = (POLICY_REPORTS, OPEN_REPORTS)

# A report's words; what is only noted is no failure of anybody.
RESULTS: Final[Mapping[Mode, str]] = {Mode.ENFORCE: "fail", Mode.WARN: "warn", Mode.AUDIT: "warn"}


@dataclass(frozen=True)
class Looked:
    """One object, and by which rules of the policy it would be refused or warned of now."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    findings: tuple[Finding, ...] = ()

    def broken(self) -> Mapping[str, list[Finding]]:
        """Give what was found, by rule."""
        found: dict[str, list[Finding]] = {}
        for each in self.findings:
            found.setdefault(each.rule, []).append(each)
        return found


@dataclass
class Tally:
    """All that was looked at so far; of what is in order only the count is kept."""

    revision: str
    counts: dict[str, int] = field(default_factory=dict)
    good: dict[str, int] = field(default_factory=dict)
    broken: list[Looked] = field(default_factory=list)

    def add(self, looked: Looked) -> None:
        """Count one more object."""
        self.counts[looked.kind] = self.counts.get(looked.kind, 0) + 1
        if looked.findings:
            self.broken.append(looked)
        else:
            self.good[looked.namespace] = self.good.get(looked.namespace, 0) + 1


def reports(tally: Tally, kind: Resource = POLICY_REPORTS) -> Mapping[str, JsonObject]:
    """Give the report of each namespace in which something is broken."""
    found: dict[str, list[Looked]] = {}
    for each in tally.broken:
        found.setdefault(each.namespace, []).append(each)
    said: JsonObject = {"apiVersion": kind.api_version, "kind": kind.kind}
    return {
        namespace: {**said, **_report(namespace, each, tally)} for namespace, each in found.items()
    }


def _report(namespace: str, broken: Sequence[Looked], tally: Tally) -> JsonObject:
    results: list[Json] = []
    of_rule: dict[str, int] = {}
    counts = {"pass": tally.good.get(namespace, 0), "fail": 0, "warn": 0, "error": 0, "skip": 0}
    for looked in broken:
        for rule, found in looked.broken().items():
            result = RESULTS[found[0].mode]
            counts[result] += 1
            of_rule[rule] = of_rule.get(rule, 0) + 1
            if of_rule[rule] <= MOST_OF_RULE and len(results) < MOST_IN_REPORT:
                results.append(_result(looked, rule, found, result))
    return {
        "metadata": {
            "name": names.POLICY_REPORT,
            "namespace": namespace,
            "labels": {names.MANAGED_BY_LABEL: names.REPORTED_BY},
            "annotations": {names.POLICY_REVISION: tally.revision},
        },
        "summary": {**counts},
        "results": results,
    }


def _result(looked: Looked, rule: str, found: Sequence[Finding], result: str) -> JsonObject:
    resource: JsonObject = {
        "apiVersion": looked.api_version,
        "kind": looked.kind,
        "namespace": looked.namespace,
        "name": looked.name,
        "uid": looked.uid,
    }
    return {
        "source": SOURCE,
        "policy": names.POLICY_CONFIG,
        "rule": rule,
        "result": result,
        "scored": found[0].mode is Mode.ENFORCE,
        "message": _message(found),
        "properties": {"mode": found[0].mode.value},
        "resources": [resource],
    }


def _message(found: Sequence[Finding]) -> str:
    more = f" (+{len(found) - 1} more)" if len(found) > 1 else ""
    return f"{found[0].problem}{more}"


def summary(tally: Tally, at: datetime) -> str:
    """Give all of it in short: how many objects break which rule, and some of them by name."""
    rules: dict[tuple[str, str], list[JsonObject]] = {}
    for looked in tally.broken:
        for rule, found in looked.broken().items():
            rules.setdefault((rule, found[0].mode.value), []).append(
                {
                    "kind": looked.kind,
                    "namespace": looked.namespace,
                    "name": looked.name,
                    "message": _message(found),
                }
            )
    broken: list[Json] = [
        {
            "rule": rule,
            "mode": mode,
            "objects": len(objects),
            "examples": [*objects[:MOST_EXAMPLES]],
        }
        for (rule, mode), objects in sorted(rules.items())
    ]
    said: JsonObject = {
        "revision": tally.revision,
        "finishedAt": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lookedAt": {**tally.counts},
        "broken": broken,
    }
    return orjson.dumps(said, option=orjson.OPT_INDENT_2).decode()
