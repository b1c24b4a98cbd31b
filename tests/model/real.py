"""The same stage with a real API server: the process speaks to it, and the memory mirrors it.

Time is still the test's to turn, for the process alone; what the server does takes its own.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import Final

import msgspec
from typing_extensions import override

from api.jsons import JsonObject
from kube import credentials
from kube.access import Credentials
from kube.client import Client
from kube.clock import Clock, SystemClock
from kube.errors import Unreachable, from_answer
from kube.transport import Call, Patience, Transport
from tests.model.memory import Memory, Target, Wire, part
from tests.model.player import PODS, Player, listed, path
from tests.model.stage import NAMESPACE, Stage
from tests.support.asking import Asker
from tests.support.manualclock import ManualClock, settle

KINDS: Final = (
    "apis/grove.io/v1alpha1/podcliquesets",
    "apis/grove.io/v1alpha1/podcliques",
    "apis/grove.io/v1alpha1/podcliquescalinggroups",
    "apis/scheduler.grove.io/v1alpha1/podgangs",
    "api/v1/services",
    PODS,
)
# The one service that is nobody's.
_KUBERNETES: Final = ("api/v1/services", "default", "kubernetes")
_PAUSE: Final = 0.03
_PATIENCE: Final = 300
_CLOSING: Final = 0.1  # seconds that connections take to close


class Mirror(Memory):
    """What the API server has, as it was last looked at; requests go to the server."""

    def __init__(self, clock: Clock, asker: Asker) -> None:
        super().__init__(clock)
        self._asker = asker

    def look(self, *kinds: str) -> None:
        """Look anew at some kinds, or at all."""
        for kind in kinds or KINDS:
            base, _, plural = kind.rpartition("/")
            found = self._asker.ask("GET", f"/{base}/namespaces/{NAMESPACE}/{plural}").object
            fresh = {(kind, NAMESPACE, str(part(o, "metadata")["name"])): o
                     for o in listed(found, "items")}  # fmt: skip
            fresh.pop(_KUBERNETES, None)
            before = {key: thing for key, thing in self.objects.items() if key[0] == kind}
            if before != fresh:
                self.version += 1
                self.objects = {key: o for key, o in self.objects.items() if key not in before}
                self.objects.update(fresh)

    def wipe(self) -> None:
        """Take away what an earlier life has left, whoever still wants to hold it."""
        player = Player(self, NAMESPACE)
        for _ in range(_PATIENCE):
            self.look()
            if not self.objects:
                return
            for kind, _, name in list(self.objects):
                player.patch(kind, name, {"metadata": {"finalizers": None}})
                player.delete(kind, name, gracePeriodSeconds=0)
            sleep(_PAUSE)
        raise AssertionError(f"still there: {self.left()}")

    @override
    def answer(self, call: Call) -> JsonObject:
        body = msgspec.json.decode(call.body) if call.body else None
        where = call.path + "?fieldManager=player" * (call.method != "DELETE")
        seen = self._asker.ask(call.method, where, body, media=call.content_type)
        if not seen.done and seen.code != 404:
            raise from_answer(seen.code, seen.body)
        self.look(Target.of(call.path).kind)
        return seen.object

    @override
    def collect_garbage(self) -> bool:
        """Leave it to the control plane."""
        return False


class RealPlayer(Player):
    """Binds pods to a node that no kubelet and no scheduler knows."""

    @override
    def lift(self, name: str) -> None:
        self.patch(PODS, name, {"spec": {"schedulingGates": None}})
        body: JsonObject = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name},
            "target": {"kind": "Node", "name": "nowhere"},
        }
        self._send("POST", path(PODS, self.namespace, name, "binding"), body)


class RealTransport(Transport):
    """Sends calls to the server, unless something befalls them."""

    def __init__(self, found: Credentials, wire: Wire, mirror: Mirror, clock: Clock) -> None:
        super().__init__(found, "tests", clock, Patience())
        self._wire = wire
        self._mirror = mirror

    @override
    async def send(self, call: Call) -> bytes:
        error = self._wire.harm(call)
        if error is not None:
            raise error
        if call.method != "GET":
            self._wire.calls.append(call)
            self._mirror.look(PODS)
            self._wire.witness(call)
        body = await super().send(call)
        if self._wire.lose(call):
            raise Unreachable("the answer was lost")
        return body

    @override
    @asynccontextmanager
    async def lines(self, call: Call, idle_seconds: float) -> AsyncIterator[AsyncIterator[bytes]]:
        error = self._wire.harm(call)
        if error is not None:
            raise error
        async with super().lines(call, idle_seconds) as lines:
            yield self._lines(call, lines)

    async def _lines(self, call: Call, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            if self._wire.lose(call):
                raise Unreachable("the watch was cut")
            yield line


class RealClient(Client):
    """The real client on its way through what may befall it."""

    def __init__(self, found: Credentials, wire: Wire, mirror: Mirror, clock: Clock) -> None:
        super().__init__(found, "workloads", clock)
        self._transport = RealTransport(found, wire, mirror, clock)


class RealStage(Stage):
    """One `workloads` at a real API server."""

    def __init__(self, kubeconfig: Path, asker: Asker) -> None:
        # The server dates what it makes, so the clock begins with the server's.
        super().__init__(clock=ManualClock(datetime.now(UTC)))  # noqa: TID251
        self._credentials = credentials.load(kubeconfig, None, SystemClock(), os.environ)
        self._mirror = Mirror(self.clock, asker)
        self._mirror.wipe()
        self.memory = self._mirror
        self.wire = Wire(self.memory)
        self.player = RealPlayer(self.memory, NAMESPACE)

    @override
    def connect(self) -> Client:
        return RealClient(self._credentials, self.wire, self._mirror, self.clock)

    @override
    async def kill(self) -> None:
        await super().kill()
        await asyncio.sleep(_CLOSING)

    @override
    async def some_time(self, instants: int) -> None:
        await asyncio.sleep(instants / 4000)

    @override
    async def settle(self) -> None:
        last = -1
        while last != self.memory.version:
            last = self.memory.version
            await settle()
            await asyncio.sleep(_PAUSE)
            self._mirror.look()
