"""A benchmark's rows judge by what they should, and its JSON has what tools read."""

import json
from pathlib import Path

import pytest

from tests.bench.harness import Budget, Row, report, timed


@pytest.mark.parametrize(
    ("row", "within"),
    [
        (Row("no budget", 5, "ms"), None),
        (Row("a ratio without a floor", 5, "ms", budget=Budget(2, of_ratio=True)), None),
        (Row("within", 5, "ms", budget=Budget(5)), True),
        (Row("over", 5.1, "ms", budget=Budget(5)), False),
        (Row("enough", 60, "gangs", budget=Budget(60, least=True)), True),
        (Row("too few", 59, "gangs", budget=Budget(60, least=True)), False),
        (Row("slow, but so is the floor", 50, "ms", 40, Budget(1.3, of_ratio=True)), True),
        (Row("slower than the floor allows", 60, "ms", 40, Budget(1.3, of_ratio=True)), False),
    ],
    ids=lambda value: value.what if isinstance(value, Row) else "",
)
def test_a_row_is_judged_by_its_budget(row: Row, within: bool | None) -> None:  # noqa: FBT001
    assert row.within is within


def test_the_report_is_a_table_and_one_json_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [Row("decide a gang", 3.0, "ms", 1.5, Budget(1.3, of_ratio=True)), Row("n", 7, "pods")]
    path = report("sample", rows, {"nodes": 5}, tmp_path / "new")
    written = json.loads(path.read_text())
    assert written.keys() == {"rows", "machine", "versions", "settings"}
    assert written["rows"][0] == {
        "what": "decide a gang", "value": 3.0, "unit": "ms", "floor": 1.5, "ratio": 2.0,
        "budget": "≤ 1.3 × floor", "within": False,
    }  # fmt: skip
    assert (written["rows"][1]["within"], written["settings"]) == (None, {"nodes": 5})
    assert "decide a gang" in capsys.readouterr().out


def test_timing_calls_as_often_as_it_says() -> None:
    calls: list[None] = []
    timing = timed(lambda: calls.append(None), times=10, warm=2)
    assert len(calls) == 12
    assert 0 <= timing.median <= timing.p99
