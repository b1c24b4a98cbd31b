"""The processes of a lab: known by pid and start, or by its directory on their command line."""

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

from penstock.lab import processes
from penstock.lab.folders import Folder
from penstock.lab.processes import Record
from penstock.lab.spec import Setting

GRACE_SECONDS: Final = 5.0

# Programs that are ours if the lab's directory is on their command line; an editor is not.
_OURS: Final = (
    *("python", "penstock", "gunicorn", "kube-", "etcd", "kwok", "helm"),
    *("kubelet", "containerd"),
)


def started(folder: Folder) -> dict[str, Record]:
    """Return the daemons kwokctl started that run now, by component."""
    found: dict[str, Record] = {}
    for path in folder.cluster.glob("pids/*.pid"):
        process = _of_pid_file(path, folder)
        if process is not None:
            found[path.stem] = Record(process.pid, process.create_time())
    return found


def ended(folder: Folder) -> set[str]:
    """Return the components that kwokctl started and that do not run: they may never be seen."""
    paths = folder.cluster.glob("pids/*.pid")
    return {path.stem for path in paths if _of_pid_file(path, folder) is None}


def forget_strangers(folder: Folder) -> None:
    """Remove pid files that name no daemon of this lab; kwokctl would signal whoever it is now."""
    for path in folder.cluster.glob("pids/*.pid"):
        if _of_pid_file(path, folder) is None:
            path.unlink(missing_ok=True)


def dead(known: Mapping[str, Record]) -> list[str]:
    """Return which of the recorded daemons do not run any more, sorted."""
    return sorted(name for name, record in known.items() if not processes.running(record))


def command_line(record: Record) -> list[str]:
    """Return a process's arguments, or none if it is gone."""
    try:
        return psutil.Process(record.pid).cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return []


def not_applied(settings: Iterable[Setting], known: Mapping[str, Record]) -> list[Setting]:
    """Return the settings that did not arrive on their daemon's command line, or not alone."""
    missing = []
    for setting in settings:
        record = known.get(setting.component)
        arguments = command_line(record) if record is not None else []
        same = [each for each in arguments if each.startswith(f"--{setting.flag}=")]
        if same != [setting.argument]:
            missing.append(setting)
    return missing


def stop_penstock(folder: Folder) -> None:
    """End what is installed in a lab; its keeper first, which would start the others anew."""
    keeper = processes.read_record(folder.root / "penstock" / "processes" / "keeper.json")
    if keeper is not None:
        processes.stop([keeper], GRACE_SECONDS)
    paths = folder.root.glob("penstock/processes/*.json")
    recorded = [record for path in paths if (record := processes.read_record(path)) is not None]
    processes.stop(recorded, GRACE_SECONDS)


def stop(folder: Folder, known: Mapping[str, Record]) -> list[int]:
    """End every process of a lab; return the pids of those that live on all the same."""
    stop_penstock(folder)
    # They get no time: what they know is on disk, or about to be removed.
    for record in known.values():
        _kill(record)
    processes.stop(list(known.values()), GRACE_SECONDS)
    remaining = [Record(each.pid, each.create_time()) for each in belonging(folder.root)]
    processes.stop(remaining, GRACE_SECONDS)
    return [each.pid for each in belonging(folder.root)]


def belonging(directory: Path) -> list[psutil.Process]:
    """Return the processes that belong to a lab's directory, except ourselves and our parents."""
    spared = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        if process.pid in spared:
            continue
        try:
            if process.status() != psutil.STATUS_ZOMBIE and is_ours(process.cmdline(), directory):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def is_ours(arguments: Sequence[str], directory: Path) -> bool:
    """Tell from a command line whether a process belongs to the lab in a directory."""
    if not arguments:
        return False
    inside = f"{directory}{os.sep}"
    if arguments[0].startswith(inside):
        return True
    named = any(inside in f"{argument}{os.sep}" for argument in arguments[1:])
    return named and Path(arguments[0]).name.startswith(_OURS)


def _kill(record: Record) -> None:
    if processes.running(record):
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(record.pid).kill()


def _of_pid_file(path: Path, folder: Folder) -> psutil.Process | None:
    try:
        process = psutil.Process(int(path.read_text(encoding="utf-8")))
        alive = process.status() != psutil.STATUS_ZOMBIE
        return process if alive and is_ours(process.cmdline(), folder.root) else None
    except (OSError, ValueError, psutil.NoSuchProcess, psutil.AccessDenied):
        return None
