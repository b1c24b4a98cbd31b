"""The controllers under test: each behind a proxy of its own, and started again when it ends."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import yaml

from penstock.lab import keeper
from penstock.lab.installation import Installation
from tests.chaos.proxy import Head, Proxy, Trouble

LEASE: Final = "6"  # seconds; with less, a busy machine alone deposes leaders
AGAIN_SECONDS: Final = 0.2
END_SECONDS: Final = 20.0
CAST: Final = ("gangs-0", "gangs-1", "workloads-0")


class Meddling(Protocol):
    """Who may stand between a controller and the API server."""

    async def before(self, actor: "Actor", head: Head, body: bytes) -> Trouble | None:
        """Be asked before a request is passed on."""
        ...

    async def after(self, actor: "Actor", head: Head) -> None:
        """Be told that one was carried out, before its sender is."""
        ...


@dataclass
class Actor:
    """One controller's process, or its successor."""

    name: str
    command: list[str]
    log: Path
    proxy: Proxy
    process: asyncio.subprocess.Process | None = None
    starts: int = 0

    @property
    def component(self) -> str:
        return self.name.partition("-")[0]

    @property
    def pid(self) -> int:
        """Of the process that runs now; 0 if none does."""
        alive = self.process is not None and self.process.returncode is None
        return self.process.pid if alive and self.process else 0

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to the process; whether there is one."""
        if not self.pid:
            return False
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)
            return True
        return False

    def kill(self) -> bool:
        """End it as `kill -9` does; whether there was one."""
        return self.signal(signal.SIGKILL)

    async def run(self) -> None:
        """Keep one running until cancelled."""
        try:
            while True:
                with self.log.open("ab") as log:
                    self.process = await asyncio.create_subprocess_exec(
                        *self.command, stdout=log, stderr=log, stdin=asyncio.subprocess.DEVNULL
                    )
                self.starts += 1
                await self.process.wait()
                await asyncio.sleep(AGAIN_SECONDS)
        finally:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
            if self.process is not None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.process.wait(), END_SECONDS)
            self.kill()


@dataclass
class Actors:
    """All of them."""

    cast: list[Actor] = field(default_factory=list)

    def of(self, component: str) -> list[Actor]:
        return [actor for actor in self.cast if actor.component == component]

    def by_pid(self, pid: int) -> Actor | None:
        return next((actor for actor in self.cast if actor.pid == pid), None)


@asynccontextmanager
async def acting(
    installation: Installation, folder: Path, meddling: Meddling
) -> AsyncIterator[Actors]:
    """Run the cast in the place of the lab's own controllers."""
    for component in ("gangs", "workloads"):
        await asyncio.to_thread(installation.stop_component, component)
    try:
        async with AsyncExitStack() as stack:
            actors = Actors()
            for name in CAST:
                actors.cast.append(await _actor(name, installation, folder, meddling, stack))
            tasks = [asyncio.create_task(actor.run()) for actor in actors.cast]
            try:
                yield actors
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        for component in ("gangs", "workloads"):
            installation.layout.hold(component).unlink(missing_ok=True)


async def _actor(
    name: str,
    installation: Installation,
    folder: Path,
    meddling: Meddling,
    stack: AsyncExitStack,
) -> Actor:
    component = name.partition("-")[0]
    own = installation.kubeconfig(keeper.account_of(component))
    proxy = await stack.enter_async_context(Proxy(own).serving())
    config = yaml.safe_load(own.read_text())
    for cluster in config["clusters"]:
        cluster["cluster"] = {"server": proxy.url}
    behind = folder / f"{name}.kubeconfig"
    behind.write_text(yaml.safe_dump(config))
    behind.chmod(0o600)
    line = [
        *keeper.command_line(installation.layout, installation.settings, component, 0),
        "--lease",
        LEASE,
    ]
    command = [str(behind) if word == str(own) else word for word in line]
    actor = Actor(name, [sys.executable, *command[1:]], folder / f"{name}.log", proxy)

    async def before(head: Head, body: bytes) -> Trouble | None:
        return await meddling.before(actor, head, body)

    async def after(head: Head) -> None:
        await meddling.after(actor, head)

    proxy.before, proxy.after = before, after
    return actor
