"""The page for everybody: by keyboard alone, dark, narrow, and over a restart of its server."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from api.jsons import JsonObject
from penstock.lab.layout import Layout
from tests.browser.conftest import LIVE, Looking
from tests.support.chromium import Chromium, Page
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl, engine_set

pytestmark = pytest.mark.browser

FOCUSED = "document.activeElement?.id || document.activeElement?.dataset?.gang || ''"
# The least contrast between any text and what is behind it, over all elements that hold text.
CONTRAST = """(() => {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    return pen.getImageData(0, 0, 1, 1).data;
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const found = rgba(getComputedStyle(each).backgroundColor);
      if (found[3] === 255) return found;
    }
    return rgba("white");
  };
  const bad = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility()) continue;
    const [a, b] = [light(rgba(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const what = `${element.tagName}.${element.className} ${element.innerText.slice(0, 40)}`;
    if (ratio < 4.5) bad.push(`${what} ${ratio.toFixed(2)}`);
  }
  return bad;
})()"""


async def focused_by_tab(page: Page, wanted: str, most: int = 60) -> None:
    """Go on by the tabulator until something has the focus."""
    for _ in range(most):
        if await page.run(FOCUSED) == wanted:
            return
        await page.press("Tab")
    raise AssertionError(f"{wanted} cannot be reached by keyboard; {await page.run(FOCUSED)} can")


async def test_all_of_it_can_be_done_by_keyboard(
    looking: Looking, cluster: Cluster, kubectl: Kubectl
) -> None:
    page, gang = looking.page, f"{cluster.namespace}/keys-0"
    kubectl.apply(engine_set("keys", pods=2, gpus=8))
    await cluster.running("keys")
    await page.says(f"#gangs [data-key='{gang}']", "2/2")
    await page.press("Tab")
    assert await page.run("document.activeElement.className") == "skip"
    await page.press("Enter")
    await page.until(f"({FOCUSED}) === 'map-heading'", "the link leads to the map")
    await focused_by_tab(page, "map")
    await page.press("Home")
    first = str(await page.text("#map-said"))
    await page.press("ArrowRight")
    assert await page.text("#map-said") != first
    await page.press("PageDown", "PageUp", "ArrowDown", "ArrowUp", "Home")
    assert await page.text("#map-said") == first
    for _ in range(32):
        if gang in await page.text("#map-said"):
            break
        await page.press("ArrowRight")
    await page.press("Enter")
    await page.says("#gang-body", gang)
    await looking.keep("keyboard-light")
    await page.press("Escape")
    await page.says("#gang-body", "Choose a gang")
    await focused_by_tab(page, "find")
    await page.press(*cluster.namespace)
    await page.says("#gangs-sum", "1 gang")
    await focused_by_tab(page, gang)
    await page.press("Enter")
    await page.says("#gang-body", "all pods bound")
    await page.run("document.querySelector('.skip').focus()")
    await focused_by_tab(page, "theme")
    await page.press("Space")
    assert await page.run("document.documentElement.dataset.theme") == "dark"


async def test_everything_that_can_be_used_has_a_name_for_screen_readers(looking: Looking) -> None:
    tree = await looking.page.call("Accessibility.getFullAXTree")
    nodes = tree["nodes"]
    assert isinstance(nodes, list)
    named: dict[str, list[str]] = {}
    for node in nodes:
        assert isinstance(node, dict)
        named.setdefault(_value(node, "role"), []).append(_value(node, "name"))
    for role in ("button", "link", "searchbox", "application", "heading", "list", "status"):
        assert role in named, sorted(named)
    for role in ("button", "link", "searchbox", "application", "heading"):
        assert all(named[role]), f"{role}: {named[role]}"
    assert {"Topology", "Waiting", "Queues", "Refused specs", "Gang"} <= {*named["heading"]}


def _value(node: JsonObject, key: str) -> str:
    found = node.get(key)
    return str(found.get("value", "")) if isinstance(found, dict) else ""


async def test_it_is_dark_where_the_system_is_and_where_the_button_says_so(
    looking: Looking, cluster: Cluster, kubectl: Kubectl
) -> None:
    page = looking.page
    kubectl.apply(engine_set("dark", pods=2, gpus=8))
    kubectl.apply(engine_set("wide", pods=33, gpus=8))
    await cluster.running("dark")
    await page.says("#waiting", "wide-0")
    button = f"document.querySelector('#gangs [data-gang=\"{cluster.namespace}/dark-0\"]')"
    await page.until(f"Boolean({button})", "the gang is listed")
    await page.run(f"{button}.click()")
    await page.says("#gang-body", "all pods bound")
    background = "getComputedStyle(document.body).backgroundColor"
    light = await page.run(background)
    assert await page.run(CONTRAST) == []
    await page.scheme("dark")
    assert await page.run(background) != light
    await page.until("document.getElementById('theme').ariaPressed === 'true'", "the button knows")
    assert await page.run(CONTRAST) == []
    await looking.keep("all-dark")
    await page.run("document.getElementById('theme').click()")
    assert await page.run(background) == light, "the button has the last word"
    await looking.begin()
    assert await page.run(background) == light, "and is remembered"
    await looking.keep("all-light")


async def test_a_narrow_window_shows_all_without_scrolling_sideways(
    looking: Looking, cluster: Cluster, kubectl: Kubectl
) -> None:
    page = looking.page
    kubectl.apply(engine_set("narrow", pods=2, gpus=8))
    await cluster.running("narrow")
    await page.size(360, 800)
    gang = f"{cluster.namespace}/narrow-0"
    await page.until(f"Boolean(document.querySelector('[data-gang=\"{gang}\"]'))", "the gang")
    await page.run(f"document.querySelector('[data-gang=\"{gang}\"]').click()")
    await page.says("#gang-body", "all pods bound")
    assert await page.run("document.documentElement.scrollWidth") == 360
    assert await page.run("document.getElementById('map-canvas').width") in range(200, 361)
    await looking.keep("narrow-light")


@asynccontextmanager
async def command(
    installed: Installed, *more: str
) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """Run `penstock dashboard` as people do; gives the address that it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "penstock", "dashboard", *more,
        "--kubeconfig", str(installed.lab.kubeconfig),
        "--audit-dir", str(Layout.of(installed.lab.directory).audit),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
        assert line.startswith("the dashboard is at http://127.0.0.1:"), line
        yield line.split()[4], process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 30) == 0, "to be interrupted is a good end"


async def test_a_page_finds_back_when_its_server_was_started_again(
    installed: Installed, browser: Chromium, cluster: Cluster, kubectl: Kubectl
) -> None:
    async with browser.page() as page:
        async with command(installed) as (url, _):
            looking = Looking(page, url)
            await looking.begin()
            kubectl.apply(engine_set("before", pods=1, gpus=8))
            await page.says("#gangs", f"{cluster.namespace}/before-0")
        await page.says("#link", "reconnecting")
        assert f"{cluster.namespace}/before-0" in await page.text("#gangs"), "the last is shown"
        kubectl.delete("before")
        await cluster.gone("podgang", "before-0")
        kubectl.apply(engine_set("after", pods=1, gpus=8))
        port = url.rstrip("/").rpartition(":")[2]
        async with command(installed, "--port", port) as (again, _):
            assert again == url
            await page.until(LIVE, "it is live again")
            await page.says("#gangs", f"{cluster.namespace}/after-0")
            assert f"{cluster.namespace}/before-0" not in await page.text("#gangs")
            assert page.complaints() == []
