"""Runs are kept in a table by commit, which is read again and added to."""

from pathlib import Path

from tests.chaos import ledger, results
from tests.chaos.audit_rules import Finding
from tests.chaos.results import Result


def result(
    seed: int, commit: str, *findings: str, trouble: str = "", mutation: str = "", kills: int = 0
) -> Result:
    found = [Finding(rule, 1.0, "pod a/p", "why") for rule in findings]
    figures = {"converged": 3.0 + seed}
    begun = "2026-11-19T10:00:00+00:00"
    done = {"kill gangs": kills} if kills else {}
    return Result(
        seed, commit, begun, 20.0, ["burst"], [], found, figures, trouble, mutation, done=done
    )  # fmt: skip


RUNS = [
    result(1, "aa", kills=2),
    result(2, "aa", kills=3),
    result(4, "aa", "whole", "whole", "room"),
    result(9, "aa", trouble="no API server"),
    result(3, "bb"),
    result(5, "bb", "gates", mutation="lift"),
]


def test_runs_are_added_up_by_commit() -> None:
    first, second = ledger.rows(RUNS)
    assert first.cells() == ["aa", "2026-11-19", "1-2, 4", "3", "2", "1", "7", "room 1, whole 1"]
    assert second.cells() == ["bb", "2026-11-19", "3", "1", "1", "0", "6", ""]


def test_the_table_is_read_as_it_was_written_and_ends_with_the_sum() -> None:
    made = ledger.rows(RUNS)
    text = ledger.written([], made)
    assert ledger.read(text) == made
    assert "\n| all |  |  | 4 | 3 | 1 | 7 | room 1, whole 1 |\n" in text


def test_what_came_about_is_counted_of_commits_where_it_is_known() -> None:
    text = ledger.written([], ledger.rows(RUNS))
    *_, first, total = [line.split(" | ")[:3] for line in text.splitlines()]
    assert (first, total) == (["| aa", "5", "0"], ["| all", "5", "0"])


def test_tables_are_read_whatever_is_said_between_them() -> None:
    made = ledger.rows(RUNS)
    assert ledger.read(ledger.written([], made).replace("How often", "How frequently")) == made


def test_a_table_without_counts_is_read() -> None:
    text = ledger.written([], ledger.rows(RUNS))
    old = text.partition("## What came about")[0]
    assert [row.seeds for row in ledger.read(old)] == [{1, 2, 4}, {3}]


def test_a_later_session_adds_to_it_and_of_one_commit_the_longer_row_stays(tmp_path: Path) -> None:
    file = tmp_path / "runs.md"
    ledger.record(RUNS, file)
    ledger.record([result(6, "cc"), result(3, "bb"), result(7, "bb"), result(1, "aa")], file)
    found = {row.commit: sorted(row.seeds) for row in ledger.read(file.read_text())}
    assert found == {"aa": [1, 2, 4], "bb": [3, 7], "cc": [6]}


def test_lines_of_runs_can_be_read_again(tmp_path: Path) -> None:
    for each in RUNS:
        results.append(each, tmp_path)
    assert results.read(tmp_path) == RUNS
