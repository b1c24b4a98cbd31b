"""An OCI archive as a container runtime reads it."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

from api.jsons import JsonObject


class Archive:
    """An archive as a container runtime reads it: from its index down, checking every digest."""

    def __init__(self, path: Path) -> None:
        with tarfile.open(path) as archive:
            self.files = {
                each.name: archive.extractfile(each).read()  # type: ignore[union-attr]
                for each in archive
            }
        index = json.loads(self.files["index.json"])
        self.entry, *self.others = index["manifests"]
        self.manifest = json.loads(self.blob(self.entry))
        self.config = json.loads(self.blob(self.manifest["config"]))

    def blob(self, described: JsonObject) -> bytes:
        kind, _, digest = str(described["digest"]).partition(":")
        content = self.files[f"blobs/{kind}/{digest}"]
        assert hashlib.sha256(content).hexdigest() == digest
        assert len(content) == described["size"]
        return content

    def layers(self) -> list[dict[str, tarfile.TarInfo]]:
        found = []
        for described in self.manifest["layers"]:
            with tarfile.open(fileobj=io.BytesIO(self.blob(described))) as layer:
                found.append({each.name: each for each in layer})
        return found

    def digests(self, below: str) -> dict[str, str]:
        """The SHA-256 of each file below a directory of the image, by its path there."""
        found: dict[str, str] = {}
        for described in self.manifest["layers"]:
            with tarfile.open(fileobj=io.BytesIO(self.blob(described))) as layer:
                for each in layer:
                    if each.isfile() and each.name.startswith(f"{below}/"):
                        content = layer.extractfile(each)
                        assert content is not None
                        digest = hashlib.sha256(content.read()).hexdigest()
                        found[each.name.removeprefix(f"{below}/")] = digest
        return found
