"""What a scan comes to, put into reports and into a few lines."""

import json
from datetime import UTC, datetime
from typing import Final

from api import names
from api.jsons import JsonObject
from controller.gangs import scan_results
from controller.gangs.scan_results import MOST_EXAMPLES, MOST_OF_RULE, Looked, Tally
from policies.findings import Finding
from policies.policy_queues import Mode
from policies.problems import Problem

AT: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)


def finding(rule: str = "few", mode: Mode = Mode.ENFORCE, path: str = "spec") -> Finding:
    return Finding(rule, mode, Problem(path, "is too much"))


def looked(name: str, *findings: Finding, namespace: str = "a") -> Looked:
    return Looked("grove.io/v1alpha1", "PodCliqueSet", namespace, name, f"uid-{name}", findings)


def tally(*found: Looked) -> Tally:
    made = Tally("r1")
    for each in found:
        made.add(each)
    return made


def test_only_namespaces_in_which_something_is_broken_have_a_report() -> None:
    found = scan_results.reports(
        tally(looked("good"), looked("bad", finding()), looked("fine", namespace="b"))
    )
    assert [*found] == ["a"]
    assert found["a"]["summary"] == {"pass": 1, "fail": 1, "warn": 0, "error": 0, "skip": 0}


def test_a_result_names_the_object_the_rule_and_what_comes_of_it() -> None:
    few = (finding(), finding(path="spec.other"))
    (report,) = scan_results.reports(tally(looked("x", *few, finding("w", Mode.AUDIT)))).values()
    results = report["results"]
    assert isinstance(results, list)
    first, second = results
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert (first["rule"], first["result"], first["scored"]) == ("few", "fail", True)
    assert first["message"] == "spec: is too much (+1 more)"
    assert first["resources"] == [
        {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodCliqueSet",
            "namespace": "a",
            "name": "x",
            "uid": "uid-x",
        }
    ]
    assert (second["result"], second["properties"]) == ("warn", {"mode": "audit"})


def test_a_report_is_bounded_and_its_counts_are_whole() -> None:
    many = MOST_OF_RULE + 7
    (report,) = scan_results.reports(
        tally(*(looked(f"x{i}", finding()) for i in range(many)))
    ).values()
    results, summary = report["results"], report["summary"]
    assert isinstance(results, list)
    assert isinstance(summary, dict)
    assert (len(results), summary["fail"]) == (MOST_OF_RULE, many)


def test_the_summary_counts_objects_by_rule_and_names_some() -> None:
    many = MOST_EXAMPLES + 3
    found = tally(looked("good"), *(looked(f"x{i}", finding(), finding()) for i in range(many)))
    said: JsonObject = json.loads(scan_results.summary(found, AT))
    assert said["revision"] == "r1"
    assert said["finishedAt"] == "2026-01-01T12:00:00Z"
    assert said["lookedAt"] == {"PodCliqueSet": many + 1}
    broken = said["broken"]
    assert isinstance(broken, list)
    (rule,) = broken
    assert isinstance(rule, dict)
    assert (rule["rule"], rule["mode"], rule["objects"]) == ("few", "enforce", many)
    assert len(rule["examples"]) == MOST_EXAMPLES  # type: ignore[arg-type]


def test_a_report_is_ours_by_name_and_label() -> None:
    (report,) = scan_results.reports(tally(looked("x", finding()))).values()
    metadata = report["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["name"] == names.POLICY_REPORT
    assert metadata["labels"] == {names.MANAGED_BY_LABEL: names.REPORTED_BY}
