"""Penstock as it was before: what people upgrade from, and roll back to."""

import subprocess
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
# One that runs its processes by the chart already. Move it on with each release.
PREVIOUS: Final = "96dd40f5ef1081f7fe2c328ff692f0cf97147037"
# As its Containerfile says, what its image is made with; it had no other yet.
LOCK: Final = "requirements.txt"


def unpack(folder: Path) -> Path:
    """Lay the whole of it out in a folder."""
    git = ("git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT))
    done = subprocess.run([*git, "archive", PREVIOUS], capture_output=True, check=False)
    if done.returncode:
        raise FileNotFoundError(
            f"commit {PREVIOUS} is not in this clone: git fetch --unshallow brings it "
            f"({done.stderr.decode().strip()})"
        )
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder
