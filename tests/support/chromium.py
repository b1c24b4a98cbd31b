"""A real headless Chromium, driven by its own DevTools protocol."""

import asyncio
import base64
import itertools
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import aiohttp
import orjson

from api.jsons import Json, JsonObject

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-port=0",
)  # fmt: skip
PATIENCE = 60.0  # seconds
KEYS = {
    "Tab": 9, "Enter": 13, "Escape": 27, "Space": 32, "PageUp": 33, "PageDown": 34, "End": 35,
    "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
}  # fmt: skip


def binary() -> Path | None:
    """Find a Chromium on this machine."""
    named = os.environ.get("PENSTOCK_CHROMIUM", "")
    found = named or shutil.which("chromium") or shutil.which("google-chrome")
    return Path(found) if found else None


class PageError(AssertionError):
    """A page's script failed, or what was waited for did not come."""


@dataclass
class Wire:
    """Commands to the browser and what it says, over one websocket."""

    socket: aiohttp.ClientWebSocketResponse
    answers: dict[int, asyncio.Future[JsonObject]] = field(default_factory=dict)
    heard: list[JsonObject] = field(default_factory=list)
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def listen(self) -> None:
        async for message in self.socket:
            said: JsonObject = orjson.loads(message.data)
            number = said.get("id")
            waiting = self.answers.pop(number, None) if isinstance(number, int) else None
            if waiting is None:
                self.heard.append(said)
            elif not waiting.done():
                waiting.set_result(said)

    async def call(self, method: str, session: str = "", **parameters: Json) -> JsonObject:
        number = next(self.numbers)
        asked: JsonObject = {"id": number, "method": method, "params": parameters}
        if session:
            asked["sessionId"] = session
        answer = asyncio.get_running_loop().create_future()
        self.answers[number] = answer
        await self.socket.send_str(orjson.dumps(asked).decode())
        said = await asyncio.wait_for(answer, PATIENCE)
        if "error" in said:
            raise PageError(f"{method}: {said['error']}")
        result = said["result"]
        assert isinstance(result, dict)
        return result


@dataclass
class Page:
    """One page that a test looks at and types into."""

    wire: Wire
    session: str

    async def call(self, method: str, **parameters: Json) -> JsonObject:
        return await self.wire.call(method, self.session, **parameters)

    async def begin(self) -> Self:
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        return self

    async def before(self, script: str) -> None:
        """Have a script run before those of every page."""
        await self.call("Page.addScriptToEvaluateOnNewDocument", source=script)

    async def open(self, url: str) -> None:
        await self.call("Page.navigate", url=url)

    async def run(self, script: str) -> Json:
        """Evaluate an expression, or a promise, and give its value."""
        told = await self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in told:
            raise PageError(f"{script}: {told['exceptionDetails']}")
        result = told["result"]
        assert isinstance(result, dict)
        return result.get("value")

    async def text(self, selector: str) -> str:
        """Give what a reader sees of an element; "" where there is none."""
        return str(await self.run(f"document.querySelector({_js(selector)})?.innerText ?? ''"))

    async def until(self, script: str, what: str, patience: float = PATIENCE) -> Json:
        """Evaluate until it is true, and give that."""
        found: Json = None
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not found:
                    found = await self.run(script)
                    if not found:
                        await asyncio.sleep(0.05)
        if not found:
            raise PageError(
                f"not within {patience:.0f} s: {what}; the page says: {await self.seen()}"
            )
        return found

    async def says(self, selector: str, text: str) -> None:
        """Wait until an element has this text somewhere."""
        words = f"(document.querySelector({_js(selector)})?.innerText ?? '').includes({_js(text)})"
        await self.until(words, f"{text!r} in {selector}")

    async def seen(self) -> str:
        return str(await self.run("document.body.innerText"))[:3000]

    async def press(self, *keys: str) -> None:
        """Press keys by name, or type a letter each."""
        for key in keys:
            code = KEYS.get(key, 0)
            name = " " if key == "Space" else key
            more: JsonObject = {"windowsVirtualKeyCode": code} if code else {"text": key}
            if key == "Enter":
                more["text"] = "\r"
            await self.call("Input.dispatchKeyEvent", type="keyDown", key=name, code=key, **more)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=name, code=key, **more)

    async def click(self, x: float, y: float) -> None:
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            await self.call(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    async def size(self, width: int, height: int) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    async def scheme(self, name: str) -> None:
        """Have the system ask for light or dark pages."""
        wish: JsonObject = {"name": "prefers-color-scheme", "value": name}
        await self.call("Emulation.setEmulatedMedia", features=[wish])

    async def shot(self, path: Path, *, whole: bool = True) -> None:
        """Keep a picture of the page."""
        told = await self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        await asyncio.to_thread(path.write_bytes, base64.b64decode(str(told["data"])))

    def complaints(self) -> list[str]:
        """What went wrong in the page: exceptions, and what its security policy forbade."""
        found = []
        for said in self.wire.heard:
            if said.get("sessionId") != self.session:
                continue
            if said.get("method") == "Runtime.exceptionThrown":
                found.append(str(said["params"]))
            if said.get("method") == "Log.entryAdded" and "ecurity" in str(said["params"]):
                found.append(str(said["params"]))
        return found

    def asked(self) -> list[str]:
        """List the addresses that the page has asked for."""
        found = []
        for said in self.wire.heard:
            if said.get("method") == "Network.requestWillBeSent":
                request = said["params"]["request"]  # type: ignore[index,call-overload]
                found.append(str(request["url"]))  # type: ignore[index,call-overload]
        return found


@dataclass
class Chromium:
    """A browser that runs."""

    wire: Wire

    @asynccontextmanager
    async def page(self, width: int = 1440, height: int = 1000) -> AsyncIterator[Page]:
        """Open a page of its own, with no memory of others."""
        context = str((await self.wire.call("Target.createBrowserContext"))["browserContextId"])
        made = await self.wire.call(
            "Target.createTarget", url="about:blank", browserContextId=context
        )
        target = str(made["targetId"])
        joined = await self.wire.call("Target.attachToTarget", targetId=target, flatten=True)
        page = await Page(self.wire, str(joined["sessionId"])).begin()
        await page.size(width, height)
        try:
            yield page
        finally:
            await self.wire.call("Target.disposeBrowserContext", browserContextId=context)


@asynccontextmanager
async def chromium(program: Path, folder: Path) -> AsyncIterator[Chromium]:
    """Run a browser with a profile in this folder; it is ended with all it started."""
    process = await asyncio.create_subprocess_exec(
        program, *FLAGS, f"--user-data-dir={folder}", "about:blank",
        stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        address = await asyncio.wait_for(_address(process.stderr), PATIENCE)
        draining = asyncio.ensure_future(process.stderr.read())
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(address, max_msg_size=0) as socket,
        ):
            wire = Wire(socket)
            listening = asyncio.ensure_future(wire.listen())
            try:
                yield Chromium(wire)
            finally:
                listening.cancel()
        draining.cancel()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _address(stream: asyncio.StreamReader) -> str:
    while line := await stream.readline():
        _, found, address = line.decode().partition("DevTools listening on ")
        if found:
            return address.strip()
    raise PageError("the browser ended before it could be spoken to")


def _js(text: str) -> str:
    return orjson.dumps(text).decode()
