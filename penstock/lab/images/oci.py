"""Writing an OCI image archive: equal content gives an equal file, byte by byte."""

import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from api.jsons import Json, JsonObject

EPOCH: Final = "1970-01-01T00:00:00Z"
_INDEX: Final = "application/vnd.oci.image.index.v1+json"
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
_LAYER: Final = "application/vnd.oci.image.layer.v1.tar"


@dataclass(frozen=True)
class File:
    """A file of an image, from disk or from memory."""

    source: Path | bytes
    executable: bool = False


@dataclass(frozen=True)
class Link:
    """A symbolic link of an image."""

    target: str


@dataclass(frozen=True)
class Directory:
    """A directory of an image that must be there even if nothing is in it."""

    mode: int = 0o755


Entry = File | Link | Directory

Layer = Mapping[str, Entry]
"""What a layer adds: entries by their path in the image, without the slash in front."""


@dataclass(frozen=True)
class Image:
    """An image: its name, its layers from the bottom up, and how it is run."""

    name: str
    layers: Sequence[Layer]
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    user: str = ""
    folder: str = "/"
    environ: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    architecture: str = "amd64"


@dataclass(frozen=True)
class _Blob:
    digest: str
    size: int
    content: Path | bytes

    def described(self, kind: str) -> JsonObject:
        return {"mediaType": kind, "digest": self.digest, "size": self.size}


def write(images: Sequence[Image], destination: Path) -> list[str]:
    """Write one archive of some images, which appears whole or not at all; return their digests.

    What they have in common, they share: give equal layers as the same object.
    """
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".image-") as folder:
        made: dict[int, _Blob] = {}
        for layer in (layer for image in images for layer in image.layers):
            if id(layer) not in made:
                made[id(layer)] = _layer(layer, Path(folder) / f"layer-{len(made)}.tar")
        blobs = list(made.values())
        manifests: list[_Blob] = []
        for image in images:
            layers = [made[id(layer)] for layer in image.layers]
            config = _json(_config(image, [layer.digest for layer in layers]))
            manifests.append(_manifest(config, layers))
            blobs += [config, manifests[-1]]
        whole = Path(folder) / "images.tar"
        with tarfile.open(whole, "w", format=tarfile.USTAR_FORMAT) as archive:
            _add(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
            names = [image.name for image in images]
            _add(archive, "index.json", _index(dict(zip(names, manifests, strict=True))))
            # Two layers, or two configurations, may be equal.
            for blob in {each.digest: each for each in blobs}.values():
                _add(archive, f"blobs/{blob.digest.replace(':', '/')}", blob.content)
        whole.replace(destination)
    return [manifest.digest for manifest in manifests]


def _manifest(config: _Blob, layers: Sequence[_Blob]) -> _Blob:
    return _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": config.described(_CONFIG),
            "layers": [layer.described(_LAYER) for layer in layers],
        }
    )


def _layer(layer: Layer, path: Path) -> _Blob:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, entry in sorted(with_parents(layer).items()):
            _add_entry(archive, name, entry)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return _Blob(f"sha256:{digest}", path.stat().st_size, path)


def with_parents(layer: Layer) -> dict[str, Entry]:
    """Return a layer with every directory that its paths go through."""
    parents = {
        str(parent)
        for name in layer
        for parent in PurePosixPath(name).parents
        if str(parent) != "."
    }
    return {**dict.fromkeys(parents, Directory()), **layer}


def _add_entry(archive: tarfile.TarFile, name: str, entry: Entry) -> None:
    member = tarfile.TarInfo(name)
    match entry:
        case Directory(mode):
            member.type, member.mode = tarfile.DIRTYPE, mode
            archive.addfile(member)
        case Link(target):
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
        case File(source, executable):
            _add(archive, name, source, 0o755 if executable else 0o644)


def _add(archive: tarfile.TarFile, name: str, content: Path | bytes, mode: int = 0o644) -> None:
    # Nothing of who made a file and when gets in: owner, group and time are left at naught.
    member = tarfile.TarInfo(name)
    member.mode = mode
    if isinstance(content, bytes):
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
        return
    with content.open("rb") as file:
        member.size = os.fstat(file.fileno()).st_size
        archive.addfile(member, file)


def _config(image: Image, layers: Sequence[str]) -> JsonObject:
    settings: JsonObject = {
        "Env": [f"{key}={value}" for key, value in image.environ.items()],
        "WorkingDir": image.folder,
        "Labels": dict(image.labels),
    }
    if image.entrypoint:
        settings["Entrypoint"] = list(image.entrypoint)
    if image.command:
        settings["Cmd"] = list(image.command)
    if image.user:
        settings["User"] = image.user
    history: list[Json] = [{"created": EPOCH, "created_by": "penstock lab"} for _ in layers]
    return {
        "created": EPOCH,
        "architecture": image.architecture,
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": list(layers)},
        "history": history,
    }


def _index(manifests: Mapping[str, _Blob]) -> bytes:
    described: list[Json] = []
    for name, manifest in manifests.items():
        annotations: JsonObject = {
            "io.containerd.image.name": name,
            "org.opencontainers.image.ref.name": name.rpartition(":")[2],
        }
        described.append({**manifest.described(_MANIFEST), "annotations": annotations})
    index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": described}
    return json.dumps(index, sort_keys=True).encode()


def _json(document: JsonObject) -> _Blob:
    content = json.dumps(document, sort_keys=True).encode()
    return _Blob(f"sha256:{hashlib.sha256(content).hexdigest()}", len(content), content)
