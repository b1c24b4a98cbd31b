import asyncio
from pathlib import Path

import pytest

from penstock.lab.errors import LabError
from penstock.lab.folders import Folder
from penstock.lab.tailing import added, choose, last_lines, tail


def test_the_last_lines_are_the_last(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("".join(f"line {number}\n" for number in range(10_000)))
    lines, offset = last_lines(log, 3)
    assert lines == ["line 9997", "line 9998", "line 9999"]
    assert offset == log.stat().st_size
    assert last_lines(tmp_path / "none.log", 3) == ([], 0)


def test_what_is_added_comes_in_whole_lines(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("old\nnew\nhal")
    lines, offset = added(log, 4)
    assert lines == ["new"]
    log.write_text("old\nnew\nhalf\n")
    assert added(log, offset) == (["half"], 13)
    log.write_text("anew\n")
    assert added(log, 13) == (["anew"], 5)


async def test_following_shows_what_comes_and_who_wrote_it(tmp_path: Path) -> None:
    one, two = tmp_path / "one.log", tmp_path / "two.log"
    one.write_text("first\n")
    shown: list[str] = []
    logs = {"one": one, "two": two}
    task = asyncio.create_task(tail(logs, 10, follow=True, write=shown.append))
    async with asyncio.timeout(5):
        while len(shown) < 3:
            await asyncio.sleep(0.01)
        append(two, "second\n")
        while len(shown) < 4:
            await asyncio.sleep(0.01)
    task.cancel()
    assert shown == ["==> one <==", "first", "==> two <==", "two: second"]


def append(path: Path, text: str) -> None:
    path.write_text(text)


def test_logs_of_the_control_plane_and_of_penstock_are_found(tmp_path: Path) -> None:
    folder = Folder("try", tmp_path)
    for path in (folder.cluster / "logs/etcd.log", tmp_path / "penstock/logs/gangs.log"):
        path.parent.mkdir(parents=True)
        path.touch()
    logs = folder.logs()
    assert logs.keys() == {"etcd", "gangs"}
    assert choose("try", logs, None) == logs
    assert choose("try", logs, "gangs").keys() == {"gangs"}
    with pytest.raises(LabError, match="there are: etcd, gangs"):
        choose("try", logs, "nobody")
    with pytest.raises(LabError, match="penstock lab list"):
        choose("try", {}, None)
