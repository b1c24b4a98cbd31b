"""Where labs keep their things: a cache that may be deleted, and the labs themselves."""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cache:
    """Binaries and what it takes to build them; safe to delete while no lab runs."""

    root: Path

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Cache":
        """Follow the XDG convention: $XDG_CACHE_HOME, else ~/.cache."""
        return cls(_xdg(environ, "XDG_CACHE_HOME", ".cache") / "penstock")

    @property
    def lock(self) -> Path:
        """The file whose lock allows to add to the cache."""
        return self.root / "lock"

    @property
    def durations(self) -> Path:
        """How long each binary took to make the last time."""
        return self.root / "durations.json"

    def binary(self, release: str, name: str) -> Path:
        """Where a finished binary lies; what lies there is always whole."""
        return self.root / "bin" / release / name

    def scratch(self, release: str) -> Path:
        """The Go module in which a release is built."""
        return self.root / "build" / release


@dataclass(frozen=True)
class Labs:
    """Every lab of this user, one directory each."""

    root: Path

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Labs":
        """Follow the XDG convention: $XDG_STATE_HOME, else ~/.local/state."""
        return cls(_xdg(environ, "XDG_STATE_HOME", ".local/state") / "penstock" / "labs")

    @property
    def ports_lock(self) -> Path:
        """The file whose lock allows to choose ports for a lab."""
        return self.root / ".ports.lock"

    def lock(self, name: str) -> Path:
        """The file whose lock allows to start or stop one lab."""
        return self.root / f".{name}.lock"

    def folder(self, name: str) -> "Folder":
        """Return the places of one lab, which need not exist."""
        return Folder(name, self.root / name)

    def names(self) -> list[str]:
        """Return the names of all labs, whole or not, sorted."""
        if not self.root.is_dir():
            return []
        return sorted(
            path.name
            for path in self.root.iterdir()
            if path.is_dir() and not path.name.startswith(".")
        )


@dataclass(frozen=True)
class Folder:
    """The places inside one lab's directory."""

    name: str
    root: Path

    @property
    def state(self) -> Path:
        """What the lab is: the file that `cluster` reads and writes."""
        return self.root / "lab.json"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the person who runs the lab; it holds everything it needs."""
        return self.root / "kubeconfig"

    @property
    def kwok_home(self) -> Path:
        """The directory kwokctl takes for its own; one a lab, so that labs cannot meet there."""
        return self.root / "kwok"

    @property
    def kwok_config(self) -> Path:
        """What kwokctl is told."""
        return self.root / "kwok.yaml"

    @property
    def manager_kubeconfig(self) -> Path:
        """By which kube-controller-manager speaks to the API server."""
        return self.root / "kube-controller-manager.kubeconfig"

    @property
    def audit_policy(self) -> Path:
        """What the API server is told to record."""
        return self.root / "audit-policy.yaml"

    @property
    def cluster(self) -> Path:
        """Where kwokctl keeps this cluster."""
        return self.kwok_home / "clusters" / self.name

    @property
    def audit_log(self) -> Path:
        """The API server's audit log, if the lab has one."""
        return self.cluster / "logs" / "audit.log"

    def logs(self) -> dict[str, Path]:
        """Return the logs there are, by the name of who writes them."""
        places = (
            self.cluster / "logs",
            self.root / "penstock" / "logs",
            self.root / "node" / "logs",
        )
        found = [path for place in places for path in place.glob("*.log")]
        return {path.stem: path for path in sorted(found)}


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader, even after a crash, finds the old text or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_durations(path: Path) -> dict[str, float]:
    """Return what is on record, or nothing: an estimate is not worth an error."""
    try:
        known: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {
        str(name): float(seconds)
        for name, seconds in known.items()
        if isinstance(seconds, int | float)
    }


def _xdg(environ: Mapping[str, str], variable: str, otherwise: str) -> Path:
    # The convention says that a relative path is to be ignored.
    given = Path(environ.get(variable, ""))
    return given if given.is_absolute() else Path(environ.get("HOME", "/")) / otherwise
