"""How the dashboard is to be served, and what it is to show. Light, for `--help`."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Choices:
    """What people chose by flags."""

    port: int = 0
    bind: str = "127.0.0.1"
    hosts: tuple[str, ...] = ()
    opened: bool = False
    topology: str = ""
    resource: str = ""
    audit_dir: Path | None = None
