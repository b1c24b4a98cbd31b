"""The few calls to the kernel that Python 3.11 has no functions for."""

import ctypes
import os
import signal
from typing import Final

NEW_MOUNTS: Final = 0x0002_0000
NEW_PROCESSES: Final = 0x2000_0000
NEW_NETWORK: Final = 0x4000_0000

_PR_SET_PDEATHSIG: Final = 1


def unshare(flags: int) -> None:
    """Leave namespaces for new ones; that of processes counts for children only."""
    _checked("unshare", ctypes.CDLL(None, use_errno=True).unshare(flags))


def die_with_parent() -> None:
    """Have this process killed when the one that made it ends, however that ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    _checked("prctl", libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0))


def _checked(call: str, answer: int) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
