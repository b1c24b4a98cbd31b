"""The Containerfile is really built, by buildah, on a base that is made here: no registry is asked.

What this cannot show is that the base which the Containerfile names can be had.
"""

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pip
import pytest

from api.jsons import Json, JsonObject
from penstock.lab.commands import run
from penstock.lab.folders import Cache
from penstock.lab.images import layout, oci, penstock
from penstock.lab.images.oci import Entry, Image, Link
from penstock.lab.images.penstock import Made
from penstock.lab.progress import Silence
from tests.repo import checkout
from tests.support.ociarchive import Archive

pytestmark = pytest.mark.image

TRUST = {"default": [{"type": "insecureAcceptAnything"}]}
# Where builds find what is needed to fetch packages, if this machine has it.
LENT = ("/etc/ssl/certs", "/etc/pip.conf")
SITE = layout.site_packages(penstock.PYTHON)


@dataclass(frozen=True)
class Buildah:
    """buildah with a store of its own."""

    folder: Path
    base: Path

    def run(self, *arguments: str) -> str:
        places = ("--root", str(self.folder / "root"), "--runroot", str(self.folder / "run"))
        done = subprocess.run(
            ["buildah", *places, *arguments],
            cwd=checkout.ROOT, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.strip()

    def build(self, target: str) -> str:
        """Build all of it anew and return the image's id, which is a digest of what it is."""
        policy, written = self.folder / "policy.json", self.folder / "id"
        policy.write_text(json.dumps(TRUST))
        lent = [
            word for path in LENT if Path(path).exists() for word in ("-v", f"{path}:{path}:ro")
        ]
        self.run(
            *("build", "--isolation", "chroot", "--signature-policy", str(policy), *lent),
            *("--timestamp", "0", "--layers=false", "--no-cache", "--iidfile", str(written)),
            *("--build-arg", f"PYTHON=oci-archive:{self.base}", "--target", target, "."),
        )
        return written.read_text()

    def inspect(self, image: str) -> JsonObject:
        found: JsonObject = json.loads(self.run("inspect", "--type", "image", image))["OCIv1"]
        return found


@pytest.fixture(scope="module")
def made() -> Made:
    """The image as labs make it."""
    if shutil.which("buildah") is None or os.geteuid() != 0:
        pytest.skip("the Containerfile is built by buildah, as root: apt-get install buildah")
    cache = Cache.of(os.environ)
    return asyncio.run(penstock.make(penstock.checkout(), cache, run, Silence()))


@pytest.fixture(scope="module")
def buildah(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """buildah, and a base: this machine's Python with the libraries it needs, and pip."""
    folder = tmp_path_factory.mktemp("buildah")
    own = (asyncio.run(penstock.shared_layers(made.foundation, run)))[0]
    at = f"usr/local/lib/python{penstock.PYTHON}/site-packages/pip"
    brought = penstock.tree(Path(pip.__file__).parent, at)
    layer: dict[str, Entry] = {
        **own,
        **{name: entry for name, entry in brought.items() if "__pycache__" not in name},
        "usr/local/bin/python": Link(f"python{penstock.PYTHON}"),
    }
    environ = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    oci.write([Image("localhost/base:1", [layer], environ=environ)], folder / "base.tar")
    tool = Buildah(folder, folder / "base.tar")
    yield tool
    tool.run("rm", "--all")
    tool.run("rmi", "--all", "--force")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def built(buildah: Buildah) -> str:
    return buildah.build("penstock")


@dataclass(frozen=True)
class Described:
    """All that an image's name is a digest of, but for what is told of single steps."""

    entrypoint: Json
    rest: JsonObject


def described(found: JsonObject) -> Described:
    config = found["config"]
    assert isinstance(config, dict)
    own = {"Entrypoint", "Cmd"}
    kept: JsonObject = {name: value for name, value in config.items() if name not in own}
    rest: JsonObject = {name: value for name, value in found.items() if name != "history"}
    return Described(config["Entrypoint"], {**rest, "config": kept})


def contents(root: Path) -> dict[str, str]:
    """The SHA-256 of each file below a directory."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def test_it_is_run_as_the_labs_image_is(buildah: Buildah, built: str, made: Made) -> None:
    ours = Archive(made.archive).config["config"]
    theirs = buildah.inspect(built)["config"]
    assert isinstance(theirs, dict)
    for key in ("User", "Entrypoint", "Cmd", "Labels", "WorkingDir"):
        said = theirs[key]
        if isinstance(said, dict):  # buildah adds a label of its own
            said = {name: value for name, value in said.items() if "buildah" not in name}
        assert said == ours[key], key
    assert set(theirs["Env"]) == set(ours["Env"])  # type: ignore[arg-type]


def test_it_has_the_same_packages_byte_by_byte_and_they_run(
    buildah: Buildah, built: str, made: Made
) -> None:
    container = buildah.run("from", "--pull-never", built)
    root = Path(buildah.run("mount", container))
    theirs, ours = (
        contents(root / SITE.lstrip("/")),
        Archive(made.archive).digests(SITE.lstrip("/")),
    )
    # A virtual environment has commands, which pip lists; labs leave them out.
    differ = {name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name)}
    assert {name for name in differ if not name.endswith(".dist-info/RECORD")} == set()
    assert "webhook/__main__.py" in theirs
    said = buildah.run(
        *("run", "--isolation", "chroot", container, "--"),
        *(f"{layout.HOME}/bin/python", "-m", "controller.waiter", "--help"),
    )
    assert "--podcliques" in said
    buildah.run(
        *("run", "--isolation", "chroot", container, "--"),
        *(f"{layout.HOME}/bin/python", "-c", "from kube import tracing; tracing.load()"),
    )


def test_the_waiter_is_built_of_the_same_again_but_for_what_it_begins_with(
    buildah: Buildah, built: str
) -> None:
    # All of it is built anew, so that this tells too whether a second build is as the first.
    whole, waiter = (
        described(buildah.inspect(built)),
        described(buildah.inspect(buildah.build("waiter"))),
    )
    assert whole.entrypoint == list(layout.ENTRYPOINT)
    assert waiter.entrypoint == list(layout.WAITER)
    assert waiter.rest == whole.rest
