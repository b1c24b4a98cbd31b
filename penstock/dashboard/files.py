"""The page's files, as they are served. They lie beside this module and are read once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "page"
_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class File:
    """What is served at a path."""

    kind: str
    body: bytes


def read() -> Mapping[str, File]:
    """Read all of them, by path."""
    found = {
        f"/{path.name}": File(_KINDS[path.suffix], path.read_bytes())
        for path in sorted(_FOLDER.iterdir())
        if path.suffix in _KINDS
    }
    return {"/": found["/index.html"], **found}
