"""Files swapped all at once, in the way a kubelet's projected volumes change.

The files live in a fresh directory; `..data` is a symbolic link to it and each name is a link
through `..data`. Moving `..data` is one rename, so whoever resolves it once and then reads sees
files of one generation.
"""

import itertools
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

DATA = "..data"


def current(directory: Path) -> dict[str, bytes]:
    """Read what is projected now, all files from one generation; empty where nothing is."""
    while target := _target(directory):
        try:
            names = sorted(path.name for path in (directory / target).iterdir())
            files = {name: (directory / target / name).read_bytes() for name in names}
        except FileNotFoundError:
            continue  # it was swept away in the middle, so the link leads to a newer one
        if _target(directory) == target:
            return files  # not swept meanwhile either, so the set is whole
    return {}


def project(directory: Path, files: Mapping[str, bytes]) -> bool:
    """Make these files the projected ones and return whether anything changed.

    One writer at a time. The generation before this one stays, so that a reader in the middle of
    it ends well.
    """
    if current(directory) == dict(files):
        return False
    previous = _target(directory)
    fresh = _next_generation(directory)
    for name, content in files.items():
        _write_private(fresh / name, content)
    _replace_link(directory / DATA, fresh.name)
    for name in files:
        link = directory / name
        if not link.is_symlink():
            _replace_link(link, f"{DATA}/{name}")
    _sweep(directory, keep={fresh.name, previous}, names=set(files))
    return True


def _target(directory: Path) -> str:
    try:
        return (directory / DATA).readlink().name
    except FileNotFoundError:
        return ""


def _next_generation(directory: Path) -> Path:
    taken = [int(path.name[2:]) for path in directory.iterdir() if path.name[2:].isdigit()]
    for number in itertools.count(max(taken, default=0) + 1):
        path = directory / f"..{number:08}"
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return path
    raise AssertionError  # count() never ends


def _write_private(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _replace_link(link: Path, target: str) -> None:
    temporary = link.with_name(f"{link.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)


def _sweep(directory: Path, keep: set[str], names: set[str]) -> None:
    for path in directory.iterdir():
        if path.name[2:].isdigit() and path.name.startswith("..") and path.name not in keep:
            shutil.rmtree(path)
        elif path.is_symlink() and path.name != DATA and path.name not in names:
            path.unlink()
