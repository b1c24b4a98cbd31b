"""Alerts fire when they should and only then, say what to do, and name metrics there are."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from api.jsons import Json, JsonObject
from tests.repo import checkout, prose
from tests.support import families
from tests.support.alert_cases import CASES, Case

FILES: Final = checkout.ROOT / "charts" / "penstock" / "files"
RULES: Final = FILES / "alerts.yaml"
PAGE: Final = checkout.ROOT / "docs" / "alerts.md"
DASHBOARD: Final = FILES / "dashboard.json"

# What may stand in an expression beside names of metrics.
_WORDS: Final = {"by", "on", "without", "ignoring", "or", "and", "unless", "group_left", "bool"}
_APART: Final = re.compile(
    r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(?:by|on|without|ignoring|group_left)\s*\([^)]*\)'
)
_NAME: Final = re.compile(r"\b[a-z_:][\w:]*\b(?!\s*\()", re.IGNORECASE)


def alerts() -> Iterator[JsonObject]:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        yield from group["rules"]


def panels() -> list[JsonObject]:
    found: list[JsonObject] = yaml.safe_load(DASHBOARD.read_text())["panels"]
    return found


def expressions() -> Iterator[tuple[str, str]]:
    for rule in alerts():
        yield str(rule["alert"]), str(rule["expr"])
    for panel in panels():
        targets = panel.get("targets", [])
        assert isinstance(targets, list)
        for target in targets:
            assert isinstance(target, dict)
            yield str(panel["title"]), str(target["expr"])


def metrics_in(expression: str) -> set[str]:
    return set(_NAME.findall(_APART.sub(" ", expression))) - _WORDS


def unlisted(expression: str) -> set[str]:
    """Give the metrics that an expression names and the page does not."""
    there = families.listed()
    series = {
        f"{name}{end}"
        for name, family in there.items()
        for end in (("_bucket", "_sum", "_count") if family.kind == "histogram" else ("",))
    }
    return metrics_in(expression) - series


@pytest.fixture(scope="session")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("alerts are not tried: no promtool here; on Debian: apt-get install prometheus")
    return found


def tried(promtool: str, folder: Path, cases: list[Case]) -> str:
    """Give what promtool complains of."""
    tests: list[Json] = [_test(case, index) for index, case in enumerate(cases)]
    script: JsonObject = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}
    path = folder / "cases.yaml"
    path.write_text(yaml.safe_dump(script))
    done = subprocess.run(
        [promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def _test(case: Case, index: int) -> JsonObject:
    expected: list[Json] = []
    if case.summary:
        runbook = f"docs/alerts.md#{case.alert.lower()}"
        expected = [
            {
                "exp_labels": {"severity": case.severity, **case.labels},
                "exp_annotations": {"summary": case.summary, "runbook": runbook},
            }
        ]
    return {
        "name": f"{index} {case.alert}",
        "interval": "1m",
        "input_series": [{"series": name, "values": each} for name, each in case.series.items()],
        "alert_rule_test": [
            {"eval_time": f"{case.minutes}m", "alertname": case.alert, "exp_alerts": expected}
        ],
    }


def test_rules_and_panels_can_be_read(promtool: str, tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{index}", "expr": re.sub(r"\$__rate_interval", "5m", expression)}
        for index, (_, expression) in enumerate(expressions())
    ]
    path = tmp_path / "panels.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(
        [promtool, "check", "rules", str(RULES), str(path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_fire_when_they_should_and_only_then(promtool: str, tmp_path: Path) -> None:
    assert tried(promtool, tmp_path, list(CASES)) == ""


def test_an_alert_that_does_not_fire_is_found(promtool: str, tmp_path: Path) -> None:
    leads = {"penstock_gangs_leads": "1x10"}
    wrong = Case("PenstockGangsWithoutLeader", leads, 5, "Nobody places gangs", "critical")
    assert "PenstockGangsWithoutLeader" in tried(promtool, tmp_path, [wrong])


def test_each_alert_is_tried_both_ways() -> None:
    named = [str(rule["alert"]) for rule in alerts()]
    assert len(set(named)) == len(named)
    assert {case.alert for case in CASES if case.summary} == set(named)
    assert {case.alert for case in CASES if not case.summary} == set(named)


def test_each_alert_has_a_section_that_says_what_to_do() -> None:
    text = prose.read(PAGE)
    page = {heading for heading in prose.headings(text) if heading.startswith("Penstock")}
    assert page == {str(rule["alert"]) for rule in alerts()}
    for rule in alerts():
        annotations, labels = rule["annotations"], rule["labels"]
        assert isinstance(annotations, dict)
        assert isinstance(labels, dict)
        assert annotations["runbook"] == f"docs/alerts.md#{str(rule['alert']).lower()}"
        section = prose.section(text, f"### {rule['alert']}")
        assert "**Means:**" in section, rule["alert"]
        assert "**Do:**" in section, rule["alert"]
        assert f"({labels['severity']})" in section, rule["alert"]


@pytest.mark.parametrize(("where", "expression"), [*expressions()])
def test_what_is_asked_for_is_there(where: str, expression: str) -> None:
    assert unlisted(expression) == set(), where


def test_a_metric_that_is_not_there_is_found() -> None:
    expression = 'sum by (a) (rate(grove_gangs_x{b="c"}[5m])) / on (d) grove_gangs > 0.5'
    assert metrics_in(expression) == {"grove_gangs_x", "grove_gangs"}
    assert unlisted(expression) == {"grove_gangs_x"}
