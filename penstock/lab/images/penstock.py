"""Penstock's own image for real nodes of labs, made without a registry from what is on the machine.

It is laid out as the Containerfile lays it out, but for what is below: in place of a base image
there are this machine's Python and the libraries that it needs.
"""

import asyncio
import hashlib
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import penstock
from penstock.lab.commands import Command, Run
from penstock.lab.errors import LabError
from penstock.lab.folders import Cache
from penstock.lab.images import closure, layout, oci
from penstock.lab.images.oci import Directory, Entry, File, Image, Link
from penstock.lab.progress import Reporter
from penstock.lab.tools import machine

REPOSITORY: Final = "localhost/penstock-lab/penstock"
WAITER_REPOSITORY: Final = "localhost/penstock-lab/waiter"

PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
SEEDLESS: Final = {"PYTHONHASHSEED": "0"}
"""What is compiled is then the same each time."""

RECIPE: Final = b"2"
"""Changes when what is kept in caches would be made in another way."""

KEPT: Final = 5
"""How many archives stay in the cache."""

_LEFT_OUT: Final = (
    *("test", "tests", "idlelib", "turtledemo", "tkinter", "lib2to3", "ensurepip", "config-*"),
    *("site-packages", "dist-packages", "__pycache__", "_tkinter*.so", "*.a"),
)
INTERPRETER: Final = Path(sys.executable).resolve()
ACCOUNTS: Final = b"root:x:0:0:root:/:/sbin/nologin\n"


@dataclass(frozen=True)
class Made:
    """Images in an archive."""

    foundation: Path
    """Where Python's own library and what the lock pins are kept."""
    archive: Path
    image: str
    waiter: str
    digest: str


async def make(
    root: Path, cache: Cache, run: Run, reporter: Reporter, pinned_in: str = layout.LOCK
) -> Made:
    """Make the images from the packages in a checkout; raises LabError.

    Python and what the lock pins are kept in the cache; the packages are taken anew each time.
    """
    lock = root / pinned_in
    if not lock.is_file():
        raise LabError(f"{lock} is missing: an image is made from a checkout only")
    ingredients = lock.read_bytes() + sys.version.encode() + RECIPE
    pinned = hashlib.sha256(ingredients).hexdigest()[:16]
    kept = cache.root / "images" / pinned
    async with reporter.step("Making Penstock's image", None if kept.is_dir() else 40):
        kept.parent.mkdir(parents=True, exist_ok=True)
        if not kept.is_dir():
            with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".base-") as folder:
                whole = Path(folder) / "whole"
                await _foundation(whole, lock, run)
                whole.rename(kept)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".ours-") as folder:
            ours = await _ours(root, Path(folder), run)
            tag = await asyncio.to_thread(_digest, ours, pinned)
            archive = cache.root / "images" / f"penstock-{tag}.tar"
            images = compose(tag, [*await shared_layers(kept, run), ours])
            digests = await asyncio.to_thread(oci.write, images, archive)
        await asyncio.to_thread(forget_old, archive.parent)
    return Made(kept, archive, images[0].name, images[1].name, digests[0])


def compose(tag: str, layers: list[Mapping[str, Entry]]) -> list[Image]:
    """Return the image and the waiter's, which differ in what they begin with only."""
    return [
        Image(
            name=f"{repository}:{tag}",
            layers=layers,
            entrypoint=entrypoint,
            command=command,
            user=layout.USER,
            environ=layout.ENVIRON,
            labels=layout.LABELS,
            architecture=machine(),
        )
        for repository, entrypoint, command in (
            (REPOSITORY, layout.ENTRYPOINT, layout.COMMAND),
            (WAITER_REPOSITORY, layout.WAITER, ()),
        )
    ]


def forget_old(folder: Path) -> None:
    """Keep the newest archives, since others may be about to load theirs; nodes need none."""
    with suppress(FileNotFoundError):  # another does the same just now
        archives = sorted(folder.glob("penstock-*.tar"), key=lambda each: each.stat().st_mtime)
        for old in archives[:-KEPT]:
            old.unlink()


def checkout() -> Path:
    """Return the directory whose packages run now."""
    return Path(penstock.__file__).parent.parent


def tree(source: Path, at: str) -> dict[str, Entry]:
    """Return all that is below a directory as it is to lie below another in an image."""
    found: dict[str, Entry] = {}
    for path in sorted(source.rglob("*")):
        name = f"{at}/{path.relative_to(source)}".lstrip("/")
        if path.is_symlink():
            found[name] = Link(str(path.readlink()))
        elif path.is_dir():
            found[name] = Directory()
        else:
            found[name] = File(path, executable=bool(path.stat().st_mode & 0o100))
    return found


def environment(version: str) -> dict[str, Entry]:
    """Return what makes a directory a virtual environment around the interpreter."""
    configuration = (
        f"home = {layout.INTERPRETER}/bin\n"
        f"include-system-site-packages = false\nversion = {version}\n"
    )
    home = layout.HOME.lstrip("/")
    return {
        f"{home}/bin/python": Link(f"{layout.INTERPRETER}/bin/python{PYTHON}"),
        f"{home}/bin/python3": Link("python"),
        f"{home}/pyvenv.cfg": File(configuration.encode()),
    }


async def _foundation(place: Path, lock: Path, run: Run) -> None:
    """Put Python's own library and all that the lock pins below a directory, compiled."""
    library = place / "python" / "lib" / f"python{PYTHON}"
    standard = sysconfig.get_path("stdlib")
    ignored = shutil.ignore_patterns(*_LEFT_OUT)
    await asyncio.to_thread(shutil.copytree, standard, library, ignore=ignored, symlinks=True)
    packages = place / "packages"
    install = ("-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check")
    pinned = ("--require-hashes", "--only-binary=:all:", "--target", str(packages))
    await _python(run, *install, *pinned, "--requirement", str(lock))
    without_commands(packages)
    await _compiled(library, f"{layout.INTERPRETER}/lib/python{PYTHON}", run)
    await _compiled(packages, layout.site_packages(PYTHON), run)


def without_commands(packages: Path) -> None:
    """Take out the commands that pip made, and what it noted of them.

    They begin with the path of the interpreter here, and so would tell one checkout from another.
    """
    shutil.rmtree(packages / "bin", ignore_errors=True)
    for record in packages.glob("*.dist-info/RECORD"):
        lines = record.read_text().splitlines(keepends=True)
        record.write_text("".join(line for line in lines if not line.startswith("../../bin/")))


async def _ours(root: Path, folder: Path, run: Run) -> dict[str, Entry]:
    """Return the layer of our packages, compiled; what is returned lies in `folder`."""
    ignored = shutil.ignore_patterns("__pycache__")
    for package in layout.COPIED:
        await asyncio.to_thread(shutil.copytree, root / package, folder / package, ignore=ignored)
    at = layout.site_packages(PYTHON)
    await _compiled(folder, at, run)
    return tree(folder, at)


async def shared_layers(kept: Path, run: Run) -> list[dict[str, Entry]]:
    """Return the layers below ours: Python and the libraries it needs, then what the lock pins."""
    prefix = layout.INTERPRETER.lstrip("/")
    library = tree(kept / "python", prefix)
    packages = tree(kept / "packages", layout.site_packages(PYTHON))
    files = [
        entry.source
        for entry in (*library.values(), *packages.values())
        if isinstance(entry, File) and isinstance(entry.source, Path)
    ]
    found = await closure.libraries([INTERPRETER, *files], run)
    if not found:
        raise LabError("ldd names no library that Python needs: an image cannot be made here")
    # The loader looks for libraries where the C library is, wherever else they lie here.
    home = next(Path(path).parent for path in found if Path(path).name.startswith("libc.so"))
    system: dict[str, Entry] = {
        str(_place(path, home)).lstrip("/"): File(source, executable=True)
        for path, source in found.items()
        if not Path(path).is_relative_to(kept)
    }
    base: dict[str, Entry] = {
        **library,
        **system,
        f"{prefix}/bin/python{PYTHON}": File(INTERPRETER, executable=True),
        f"{prefix}/bin/python3": Link(f"python{PYTHON}"),
        "etc/passwd": File(ACCOUNTS),
        "tmp": Directory(0o1777),
    }
    return [base, packages | environment(sys.version.split()[0])]


def _place(path: str, home: Path) -> Path:
    """Return where a library goes: the loader where programs look for it, all others together."""
    return Path(path) if Path(path).name.startswith("ld-linux") else home / Path(path).name


def _digest(layer: Mapping[str, Entry], pinned: str) -> str:
    digest = hashlib.sha256(pinned.encode())
    for name, entry in sorted(layer.items()):
        digest.update(name.encode())
        if isinstance(entry, File):
            content = entry.source if isinstance(entry.source, bytes) else entry.source.read_bytes()
            digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()[:12]


async def _compiled(folder: Path, at: str, run: Run) -> None:
    """Compile what is below a folder, so that nothing of it says where it was compiled."""
    mode = ("--invalidation-mode", "unchecked-hash")
    places = ("-s", str(folder), "-p", at)
    await _python(run, "-m", "compileall", "-q", "-j", "2", *mode, *places, str(folder))


async def _python(run: Run, *arguments: str) -> None:
    answer = await run(Command([sys.executable, *arguments], SEEDLESS))
    if answer.code:
        what = " ".join(arguments[:3])
        raise LabError(f"making the image: python {what}: {answer.last_lines(2)}")
