from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certs import seals
from certs.seals import Signer
from policies import audit_chain
from policies.audit_chain import BEGINNING, Head, Link
from policies.audit_records import Line, Missed, Opened, Record, Sealed, Summary
from policies.audit_verifying import Report, Segment, Trust, verify

SIGNER = Signer.of(b"k" * 32)
STRANGER = Signer.of(b"s" * 32)
TRUST = Trust(seals.is_signed, frozenset((SIGNER.public,)))
TS = "2026-01-01T00:00:00.000000Z"


def record(number: int) -> Record:
    return Record(
        ts=TS, pod="a", audit_id=f"u-{number}", webhook="w", op="CREATE", decision="deny",
        policy="p", latency_ms=1.0,
    )  # fmt: skip


class Log:
    """A log as a process writes it, line by line."""

    def __init__(self) -> None:
        self.at = Link()
        self.files: list[list[bytes]] = []

    def say(self, *said: Line) -> None:
        for each in said:
            text, self.at = audit_chain.chained(each, self.at)
            self.files[-1].append(text)

    def open(self, oldest: int = 1) -> None:
        self.files.append([])
        self.first = self.at.seq + 1
        self.say(Opened(ts=TS, pod="a", chain="c", oldest=oldest))

    def seal(self, signer: Signer = SIGNER) -> None:
        signature = signer.sign(audit_chain.sealed_text(self.at, self.first))
        self.say(Sealed(ts=TS, first=self.first, key=signer.public, signature=signature))

    @property
    def head(self) -> Head:
        signature = SIGNER.sign(audit_chain.head_text(self.at))
        return Head(self.at.seq, self.at.hash, SIGNER.public, signature)


def written(files: int = 3, records: int = 4) -> Log:
    log = Log()
    for number in range(files):
        log.open()
        log.say(*(record(number * records + i) for i in range(records)))
        if number < files - 1:
            log.seal()
    return log


def segments(files: Sequence[Sequence[bytes]]) -> list[Segment]:
    return [Segment(f"file-{i}", b"".join(lines)) for i, lines in enumerate(files)]


def checked(log: Log, head: Head | None = None) -> Report:
    return verify(segments(log.files), head or log.head, TRUST)


def test_what_was_written_is_whole() -> None:
    report = checked(written())
    assert [str(fault) for fault in report.faults] == []
    assert (report.lines, report.records) == (17, 12)
    assert (report.first, report.last, report.sealed) == (1, 17, 17)
    assert report.keys == {SIGNER.public}


def test_lines_are_json_and_say_what_they_said() -> None:
    text, link = audit_chain.chained(record(7), Link())
    assert msgspec.json.decode(text)["audit_id"] == "u-7"
    found = audit_chain.read(text.rstrip())
    assert found is not None
    assert (found.said, found.fits, found.link, found.prev) == (record(7), True, link, BEGINNING)


def positions(log: Log) -> list[tuple[int, int]]:
    return [(i, k) for i, file in enumerate(log.files) for k in range(len(file))]


ALL = positions(written())


def changed(files: list[list[bytes]], i: int, k: int) -> None:
    files[i][k] = files[i][k].replace(TS.encode(), TS.replace("2026", "2025").encode())


def taken_out(files: list[list[bytes]], i: int, k: int) -> None:
    del files[i][k]


def doubled(files: list[list[bytes]], i: int, k: int) -> None:
    files[i].insert(k, files[i][k])


def cut(files: list[list[bytes]], i: int, k: int) -> None:
    files[i][k] = files[i][k][:-1]


@pytest.mark.parametrize("how", [changed, taken_out, doubled, cut])
@pytest.mark.parametrize(("i", "k"), ALL)
def test_no_line_can_be_changed_taken_out_or_doubled(
    how: Callable[[list[list[bytes]], int, int], None], i: int, k: int
) -> None:
    log = written()
    head = log.head
    how(log.files, i, k)
    assert checked(log, head).faults


@pytest.mark.parametrize(("one", "other"), [*pairwise(ALL), ((0, 1), (2, 2))])
def test_no_two_lines_can_change_places(one: tuple[int, int], other: tuple[int, int]) -> None:
    log = written()
    (i, k), (j, m) = one, other
    log.files[i][k], log.files[j][m] = log.files[j][m], log.files[i][k]
    assert checked(log).faults


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_no_file_can_be_taken_away(gone: int) -> None:
    log = written()
    head = log.head
    del log.files[gone]
    (fault, *_) = checked(log, head).faults
    assert "missing" in fault.problem


@given(st.data())
def test_no_byte_can_be_changed(data: st.DataObject) -> None:
    log = written(2, 2)
    head = log.head
    i, k = data.draw(st.sampled_from(positions(log)))
    line = bytearray(log.files[i][k])
    place = data.draw(st.integers(0, len(line) - 1))
    line[place] ^= data.draw(st.integers(1, 255))
    log.files[i][k] = bytes(line)
    assert checked(log, head).faults


def test_whoever_writes_the_rest_of_the_chain_anew_lacks_the_key() -> None:
    log = written()
    forged = Log()
    forged.open()
    forged.say(record(99), *(record(i) for i in range(1, 4)))
    forged.seal(STRANGER)
    log.files[0] = forged.files[0]
    problems = " ".join(fault.problem for fault in checked(log).faults)
    assert "signed by a key that is not trusted" in problems
    assert "does not follow" in problems


def test_a_seal_and_a_head_speak_for_what_is_there_only() -> None:
    log = written(1)
    other = written(1)
    other.files[0][2] = other.files[0][1]
    log.seal(SIGNER)
    stolen = audit_chain.read(log.files[0][-1].rstrip())
    assert stolen is not None
    assert isinstance(stolen.said, Sealed)
    forged = Log()
    forged.open()
    forged.say(record(99), stolen.said)
    head = Head(2, "0" * 64, SIGNER.public, "00" * 64)
    problems = [fault.problem for fault in checked(forged, head).faults]
    assert "the seal's signature is not of what is here" in problems
    assert "line 2 is another than the one that was written" in problems


def test_the_end_cannot_be_cut_off() -> None:
    log = written()
    head = log.head
    del log.files[-1][-2:]
    (fault,) = checked(log, head).faults
    assert str(fault) == "head: lines 16 to 17 are missing at the end"
    (fault,) = verify(segments(written().files), None, TRUST).faults
    assert "whether the end was cut off is not known" in fault.problem


def test_old_files_that_make_room_are_no_fault() -> None:
    log = Log()
    for number in range(4):
        log.open(oldest=1 if number < 2 else 4)
        log.say(record(number))
        log.seal()
    del log.files[0]
    assert [str(fault) for fault in checked(log).faults] == []
    del log.files[0]
    (fault,) = checked(log).faults
    assert "lines 4 to 6 are missing at its beginning" in fault.problem


def test_what_could_not_be_written_is_told_apart_from_what_was_taken_out() -> None:
    log = written(1)
    before = log.at
    log.say(record(50), record(51))
    log.say(Missed(ts=TS, pod="a", after=before.seq, after_hash=before.hash, lines=2))
    del log.files[0][-3:-1]
    report = checked(log)
    assert ([str(fault) for fault in report.faults], report.missed) == ([], 2)
    del log.files[0][-2]
    assert checked(log).faults


def test_a_file_without_a_seal_is_that_of_a_process_that_was_killed() -> None:
    log = written(1)
    log.open()
    log.say(Summary(ts=TS, pod="a", suppressed=3, ns="n"), Summary(ts=TS, pod="a", dropped=2))
    report = checked(log)
    assert ([str(fault) for fault in report.faults], report.suppressed, report.dropped) == (
        [],
        3,
        2,
    )


def test_nothing_follows_a_seal() -> None:
    log = written(1)
    log.seal()
    log.say(record(1))
    assert [fault.problem for fault in checked(log).faults] == ["there is a line after the seal"]


@given(st.lists(st.binary(max_size=200), max_size=4))
def test_no_bytes_make_it_raise(texts: list[bytes]) -> None:
    verify([Segment(str(i), text) for i, text in enumerate(texts)], None, TRUST)
