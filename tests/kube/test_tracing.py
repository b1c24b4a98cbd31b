"""Spans name each other without having met, and are imported only where they are asked for."""

import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from kube import tracing
from kube.tracing import Span, Step
from tests.repo.checkout import ROOT
from tests.support.collector import collecting

AT = datetime(2026, 1, 1, tzinfo=UTC)
SET = "0f8fad5b-d9cb-469f-a165-70867728950e"


def span(step: Step, gang: str = "chat-0", origin: str = SET) -> Span:
    return Span(origin, step, "" if step is Step.REVIEW else gang, AT, AT)


def test_each_step_is_within_the_one_before() -> None:
    assert span(Step.REVIEW).parent_id is None
    for before, after in zip(Step, list(Step)[1:], strict=False):
        assert span(after).parent_id == span(before).span_id
        assert span(after).trace_id == span(before).trace_id


def test_gangs_of_a_set_are_in_one_trace_and_share_its_review_alone() -> None:
    one, other = span(Step.EXPAND, "chat-0"), span(Step.EXPAND, "chat-1")
    assert one.span_id != other.span_id
    assert one.parent_id == other.parent_id
    assert span(Step.BOUND, "chat-0").parent_id != span(Step.BOUND, "chat-1").parent_id


def test_a_set_made_anew_has_another_trace() -> None:
    later = "1f8fad5b-d9cb-469f-a165-70867728950e"
    assert span(Step.REVIEW).trace_id != span(Step.REVIEW, origin=later).trace_id


def test_spans_arrive_with_their_numbers() -> None:
    with collecting() as collector:
        exporter = tracing.exporting(collector.url, "gangs")
        exporter.record(span(Step.LIFT))
        exporter.record(span(Step.BOUND, origin="no-uid"))
        exporter.close()
        (arrived,) = collector.of(SET.replace("-", ""))
        assert collector.of("0" * 32) == []
    sent = span(Step.LIFT)
    assert (arrived.name, arrived.service) == ("lift", "penstock-gangs")
    assert int(arrived.number, 16) == sent.span_id
    assert int(arrived.parent, 16) == sent.parent_id


def test_headers_of_the_environment_are_sent_with_spans() -> None:
    code = (
        "import sys\n"
        "from kube import tracing\n"
        "from tests.kube.test_tracing import span, Step\n"
        "exporter = tracing.exporting(sys.argv[1], 'gangs')\n"
        "exporter.record(span(Step.LIFT))\n"
        "exporter.close()"
    )
    headers = {"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-tenant=a,authorization=Bearer%20s3cret"}
    with collecting() as collector:
        subprocess.run(
            [sys.executable, "-c", code, collector.url], check=True, cwd=ROOT,
            env={**os.environ, **headers},
        )  # fmt: skip
        assert collector.of(SET.replace("-", ""))
    assert collector.authorizations == {"Bearer s3cret"}


def test_nothing_of_it_is_imported_unless_it_is_asked_for() -> None:
    code = (
        "import sys, webhook.__main__, controller.gangs.__main__, controller.workloads.__main__\n"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("collector:4318", "is no URL"),
        ("ftp://collector", "is no URL"),
        ("http://", "is no URL"),
        ("http://me:secret@collector/v1/traces", "credentials go into"),
    ],
)
def test_what_is_no_endpoint_is_refused(url: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as refused:
        tracing.endpoint(url)
    assert "secret" not in str(refused.value)
