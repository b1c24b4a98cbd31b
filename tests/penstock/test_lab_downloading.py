import asyncio
import hashlib
import io
import json
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock.lab.downloading import Downloads, Web, find_checksum
from penstock.lab.errors import LabError
from penstock.lab.tools import Tool, toolset

TOOLS = {tool.name: tool for tool in toolset("v1.37.1")}
SERVER, ETCD, KWOK = TOOLS["kube-apiserver"], TOOLS["etcd"], TOOLS["kwok"]
PROGRAM = b"\x7fELF and so on"
DIGEST = hashlib.sha256(PROGRAM).hexdigest()


@dataclass
class FakeSite:
    """The web in a dictionary; hosts in `silent` do not answer."""

    files: dict[str, bytes] = field(default_factory=dict)
    silent: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)

    async def answers(self, host: str) -> bool:
        self.asked.append(host)
        return host not in self.silent

    async def text(self, url: str) -> str:
        return self._content(url).decode()

    async def save(self, url: str, destination: Path) -> None:
        self._write(url, destination)

    def _write(self, url: str, destination: Path) -> None:
        destination.write_bytes(self._content(url))

    def _content(self, url: str) -> bytes:
        try:
            return self.files[url]
        except KeyError:
            raise OSError("HTTP Error 404: Not Found") from None


def site_with(tool: Tool, content: bytes, checksums: str) -> FakeSite:
    return FakeSite({tool.download.url: content, tool.download.checksums: checksums.encode()})


def tarball(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


async def test_a_program_with_the_right_checksum_is_placed(tmp_path: Path) -> None:
    destination = tmp_path / "bin" / "kube-apiserver"
    await Downloads(site_with(SERVER, PROGRAM, DIGEST)).fetch(SERVER, destination)
    assert destination.read_bytes() == PROGRAM
    assert destination.stat().st_mode & 0o111
    assert list(destination.parent.iterdir()) == [destination]


async def test_a_program_is_taken_out_of_its_tarball(tmp_path: Path) -> None:
    assert ETCD.download.member
    content = tarball(ETCD.download.member, PROGRAM)
    name = ETCD.download.url.rsplit("/", 1)[-1]
    sums = f"{'0' * 64}  other.tar.gz\n{hashlib.sha256(content).hexdigest()}  {name}\n"
    await Downloads(site_with(ETCD, content, sums)).fetch(ETCD, tmp_path / "etcd")
    assert (tmp_path / "etcd").read_bytes() == PROGRAM


@pytest.mark.parametrize(
    ("checksums", "complaint"),
    [
        pytest.param("0" * 64, "not used", id="another digest"),
        pytest.param("<html>", "has no SHA-256", id="no digest"),
    ],
)
async def test_without_the_right_checksum_nothing_is_placed(
    tmp_path: Path, checksums: str, complaint: str
) -> None:
    with pytest.raises(LabError, match=complaint):
        await Downloads(site_with(SERVER, PROGRAM, checksums)).fetch(SERVER, tmp_path / "server")
    assert files_in(tmp_path) == []


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_a_host_is_asked_once_a_run() -> None:
    site = FakeSite(silent=("dl.k8s.io",))
    downloads = Downloads(site)
    for name in ("kube-apiserver", "kube-scheduler", "kubectl"):
        assert not await downloads.possible(TOOLS[name])
    assert await downloads.possible(ETCD)
    assert site.asked == ["dl.k8s.io", "github.com"]


async def test_a_host_that_fails_is_not_tried_again(tmp_path: Path) -> None:
    downloads = Downloads(FakeSite())
    assert await downloads.possible(SERVER)
    with pytest.raises(LabError, match="404"):
        await downloads.fetch(SERVER, tmp_path / "server")
    assert not await downloads.possible(SERVER)


def test_checksums_are_found_in_every_form_they_are_published_in() -> None:
    release = {
        "assets": [
            {"name": "kwok-linux-amd64.sig"},
            {"name": "kwok-linux-amd64", "digest": f"sha256:{DIGEST}"},
        ]
    }
    for text in (
        DIGEST,
        f"{DIGEST}\n",
        f"{DIGEST}  kwok-linux-amd64\n",
        f"{DIGEST} *kwok-linux-amd64\n",
        json.dumps(release),
    ):
        assert find_checksum(text, "kwok-linux-amd64") == DIGEST


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"{DIGEST}  another-file",
        "0123",
        json.dumps({"assets": [{"name": "kwok-linux-amd64", "digest": None}]}),
        json.dumps({"message": "rate limit exceeded"}),
    ],
)
def test_no_checksum_is_found_where_there_is_none(text: str) -> None:
    assert find_checksum(text, "kwok-linux-amd64") is None


def test_only_the_official_sites_are_asked() -> None:
    hosts = {
        url.split("/")[2]
        for tool in TOOLS.values()
        for url in (tool.download.url, tool.download.checksums)
    }
    assert hosts == {"dl.k8s.io", "github.com", "api.github.com", "get.helm.sh"}


async def test_an_answer_that_is_cut_short_is_an_error_and_not_waited_for() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
        writer.close()

    server = await asyncio.start_server(cut, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        with pytest.raises(OSError, match="IncompleteRead"):
            await asyncio.wait_for(Web().text(f"http://{host}:{port}/sums"), 10)


async def test_a_tarball_that_is_none_is_said_so_and_leaves_nothing(tmp_path: Path) -> None:
    tool = ETCD
    assert tool.download.member is not None
    content = b"this is no tarball"
    site = site_with(tool, content, hashlib.sha256(content).hexdigest())
    with pytest.raises(LabError, match="downloading"):
        await Downloads(site).fetch(tool, tmp_path / tool.name)
    assert files_in(tmp_path) == []
