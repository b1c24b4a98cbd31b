"""A small image of one static program with many names: for pods that only have to be there."""

from collections.abc import Iterable
from pathlib import Path

from penstock.lab.images.oci import Directory, Entry, File, Image, Link
from penstock.lab.tools import machine

ACCOUNTS = b"root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"


def busybox(name: str, program: Path, applets: Iterable[str]) -> Image:
    """Return the image. Left to itself it waits for ever, as the first container of a pod does."""
    names: dict[str, Entry] = {
        f"bin/{applet}": Link("busybox") for applet in applets if applet != "busybox"
    }
    layer: dict[str, Entry] = {
        **names,
        "bin/busybox": File(program, executable=True),
        "etc/passwd": File(ACCOUNTS),
        "tmp": Directory(0o1777),
    }
    return Image(
        name=name,
        layers=[layer],
        entrypoint=["/bin/busybox"],
        command=["tail", "-f", "/dev/null"],
        user="65534:65534",
        environ={"PATH": "/bin"},
        architecture=machine(),
    )
