"""The fixture `installed`: Penstock in the session's lab, and clients with its accounts' tokens."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from kube import credentials
from kube.client import Client
from kube.clock import SystemClock
from kube.errors import ApiError
from penstock import proving
from penstock.lab.install import InstallOptions, install, stop
from penstock.lab.installation import Installation
from penstock.lab.state import Lab
from tests.support.living import PATIENCE


@dataclass(frozen=True)
class Installed:
    """Penstock in a lab."""

    lab: Lab
    installation: Installation

    @property
    def helm(self) -> Path:
        """Return the helm that the lab uses."""
        return self.lab.binaries["helm"]

    async def again(self, options: InstallOptions = InstallOptions()) -> list[str]:  # noqa: B008
        """Run `lab install` once more and return the steps it reported."""
        steps: list[str] = []
        lab = self.lab
        await install(lab.directory, lab.kubeconfig, self.helm, options, steps.append)
        return steps

    @asynccontextmanager
    async def acting(self, account: str) -> AsyncIterator[Client]:
        """Speak to the API server with an account's real token, and no other credential."""
        async with _client(self.installation.kubeconfig(account), account) as client:
            yield client

    @asynccontextmanager
    async def person(self) -> AsyncIterator[Client]:
        """Speak to the API server as the person, who may do everything."""
        async with _client(self.lab.kubeconfig, "test") as client:
            yield client


@contextmanager
def away(installed: Installed, *parts: str) -> Iterator[None]:
    """Have parts of Penstock stopped meanwhile."""
    for part in parts:
        installed.installation.stop_component(part)
    try:
        yield
    finally:
        for part in parts:
            installed.installation.start_component(part)


async def answered(installed: Installed) -> None:
    """Wait until webhooks that were stopped are asked again, and answer."""
    async with installed.person() as person, asyncio.timeout(PATIENCE):
        while True:
            with suppress(ApiError):
                if not await proving.missing(person):
                    return
            await asyncio.sleep(0.2)


def _client(kubeconfig: Path, component: str) -> Client:
    clock = SystemClock()
    return Client(credentials.load(kubeconfig, None, clock, {}), component, clock)


@pytest.fixture(scope="session")
def installed(lab: Lab) -> Iterator[Installed]:
    """Install Penstock into the session's lab once; its processes are ended with the session."""
    work = install(
        lab.directory, lab.kubeconfig, lab.binaries["helm"], InstallOptions(), lambda _: None
    )
    yield Installed(lab, asyncio.run(work))
    stop(lab.directory)
