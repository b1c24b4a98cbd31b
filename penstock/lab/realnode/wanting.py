"""Why no real node can be had on a machine, if so."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from penstock.lab.errors import LabError
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

SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find(program: str) -> str | None:
    """Return where the system has a program, also where a person's PATH leaves it out."""
    return shutil.which(program, path=SYSTEM_PATH)


def obstacle(
    platform: str = sys.platform,
    user: int = os.geteuid(),
    search: Callable[[str], str | None] = find,
) -> str | None:
    """Return why there can be no real node here, or None if there can."""
    if platform != "linux":
        return "a real node needs Linux"
    if user != 0:
        return "a real node needs root, for namespaces and control groups"
    missing = sorted({package for program, package in PACKAGES.items() if search(program) is None})
    if missing:
        return f"a real node needs more programs: apt-get install {' '.join(missing)}"
    return None


def check_place(lab: Path) -> None:
    """Raise LabError where the node could not see the lab's directory."""
    for hidden in HIDDEN:
        if lab.is_relative_to(hidden):
            raise LabError(
                f"{lab} is below {hidden}, of which a real node has its own: "
                "set XDG_STATE_HOME to another place"
            )


if __name__ == "__main__":
    sys.exit(obstacle())
