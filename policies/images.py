"""Names of container images, each in the one full way to write it."""

from dataclasses import dataclass
from typing import Final

HUB: Final = "docker.io"
_LIBRARY: Final = "library"
_LATEST: Final = "latest"


@dataclass(frozen=True)
class Image:
    """An image's name with nothing left to be understood."""

    repository: str
    tag: str
    digest: str

    @property
    def tagged(self) -> str:
        """The name as patterns see it: with its tag where it has one, else with its digest."""
        return f"{self.repository}:{self.tag}" if self.tag else f"{self.repository}@{self.digest}"


def read(written: str) -> Image:
    """Fill in the registry, the library and the tag that container runtimes take where none is."""
    name, _, digest = written.partition("@")
    head, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    parts = f"{head}{slash}{last}".split("/")
    # A first part is a registry if it could not be part of a path: so do runtimes tell.
    is_registry = len(parts) > 1 and (set(parts[0]) & {".", ":"} or parts[0] == "localhost")
    if not is_registry:
        parts = [HUB, *([_LIBRARY] if len(parts) == 1 else []), *parts]
    return Image("/".join(parts), tag or ("" if digest else _LATEST), digest)
