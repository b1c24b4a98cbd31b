"""How Penstock's image is laid out and run, however it is built: as the Containerfile says."""

from collections.abc import Mapping
from typing import Final

from penstock.lab.fingerprint import PACKAGES

USER: Final = "65532:65532"
"""Nobody in particular; a number, so that a kubelet can tell that it is not root."""

HOME: Final = "/opt/penstock"
"""The virtual environment with our packages and what they need, and nothing else."""

INTERPRETER: Final = "/usr/local"
"""The prefix of the Python that the environment is made from."""

ENTRYPOINT: Final = (f"{HOME}/bin/python", "-m")
COMMAND: Final = ("penstock", "--help")
WAITER: Final = (*ENTRYPOINT, "controller.waiter")
"""Of the second image: its user gives arguments only."""

ENVIRON: Final[Mapping[str, str]] = {
    "PATH": f"{HOME}/bin:/usr/local/bin:/usr/bin:/bin",
    # Nothing can be written, so what is compiled is in the image.
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
}

LABELS: Final[Mapping[str, str]] = {
    "org.opencontainers.image.title": "penstock",
    "org.opencontainers.image.licenses": "Apache-2.0",
}

COPIED: Final = PACKAGES

LOCK: Final = "requirements-traces.txt"
"""What is pinned for it: all that a value of the chart may ask for."""


def site_packages(python: str) -> str:
    """Return where packages are, for a Python called `3.11`."""
    return f"{HOME}/lib/python{python}/site-packages"
