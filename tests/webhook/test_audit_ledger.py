import errno
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from typing_extensions import override

from certs import seals
from policies import audit_chain
from policies.audit_records import Missed, Opened, Record, Sealed
from policies.audit_verifying import Report, Segment, Trust, verify
from tests.support.auditstand import KEY, Out, ledger, lines_of
from webhook import audit_files
from webhook.audit_files import HEAD, Files, Room
from webhook.audit_ledger import Ledger

TRUST: Final = Trust(seals.is_signed, frozenset((KEY.public,)))
SMALL: Final = Room(4096, 16384)


def record(number: int, padding: int = 100) -> Record:
    return Record(
        ts="2026-01-01T00:00:00.000000Z", pod="webhook-0", audit_id=f"u-{number}",
        webhook="x" * padding, op="CREATE", decision="deny", policy="p", latency_ms=1.0,
    )  # fmt: skip


def text_in(folder: Path) -> list[Segment]:
    names = audit_files.names_in(folder)
    return [Segment(name, (folder / name).read_bytes()) for name in names]


def checked(folder: Path) -> Report:
    head = audit_chain.read_head((folder / HEAD).read_bytes())
    return verify(text_in(folder), head, TRUST)


def ids_in(folder: Path) -> list[str]:
    lines = lines_of(b"".join(segment.text for segment in text_in(folder)))
    return [line.audit_id for line in lines if isinstance(line, Record)]


def test_what_is_appended_is_there_whole_and_sealed(tmp_path: Path) -> None:
    log = ledger(tmp_path)
    assert log.append([record(1), record(2)]) == 0
    assert log.append([record(3)]) == 0
    assert checked(tmp_path).is_whole  # also before it is closed
    log.close()
    report = checked(tmp_path)
    assert report.is_whole
    assert (report.records, report.lines, report.sealed) == (3, 5, 5)
    assert ids_in(tmp_path) == ["u-1", "u-2", "u-3"]
    (segment,) = text_in(tmp_path)
    kinds = [type(line) for line in lines_of(segment.text)]
    assert kinds == [Opened, Record, Record, Record, Sealed]


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    log = ledger(tmp_path / "log")
    log.append([record(1)])
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "log").iterdir()}
    assert modes == {0o600}
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o700


def test_a_successor_goes_on_with_the_chain(tmp_path: Path) -> None:
    for life in range(3):
        log = ledger(tmp_path, pod=f"webhook-{life}")
        log.append([record(life)])
        if life != 1:  # the second one is killed
            log.close()
    report = checked(tmp_path)
    assert [str(fault) for fault in report.faults] == []
    assert (report.first, report.records, len(text_in(tmp_path))) == (1, 3, 3)


def test_a_line_that_death_tore_is_cut_off_and_told(tmp_path: Path) -> None:
    log = ledger(tmp_path)
    log.append([record(1)])
    (name,) = audit_files.names_in(tmp_path)
    with (tmp_path / name).open("ab") as file:
        file.write(b'{"v":1,"seq":3,"line":"rec')
    assert not checked(tmp_path).is_whole
    after = ledger(tmp_path)
    after.append([record(2)])
    assert checked(tmp_path).is_whole
    opened = [x for x in lines_of(text_in(tmp_path)[1].text) if isinstance(x, Opened)]
    assert [line.cut for line in opened] == [26]


def test_death_at_every_byte_leaves_a_log_that_goes_on(tmp_path: Path) -> None:
    log = ledger(tmp_path / "whole")
    log.append([record(1, 5)])
    log.append([record(2, 5)])
    (segment,) = text_in(tmp_path / "whole")
    head = (tmp_path / "whole" / HEAD).read_bytes()
    for length in range(0, len(segment.text), 7):
        folder = tmp_path / str(length)
        folder.mkdir()
        (folder / segment.name).write_bytes(segment.text[:length])
        after = ledger(folder)
        assert after.append([record(3)]) == 0
        after.close()
        # The head was not yet written when these bytes were, or is newer now.
        assert head != (folder / HEAD).read_bytes()
        assert [str(fault) for fault in checked(folder).faults] == [], length


def test_files_are_bounded_and_the_oldest_goes(tmp_path: Path) -> None:
    log = ledger(tmp_path, room=SMALL)
    for number in range(300):
        log.append([record(number)])
    log.close()
    sizes = [len(segment.text) for segment in text_in(tmp_path)]
    assert len(sizes) > 1
    assert sum(sizes) <= SMALL.total + SMALL.segment
    report = checked(tmp_path)
    assert [str(fault) for fault in report.faults] == []
    assert report.first > 1
    assert ids_in(tmp_path)[-1] == "u-299"


@pytest.mark.parametrize("mebibytes", [1, 200])
def test_room_is_shared_out_among_several_files(mebibytes: int) -> None:
    room = Room.of(mebibytes)
    assert room.total == mebibytes << 20
    assert 4 * room.segment <= room.total
    assert room.segment <= 10 << 20


def test_standard_output_has_the_same_chain(tmp_path: Path) -> None:
    out = Out()
    log = ledger(tmp_path, out, SMALL)
    for number in range(60):
        log.append([record(number)])
    log.close()
    text = b"".join(segment.text for segment in text_in(tmp_path))
    assert out.text.endswith(text)


class Failing(Files):
    """Files on a disk that is full for a while."""

    full = False

    @override
    def append(self, text: bytes) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().append(text)


def stand_failing(log: Ledger) -> bool:
    return log.is_failing


def failing(folder: Path, out: Out | None = None) -> tuple[Ledger, Failing]:
    files = Failing(folder, SMALL)
    log = ledger(None, out)
    return Ledger(log._scribe, files, out), files


def test_what_a_full_disk_did_not_take_is_told_when_it_takes_again(tmp_path: Path) -> None:
    out = Out()
    log, files = failing(tmp_path, out)
    log.append([record(1)])
    files.full = True
    assert log.append([record(2), record(3)]) == 2
    assert log.append([record(4)]) >= 1
    assert log.is_failing
    files.full = False
    assert log.append([record(5)]) == 0
    assert stand_failing(log) is False
    log.close()
    report = checked(tmp_path)
    assert [str(fault) for fault in report.faults] == []
    assert report.missed >= 3
    assert ids_in(tmp_path) == ["u-1", "u-5"]
    assert [each.audit_id for each in out.records()] == [f"u-{i}" for i in range(1, 6)]


def test_a_disk_that_is_full_from_the_start_is_written_when_there_is_room(tmp_path: Path) -> None:
    log, files = failing(tmp_path)
    files.full = True
    for number in range(5):
        assert log.append([record(number)]) >= 1
    files.full = False
    log.append([record(9)])
    log.close()
    report = checked(tmp_path)
    assert [str(fault) for fault in report.faults] == []
    assert ids_in(tmp_path) == ["u-9"]
    missed = [x for x in lines_of(text_in(tmp_path)[0].text) if isinstance(x, Missed)]
    assert missed[0].after == 0
    assert missed[0].lines >= 5


@contextmanager
def small_files() -> Iterator[int]:
    """Have the kernel refuse to let files grow beyond a page, as a full disk does.

    Not for longer than it takes: this process may write what it tells of tests into a file.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield 4096
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_write_that_the_kernel_refuses_half_way_leaves_whole_lines(tmp_path: Path) -> None:
    log = ledger(tmp_path, room=Room(1 << 20, 4 << 20))
    with small_files() as limit:
        missed = sum(log.append([record(number)]) for number in range(30))
    assert missed > 0
    (segment,) = text_in(tmp_path)
    assert segment.text.endswith(b"\n")
    assert len(segment.text) <= limit
    assert checked(tmp_path).is_whole


def test_a_folder_that_cannot_be_made_hurts_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = ledger(tmp_path / "file" / "log")
    assert log.append([record(1)]) == 1
    assert log.is_failing
    log.close()
