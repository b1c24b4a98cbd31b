"""A webhook that does not know the cluster yet says so, and is not sent any reviews."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from aiohttp import web
from typing_extensions import override

from tests.webhook.clusterstand import SETS, Kind, Stand, standing
from tests.webhook.running import Running, files_in, port_of, ready, started, until

UNKNOWN = "the first lists from the API server have not arrived"


@dataclass
class Withheld(Kind):
    """A kind that is served, whose whole list comes only when it is let go."""

    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    @override
    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("limit") != "1":  # which asks only whether it is served
            await self.let_go.wait()
        return await super().handle(request)


def said(running: Running) -> tuple[int, str]:
    connection = running.connect()
    try:
        connection.request("GET", "/readyz")
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


async def test_it_is_unready_until_its_first_lists_have_arrived(tmp_path: Path) -> None:
    sets, stand = Withheld(), Stand()
    stand.kinds[SETS] = sets
    files = files_in(tmp_path / "tls")
    files.issue()
    loop = asyncio.get_running_loop()

    def watched(kubeconfig: Path) -> list[tuple[int, str]]:
        with started(
            files, tmp_path / "log", "--port", "0", "--kubeconfig", str(kubeconfig)
        ) as running:
            running.port = port_of(running)
            # Its own dial is answered first, so that nothing else keeps it unready.
            until(lambda: said(running) == (503, UNKNOWN), "only that is missing")
            loop.call_soon_threadsafe(sets.let_go.set)
            until(lambda: ready(running), "ready")
            return [said(running)]

    async with standing(stand):
        path = tmp_path / "kubeconfig"
        document = {
            "clusters": [{"name": "k", "cluster": {"server": stand.url}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "current-context": "c",
        }
        path.write_text(yaml.safe_dump(document))
        ((status, _),) = await asyncio.to_thread(watched, path)
    assert status == 200
