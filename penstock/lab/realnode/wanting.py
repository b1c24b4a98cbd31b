"""Why no real node can be had on a machine, if so."""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.lab.errors import LabError
from penstock.lab.realnode import cgroups
from penstock.lab.realnode.places import HIDDEN

PACKAGES: Final = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "busybox": "busybox-static",
    "ip": "iproute2",
    "nsenter": "util-linux",
}
"""The programs a real node takes from the system, and Debian's packages of them."""

NEEDED: Final = 1 << 21 | 1 << 12
"""CAP_SYS_ADMIN and CAP_NET_ADMIN."""

SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find(program: str) -> str | None:
    """Return where the system has a program, also where a person's PATH leaves it out."""
    return shutil.which(program, path=SYSTEM_PATH)


@dataclass(frozen=True)
class Machine:
    """What a machine has of what a real node needs."""

    platform: str
    user: int
    capabilities: int
    """Of this process, as bits; that it is root says little inside a container."""
    groups_writable: bool
    search: Callable[[str], str | None]

    @property
    def missing(self) -> list[str]:
        """Debian's packages that would have to be installed."""
        return sorted(
            {package for program, package in PACKAGES.items() if self.search(program) is None}
        )


def this_machine() -> Machine:
    """Return the machine we are on."""
    groups = cgroups.hierarchies()
    return Machine(
        platform=sys.platform,
        user=os.geteuid(),
        capabilities=_capabilities(Path("/proc/self/status")),
        groups_writable=bool(groups) and all(os.access(each, os.W_OK) for each in groups),
        search=find,
    )


def obstacle(machine: Machine) -> str | None:
    """Return why there can be no real node there, or None if there can."""
    if machine.platform != "linux":
        return "a real node needs Linux"
    if machine.user != 0:
        return "a real node needs root, for namespaces and control groups"
    if machine.capabilities & NEEDED != NEEDED:
        return "a real node needs root that may administer system and network: here it may not"
    if not machine.groups_writable:
        return "a real node needs control groups that can be written, below /sys/fs/cgroup"
    if machine.missing:
        packages = " ".join(machine.missing)
        return f"a real node needs more programs: apt-get install {packages}"
    return None


def _capabilities(status: Path) -> int:
    try:
        lines = status.read_text(encoding="ascii", errors="replace").splitlines()
    except FileNotFoundError:
        return 0
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)


def check_place(lab: Path) -> None:
    """Raise LabError where the node could not see the lab's directory."""
    for hidden in HIDDEN:
        if lab.is_relative_to(hidden):
            raise LabError(
                f"{lab} is below {hidden}, of which a real node has its own: "
                "set XDG_STATE_HOME to another place"
            )


def main(arguments: Sequence[str]) -> int | str | None:
    """Tell why no real node can be had here, or with --packages what would have to be installed."""
    if list(arguments) == ["--packages"]:
        sys.stdout.write(f"{' '.join(this_machine().missing)}\n")
        return 0
    return obstacle(this_machine())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
