"""The policy changes while reviews are judged, and a bad one changes nothing."""

import logging

import pytest

from policies.policy_source import BUILT_IN_SOURCE
from webhook.governing import Governing
from webhook.metrics import Metrics


def governing() -> tuple[Governing, Metrics]:
    metrics = Metrics(())
    return Governing(BUILT_IN_SOURCE, "ours", metrics), metrics


def test_a_new_policy_counts_at_once_and_is_shown_alone() -> None:
    found, metrics = governing()
    found.take("pods: {queue: a}")
    assert found.policy().pods.queue == "a"
    found.take("pods: {queue: b}")
    assert found.policy().pods.queue == "b"
    shown = [line for line in metrics.written().decode().splitlines() if "policy_info{" in line]
    (line,) = shown
    assert f'revision="{found.source.revision}"' in line
    assert "ConfigMap ours/penstock-policy key policy.yaml" in line


@pytest.mark.parametrize("text", ["pods: {queeu: x}", "- a list", "a: &anchor 1", None])
def test_what_cannot_be_gone_by_changes_nothing(
    text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    found, metrics = governing()
    found.take("pods: {queue: a}")
    with caplog.at_level(logging.WARNING):
        found.take(text)
    assert found.policy().pods.queue == "a"
    assert f"revision {found.source.revision} still holds" in caplog.text
    written = metrics.written().decode()
    assert f"penstock_webhook_policy_valid {0.0 if text else 1.0}" in written
    assert f"penstock_webhook_policy_faults_total {1.0 if text else 0.0}" in written


def test_a_good_one_after_a_bad_one_mends_it() -> None:
    found, metrics = governing()
    found.take("pods: {queeu: x}")
    found.take("")
    assert "penstock_webhook_policy_valid 1.0" in metrics.written().decode()
    assert found.policy() == BUILT_IN_SOURCE.policy
