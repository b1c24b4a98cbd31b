"""Taking tools from the official sites, where these answer, with the published checksums."""

import asyncio
import contextlib
import hashlib
import json
import re
import shutil
import tarfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypeVar
from urllib.parse import urlsplit

from penstock.lab.building import publish, temporary_beside
from penstock.lab.errors import LabError
from penstock.lab.tools import Tool

T = TypeVar("T")

PROBE_SECONDS: Final = 3.0
STALL_SECONDS: Final = 30.0
_DIGEST = re.compile(r"^[0-9a-f]{64}$")


class Site(Protocol):
    """The web, as far as we need it."""

    async def answers(self, host: str) -> bool:
        """Tell, within PROBE_SECONDS, whether a host can be reached."""
        ...

    async def text(self, url: str) -> str:
        """Return a small text; raises OSError."""
        ...

    async def save(self, url: str, destination: Path) -> None:
        """Write a file; raises OSError."""
        ...


@dataclass
class Downloads:
    """Downloads for one run: a host that does not answer is asked once."""

    site: Site
    _hosts: dict[str, bool] = field(default_factory=dict)

    async def possible(self, tool: Tool) -> bool:
        """Tell whether the sites that have the tool and its checksum answer."""
        hosts = {_host(tool.download.url), _host(tool.download.checksums)}
        for host in sorted(hosts - self._hosts.keys()):
            self._hosts[host] = await self.site.answers(host)
        return all(self._hosts[host] for host in hosts)

    async def fetch(self, tool: Tool, destination: Path) -> None:
        """Download to `destination`, which appears checked and whole or not at all.

        Raises LabError if the site fails us or what it sends does not fit the checksum.
        """
        download = tool.download
        asset = download.url.rsplit("/", 1)[-1]
        arrived = temporary_beside(destination)
        program = temporary_beside(destination)
        try:
            wanted = find_checksum(await self.site.text(download.checksums), asset)
            if wanted is None:
                raise LabError(f"{download.checksums} has no SHA-256 for {asset}")
            await self.site.save(download.url, arrived)
            await asyncio.to_thread(_check_and_place, arrived, wanted, tool, program)
            publish(program, destination)
        except (OSError, tarfile.TarError, LookupError, ValueError) as error:
            self._hosts[_host(download.url)] = False
            raise LabError(f"downloading {download.url}: {error}") from error
        finally:
            arrived.unlink(missing_ok=True)
            program.unlink(missing_ok=True)


def find_checksum(text: str, asset: str) -> str | None:
    """Find a file's SHA-256 in a lone digest, lines of digest and name, or a release's JSON."""
    if text.lstrip().startswith("{"):
        return _in_release(text, asset)
    for line in text.splitlines():
        digest, _, name = line.strip().partition(" ")
        if _DIGEST.match(digest) and name.strip().lstrip("*") in {"", asset}:
            return digest
    return None


def _in_release(text: str, asset: str) -> str | None:
    release: object = json.loads(text)
    assets = release.get("assets") if isinstance(release, dict) else None
    for entry in assets if isinstance(assets, list) else []:
        if isinstance(entry, dict) and entry.get("name") == asset:
            digest = str(entry.get("digest") or "").removeprefix("sha256:")
            return digest if _DIGEST.match(digest) else None
    return None


def _check_and_place(arrived: Path, wanted: str, tool: Tool, program: Path) -> None:
    with arrived.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != wanted:
        raise LabError(
            f"{tool.download.url} has SHA-256 {found}, but {wanted} was published: not used"
        )
    if tool.download.member is None:
        arrived.replace(program)
        return
    with tarfile.open(arrived) as archive, program.open("wb") as output:
        member = archive.extractfile(tool.download.member)
        if member is None:
            raise LabError(f"{tool.download.url} has no file {tool.download.member}")
        shutil.copyfileobj(member, output)


def _host(url: str) -> str:
    return urlsplit(url).netloc


class Web:
    """The web itself; follows the proxies of the environment."""

    async def answers(self, host: str) -> bool:
        """Ask for the host's front page and take any answer for a yes."""
        with contextlib.suppress(OSError, TimeoutError):
            return await asyncio.wait_for(_in_thread(lambda: _probe(host)), PROBE_SECONDS)
        return False

    async def text(self, url: str) -> str:
        """Return a small text."""
        return (await _in_thread(lambda: _read(url))).decode(errors="replace")

    async def save(self, url: str, destination: Path) -> None:
        """Stream a file to disk."""
        await _in_thread(lambda: _save(url, destination))


def _probe(host: str) -> bool:
    request = urllib.request.Request(f"https://{host}/", method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=PROBE_SECONDS):  # noqa: S310  always https
            return True
    except urllib.error.HTTPError:
        return True


def _read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=STALL_SECONDS) as answer:  # noqa: S310  from our table
        content = answer.read()
    if not isinstance(content, bytes):
        raise OSError(f"{url} sent no bytes")
    return content


def _save(url: str, destination: Path) -> None:
    with (
        urllib.request.urlopen(url, timeout=STALL_SECONDS) as answer,  # noqa: S310  from our table
        destination.open("wb") as file,
    ):
        shutil.copyfileobj(answer, file)


async def _in_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a thread that nothing waits for at exit; name look-ups can be slow."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(change: Callable[[], None]) -> None:
        def unless_gone() -> None:
            if not outcome.done():
                change()

        with contextlib.suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(unless_gone)

    def target() -> None:
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - whatever it is, somebody waits for it
            # An answer that is cut short, say, is an HTTPException, which is no OSError by itself.
            failure = error if isinstance(error, OSError) else OSError(repr(error))
            settle(lambda: outcome.set_exception(failure))
        else:
            settle(lambda: outcome.set_result(value))

    threading.Thread(target=target, daemon=True).start()
    return await outcome
