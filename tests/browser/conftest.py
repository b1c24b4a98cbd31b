"""A real Chromium, and a lab with Penstock whose dashboard it looks at."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from kube.clock import SystemClock
from penstock.dashboard.choices import Choices
from penstock.dashboard.refusals import Folder
from penstock.dashboard.running import Sources, served
from penstock.lab import cluster as labs
from penstock.lab.layout import Layout
from penstock.lab.progress import Screen
from penstock.lab.spec import LabSpec
from penstock.lab.state import Lab
from penstock.plugin import running
from tests.cluster.conftest import cluster, kubectl, person, space
from tests.repo import checkout
from tests.support import chromium
from tests.support.chromium import Chromium, Page
from tests.support.installed import Installed, installed
from tests.support.leftovers import fresh_name
from tests.support.living import connect

__all__ = ["cluster", "installed", "kubectl", "person", "space"]

SHOTS = checkout.ROOT / "build" / "browser"
LIVE = "document.getElementById('link')?.dataset.state === 'live'"


@dataclass(frozen=True)
class Looking:
    """A page that shows a dashboard, and where that is served."""

    page: Page
    url: str

    async def begin(self) -> None:
        """Open the dashboard and wait until it is live."""
        await self.page.open(self.url)
        await self.page.until(LIVE, "the page is live")

    async def keep(self, name: str) -> None:
        """Keep a picture for whoever looks at the build."""
        await self.page.shot(SHOTS / f"{name}.png")


@pytest.fixture(scope="session")
def program() -> Path:
    """The browser; without one there is nothing to test."""
    found = chromium.binary()
    assert found is not None, "no Chromium: on Debian `apt-get install chromium`"
    SHOTS.mkdir(parents=True, exist_ok=True)
    return found


@pytest.fixture
async def browser(program: Path, tmp_path: Path) -> AsyncIterator[Chromium]:
    async with chromium.chromium(program, tmp_path / "profile") as made:
        yield made


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """A lab of 32 nodes with 8 GPUs each, in two zones, four blocks and eight racks."""
    spec = LabSpec(fresh_name(), nodes=32, gpus=8, topology="zone=2,block=2,rack=2", audit=True)
    screen = Screen(sys.stderr, SystemClock(), live=False)
    try:
        yield asyncio.run(labs.up(spec, screen))
    finally:
        asyncio.run(labs.down(spec.name, screen))


@pytest.fixture
async def looking(installed: Installed, browser: Chromium) -> AsyncIterator[Looking]:
    """The dashboard of the lab in a page of its own, live; no page may have complained."""
    async with connect(installed.lab.kubeconfig, "plugin") as client:
        sources = Sources(
            client, partial(running.policy_of, client, "penstock-system"),
            Folder(Layout.of(installed.lab.directory).audit), client.server,
        )  # fmt: skip
        async with served(sources, Choices()) as found, browser.page() as page:
            made = Looking(page, found.address.url)
            await made.begin()
            yield made
            assert page.complaints() == []
            assert [url for url in page.asked() if not url.startswith(made.url)] == []
