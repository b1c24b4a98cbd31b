"""Images that the lab writes itself."""

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

from api.jsons import JsonObject
from penstock.lab.images import oci
from penstock.lab.images.busybox import busybox
from penstock.lab.images.oci import Directory, File, Image, Link

IMAGE = Image(
    name="localhost/some/thing:1",
    layers=[
        {"bin/tool": File(b"#!/bin/true\n", executable=True), "bin/alias": Link("tool")},
        {"etc/deep/er/note": File(b"text"), "tmp": Directory(0o1777)},
    ],
    entrypoint=["/bin/tool"],
    command=["--all"],
    user="65532:65532",
    environ={"PATH": "/bin"},
)


class Archive:
    """An archive as a container runtime reads it: from its index down, checking every digest."""

    def __init__(self, path: Path) -> None:
        with tarfile.open(path) as archive:
            self.files = {
                each.name: archive.extractfile(each).read()  # type: ignore[union-attr]
                for each in archive
            }
        index = json.loads(self.files["index.json"])
        (self.entry,) = index["manifests"]
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


def test_what_is_written_can_be_read_from_the_index_down(tmp_path: Path) -> None:
    digest = oci.write(IMAGE, tmp_path / "image.tar")
    read = Archive(tmp_path / "image.tar")
    assert read.entry["digest"] == digest
    assert read.entry["annotations"]["io.containerd.image.name"] == "localhost/some/thing:1"
    assert read.config["config"]["Entrypoint"] == ["/bin/tool"]
    assert read.config["config"]["User"] == "65532:65532"
    assert read.config["rootfs"]["diff_ids"] == [each["digest"] for each in read.manifest["layers"]]


def test_every_directory_on_the_way_is_in_the_layer_before_what_is_in_it(tmp_path: Path) -> None:
    oci.write(IMAGE, tmp_path / "image.tar")
    first, second = Archive(tmp_path / "image.tar").layers()
    assert list(second) == ["etc", "etc/deep", "etc/deep/er", "etc/deep/er/note", "tmp"]
    assert second["tmp"].mode == 0o1777
    assert first["bin/tool"].mode == 0o755
    assert first["bin/alias"].linkname == "tool"


def test_an_image_is_the_same_whoever_writes_it_and_when(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"content")
    image = Image("localhost/same:1", [{"b": File(source), "a": File(b"x")}])
    again = Image("localhost/same:1", [{"a": File(b"x"), "b": File(source)}])
    oci.write(image, tmp_path / "one.tar")
    source.chmod(0o600)
    os.utime(source, (1, 1))
    oci.write(again, tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    source.write_bytes(b"changed")
    oci.write(again, tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() != (tmp_path / "two.tar").read_bytes()


def test_nothing_is_left_beside_the_archive(tmp_path: Path) -> None:
    oci.write(IMAGE, tmp_path / "image.tar")
    assert [each.name for each in tmp_path.iterdir()] == ["image.tar"]


def test_busybox_is_one_program_with_many_names_and_waits_if_told_nothing(tmp_path: Path) -> None:
    program = tmp_path / "busybox"
    program.write_bytes(b"ELF")
    image = busybox("localhost/busybox:1", program, ["busybox", "sh", "wget"])
    (layer,) = image.layers
    assert layer["bin/sh"] == layer["bin/wget"] == Link("busybox")
    assert layer["bin/busybox"] == File(program, executable=True)
    assert image.user.split(":")[0] != "0"
    assert list(image.command) == ["tail", "-f", "/dev/null"]
