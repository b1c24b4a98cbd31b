"""What is in Penstock's image, as a bill of materials: `python -m penstock.lab.images.bill`.

In CycloneDX's form, made from the lock and the base that the Containerfile names: equal inputs give
an equal text, with no time and no machine in it.
"""

import json
import re
import sys
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from api.jsons import Json, JsonObject
from penstock.lab.errors import LabError
from penstock.lab.images import layout
from penstock.lab.images import penstock as images

FORMAT: Final = "1.6"
NAMESPACE: Final = uuid.UUID("6f2b3c0e-5d0b-5f4e-9c39-2f6b1a7d8e41")

_PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+)==(\S+?)(?:\s*;.*?)?\s*\\?$")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_BASE: Final = re.compile(r"^ARG PYTHON=(?P<name>\S+):(?P<tag>\S+)@sha256:(?P<digest>\S+)$", re.M)

Licences = Callable[[str], str | None]
"""Tells a package's licence by its name, if anybody says."""


@dataclass(frozen=True)
class Package:
    """A package as the lock pins it, with the hash of each file that it may be installed from."""

    name: str
    version: str
    hashes: tuple[str, ...]

    @property
    def url(self) -> str:
        """Return it as package URLs are written."""
        return f"pkg:pypi/{self.name}@{self.version}"


def read_lock(text: str) -> list[Package]:
    """Return what a lock pins; raises LabError for a package that it pins without a hash."""
    found: list[tuple[str, str, list[str]]] = []
    for line in text.splitlines():
        if pinned := _PINNED.match(line):
            found.append((pinned[1].lower().replace("_", "-"), pinned[2], []))
        elif found and (digest := _HASH.search(line)):
            found[-1][2].append(digest[1])
    for name, version, hashes in found:
        if not hashes:
            raise LabError(f"{name} {version} has no hash in the lock")
    return [Package(name, version, tuple(hashes)) for name, version, hashes in found]


def bill(lock: str, containerfile: str, version: str, licences: Licences) -> JsonObject:
    """Return the bill of an image that is built by that Containerfile from that lock."""
    base = _BASE.search(containerfile)
    if base is None:
        raise LabError("the Containerfile names no base with a tag and a digest")
    packages = read_lock(lock)
    components: list[Json] = [_base(base), *(_component(each, licences) for each in packages)]
    ours = f"pkg:oci/penstock@{version}"
    references: list[Json] = [str(each["bom-ref"]) for each in components if isinstance(each, dict)]
    document: JsonObject = {
        "bomFormat": "CycloneDX",
        "specVersion": FORMAT,
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "bom-ref": ours,
                "name": "penstock",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": ours, "dependsOn": references}],
    }
    number = uuid.uuid5(NAMESPACE, json.dumps(document, sort_keys=True))
    return {**document, "serialNumber": f"urn:uuid:{number}"}


def _base(found: re.Match[str]) -> JsonObject:
    name = found["name"]
    return {
        "type": "container",
        "bom-ref": f"{name}@sha256:{found['digest']}",
        "name": name,
        "version": found["tag"],
        "hashes": [{"alg": "SHA-256", "content": found["digest"]}],
    }


def _component(package: Package, licences: Licences) -> JsonObject:
    component: JsonObject = {
        "type": "library",
        "bom-ref": package.url,
        "name": package.name,
        "version": package.version,
        "purl": package.url,
        # One of these files is installed: which, the machine decides.
        "hashes": [{"alg": "SHA-256", "content": each} for each in package.hashes],
    }
    if licence := licences(package.name):
        component["licenses"] = [{"license": {"name": licence}}]
    return component


def installed_licence(name: str) -> str | None:
    """Return what an installed package says of its licence, on one line, if anything."""
    try:
        found = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    classified = _licence_classes(found.get_all("Classifier") or ())
    said = _field(found, "License-Expression") or classified or _field(found, "License")
    first = said.strip().splitlines()[:1]
    return first[0].strip() if first else None


def _field(found: metadata.PackageMetadata, name: str) -> str:
    return next(iter(found.get_all(name, [])), "")


def _licence_classes(classifiers: Iterable[str]) -> str:
    words = [each.split(" :: ") for each in classifiers if each.startswith("License :: ")]
    return ", ".join(sorted(each[-1] for each in words))


def main() -> int:
    """Write the bill of this checkout's image to standard output."""
    root: Path = images.checkout()
    try:
        text = (root / layout.LOCK).read_text(encoding="utf-8")
        containerfile = (root / "Containerfile").read_text(encoding="utf-8")
        made = bill(text, containerfile, metadata.version("penstock"), installed_licence)
    except (OSError, LabError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    json.dump(made, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
