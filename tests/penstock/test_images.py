"""Images that the lab writes itself."""

import json
import os
from dataclasses import replace
from pathlib import Path

from penstock.lab.images import closure, oci, penstock
from penstock.lab.images.busybox import busybox
from penstock.lab.images.oci import Directory, File, Image, Link
from tests.support.ociarchive import Archive

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


def test_what_is_written_can_be_read_from_the_index_down(tmp_path: Path) -> None:
    (digest,) = oci.write([IMAGE], tmp_path / "image.tar")
    read = Archive(tmp_path / "image.tar")
    assert read.entry["digest"] == digest
    assert read.entry["annotations"]["io.containerd.image.name"] == "localhost/some/thing:1"
    assert read.config["config"]["Entrypoint"] == ["/bin/tool"]
    assert read.config["config"]["User"] == "65532:65532"
    assert read.config["rootfs"]["diff_ids"] == [each["digest"] for each in read.manifest["layers"]]


def test_every_directory_on_the_way_is_in_the_layer_before_what_is_in_it(tmp_path: Path) -> None:
    oci.write([IMAGE], tmp_path / "image.tar")
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
    oci.write([image], tmp_path / "one.tar")
    source.chmod(0o600)
    os.utime(source, (1, 1))
    oci.write([again], tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    source.write_bytes(b"changed")
    oci.write([again], tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() != (tmp_path / "two.tar").read_bytes()


def test_images_with_the_same_layers_share_them_and_differ_in_how_they_are_run(
    tmp_path: Path,
) -> None:
    other = replace(IMAGE, name="localhost/some/other:1", entrypoint=["/bin/other"])
    first, second = oci.write([IMAGE, other], tmp_path / "images.tar")
    read = Archive(tmp_path / "images.tar")
    assert first != second
    assert [each["digest"] for each in (read.entry, *read.others)] == [first, second]
    manifest = json.loads(read.blob(read.others[0]))
    assert manifest["layers"] == read.manifest["layers"]
    assert json.loads(read.blob(manifest["config"]))["config"]["Entrypoint"] == ["/bin/other"]


def test_nothing_is_left_beside_the_archive(tmp_path: Path) -> None:
    oci.write([IMAGE], tmp_path / "image.tar")
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


LDD = """\
/opt/python/bin/python3.11:
\tlinux-vdso.so.1 (0x00007ffd8a5f2000)
\tlibpython3.11.so.1.0 => /opt/python/lib/libpython3.11.so.1.0 (0x00007f2b3a000000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f2b39e1f000)
\tlibgone.so.1 => not found
\t/lib64/ld-linux-x86-64.so.2 (0x00007f2b3a6d5000)
/opt/thing:
\tstatically linked
"""


def test_what_a_program_needs_of_the_system_is_read_from_ldd() -> None:
    assert closure.needed(LDD) == {
        "/opt/python/lib/libpython3.11.so.1.0",
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib64/ld-linux-x86-64.so.2",
    }


def test_only_programs_and_libraries_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(b"\x7fELF...")
    (tmp_path / "script").write_bytes(b"#!/bin/sh\n")
    assert closure.is_program(tmp_path / "program")
    assert not closure.is_program(tmp_path / "script")


def test_a_tree_keeps_links_and_who_may_run_what(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").write_bytes(b"x")
    (tmp_path / "bin" / "tool").chmod(0o755)
    (tmp_path / "bin" / "alias").symlink_to("tool")
    assert penstock.tree(tmp_path, "opt") == {
        "opt/bin": Directory(),
        "opt/bin/tool": File(tmp_path / "bin" / "tool", executable=True),
        "opt/bin/alias": Link("tool"),
    }


def test_the_environment_is_one_of_the_interpreter_in_the_image() -> None:
    made = penstock.environment("3.11.7")
    told = made["opt/penstock/pyvenv.cfg"]
    assert isinstance(told, File)
    assert b"home = /usr/local/bin\n" in bytes(told.source)
    assert made["opt/penstock/bin/python"] == Link(f"/usr/local/bin/python{penstock.PYTHON}")


def test_nothing_of_the_commands_of_this_machine_stays(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "flask").write_text("#!/somewhere/python\n")
    record = tmp_path / "flask-3.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("../../bin/flask,sha256=abc,223\nflask/app.py,sha256=def,7\n")
    penstock.without_commands(tmp_path)
    assert not (tmp_path / "bin").exists()
    assert record.read_text() == "flask/app.py,sha256=def,7\n"


def test_only_the_newest_archives_are_kept(tmp_path: Path) -> None:
    for age in range(penstock.KEPT + 2):
        archive = tmp_path / f"penstock-{age}.tar"
        archive.touch()
        os.utime(archive, (1000 - age, 1000 - age))
    (tmp_path / "other.tar").touch()
    penstock.forget_old(tmp_path)
    kept = {f"penstock-{age}.tar" for age in range(penstock.KEPT)}
    assert {each.name for each in tmp_path.iterdir()} == {*kept, "other.tar"}
