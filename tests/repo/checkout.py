"""What tests of the repository itself look at: its root, its packages, its files."""

import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

PACKAGES: Final = (
    "api",
    "policies",
    "scheduler",
    "certs",
    "webhook",
    "kube",
    "controller",
    "penstock",
)


def files() -> list[Path]:
    """List what is in the repository, or would be after `git add`; deleted files are left out."""
    # A clone may belong to somebody else than who runs the tests, as on runners.
    trusted = ("-c", f"safe.directory={ROOT}")
    command = ["git", *trusted, "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    paths = {ROOT / name for name in done.stdout.split("\0") if name}
    return sorted(path for path in paths if path.is_file())


def modules() -> list[Path]:
    """List every Python module, tests included."""
    return [path for path in files() if path.suffix == ".py"]


def documents() -> list[Path]:
    """List every page of documentation."""
    return [path for path in files() if path.suffix == ".md"]


def shown(path: Path) -> str:
    """Name a file as people do, from the root of the repository."""
    return str(path.relative_to(ROOT))
