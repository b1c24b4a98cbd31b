import threading
from pathlib import Path

import pytest

from penstock.lab import projected


def test_files_are_readable_by_their_names_and_only_by_their_owner(tmp_path: Path) -> None:
    assert projected.project(tmp_path, {"tls.crt": b"cert", "tls.key": b"key"})
    assert (tmp_path / "tls.crt").read_bytes() == b"cert"
    assert (tmp_path / "tls.key").read_bytes() == b"key"
    assert (tmp_path / "tls.key").stat().st_mode & 0o777 == 0o600
    assert projected.current(tmp_path) == {"tls.crt": b"cert", "tls.key": b"key"}


def test_nothing_moves_when_nothing_changed(tmp_path: Path) -> None:
    projected.project(tmp_path, {"token": b"one"})
    before = (tmp_path / "..data").readlink()
    assert not projected.project(tmp_path, {"token": b"one"})
    assert (tmp_path / "..data").readlink() == before


def test_a_name_that_is_no_longer_projected_goes_away(tmp_path: Path) -> None:
    projected.project(tmp_path, {"a": b"1", "b": b"1"})
    projected.project(tmp_path, {"a": b"2"})
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("..")) == [
        "a"
    ]


def test_an_empty_directory_projects_nothing(tmp_path: Path) -> None:
    assert projected.current(tmp_path) == {}


def test_it_goes_on_after_a_writer_that_died_before_moving_the_link(tmp_path: Path) -> None:
    projected.project(tmp_path, {"token": b"one"})
    (tmp_path / "..00000002").mkdir()
    (tmp_path / "..data.new").symlink_to("..00000002")
    assert (tmp_path / "token").read_bytes() == b"one"
    projected.project(tmp_path, {"token": b"two"})
    assert (tmp_path / "token").read_bytes() == b"two"


@pytest.mark.no_cover
def test_a_reader_never_sees_a_mixed_pair_in_a_thousand_swaps(tmp_path: Path) -> None:
    projected.project(tmp_path, {"tls.crt": b"0", "tls.key": b"0"})
    done = threading.Event()
    seen: set[bytes] = set()
    mixed: list[dict[str, bytes]] = []

    def read() -> None:
        while not done.is_set():
            files = projected.current(tmp_path)
            seen.add(files["tls.crt"])
            if files["tls.crt"] != files["tls.key"]:
                mixed.append(files)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(1, 1001):
        content = str(number).encode()
        projected.project(tmp_path, {"tls.crt": content, "tls.key": content})
    done.set()
    reader.join()
    assert mixed == []
    assert len(seen) > 10  # else it proved nothing
    assert len(list(tmp_path.glob("..0*"))) <= 2
