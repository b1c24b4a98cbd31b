from dataclasses import replace
from pathlib import Path

import pytest

from penstock.lab.cluster import describe
from penstock.lab.errors import LabError
from penstock.lab.folders import Cache, Folder, Labs, read_durations, write_whole
from penstock.lab.processes import Record
from penstock.lab.spec import LabSpec, Setting
from penstock.lab.state import LabState, as_lab, read_state, write_state

SPEC = replace(LabSpec(name="try"), settings=(Setting("etcd", "a", "1"),), scheduler_qps=5)
STATE = LabState(
    spec=SPEC, complete=False, ports={"etcdPort": 20_001}, binaries={"etcd": Path("/bin/etcd")}
)
NOBODY = Record(pid=2**22 + 1, created=1.0)


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = Folder("try", tmp_path)
    assert read_state(folder) is None
    state = STATE.with_daemons({"etcd": Record(12, 3.5)}, complete=True)
    write_state(folder, state)
    found = read_state(folder)
    assert found == state
    assert found is not None
    assert found.records == {"etcd": Record(12, 3.5)}
    lab = as_lab(folder, found)
    assert (lab.name, lab.directory, lab.spec) == ("try", tmp_path, SPEC)
    assert lab.kubeconfig == tmp_path / "kubeconfig"


@pytest.mark.parametrize("content", ["", "{}", '{"format": 9}', "\x00"])
def test_a_state_that_makes_no_sense_names_the_way_out(tmp_path: Path, content: str) -> None:
    folder = Folder("try", tmp_path)
    folder.state.write_text(content)
    with pytest.raises(LabError, match="penstock lab down --name try"):
        read_state(folder)


def test_a_lab_is_described_by_what_is_missing() -> None:
    assert describe(STATE) == "half made"
    daemons = {"kube-scheduler": NOBODY, "etcd": NOBODY}
    ended = STATE.with_daemons(daemons, complete=True)
    assert describe(ended) == "stopped (etcd, kube-scheduler ended)"
    assert describe(STATE.with_daemons({}, complete=True)) == "running"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_folders_follow_the_environment() -> None:
    environ = {"HOME": "/people/ada"}
    assert Cache.of(environ).root == Path("/people/ada/.cache/penstock")
    assert Labs.of(environ).root == Path("/people/ada/.local/state/penstock/labs")
    environ |= {"XDG_CACHE_HOME": "/c", "XDG_STATE_HOME": "relative"}
    assert Cache.of(environ).root == Path("/c/penstock")
    assert Labs.of(environ).root == Path("/people/ada/.local/state/penstock/labs")


def test_labs_are_the_directories(tmp_path: Path) -> None:
    labs = Labs(tmp_path / "labs")
    assert labs.names() == []
    for name in ("b", "a", ".ports"):
        (labs.root / name).mkdir(parents=True)
    (labs.root / ".a.lock").touch()
    assert labs.names() == ["a", "b"]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"etcd": "long"}'])
def test_durations_that_make_no_sense_are_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "durations.json"
    assert read_durations(path) == {}
    path.write_text(content)
    assert read_durations(path) == {}
