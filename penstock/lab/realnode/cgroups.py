"""The control groups of a lab's real node: one directory a hierarchy, and all that is below it."""

import contextlib
from pathlib import Path
from typing import Final

HANDED_DOWN: Final = ("cpu", "cpuset", "memory", "hugetlb", "pids")
ROOT: Final = Path("/sys/fs/cgroup")


def name_of(lab: str) -> str:
    """Return what the groups of a lab's node are below."""
    return f"penstock-lab-{lab}"


def make(name: str, root: Path = ROOT) -> None:
    """Make the groups; the kubelet wants them there when it starts."""
    for hierarchy in hierarchies(root):
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        # In the second version a group has what is handed down to it, and the kubelet asks for all.
        for controller in HANDED_DOWN if hierarchy == root else ():
            with contextlib.suppress(OSError):
                (hierarchy / "cgroup.subtree_control").write_text(f"+{controller}\n")
        # In the first version a new set of CPUs is empty, and nothing can be put into it.
        for limit in ("cpuset.cpus", "cpuset.mems"):
            with contextlib.suppress(OSError):
                if not (group / limit).read_text().strip():
                    (group / limit).write_text((hierarchy / limit).read_text())


def remove(name: str, root: Path = ROOT) -> list[Path]:
    """Remove the groups and return those that cannot be: a process is in them still."""
    return [
        group
        for hierarchy in hierarchies(root)
        if (group := hierarchy / name).is_dir() and not _removed(group)
    ]


def hierarchies(root: Path = ROOT) -> list[Path]:
    """Return where groups are made: in one place, or in one for each controller."""
    if (root / "cgroup.controllers").is_file():
        return [root]
    # `unified` beside those of the first version has no controller; the kubelet leaves it alone.
    return sorted(each for each in root.glob("*/") if (each / "cgroup.procs").is_file())


def _removed(group: Path) -> bool:
    below = sorted(group.glob("**/"), key=lambda each: len(each.parts), reverse=True)
    for each in below:
        with contextlib.suppress(OSError):
            each.rmdir()
    return not group.is_dir()
