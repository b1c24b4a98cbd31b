"""The dashboard of a real cluster in a real browser: what is shown, live, and by which words."""

import pytest

from api import names
from api.jsons import JsonObject
from kube.clock import SystemClock
from penstock.plugin import judging, queueing
from penstock.plugin.scenes import scene
from tests.browser.conftest import Looking
from tests.support.living import Cluster, Kubectl, engine_set

pytestmark = pytest.mark.browser

# How many points of the map have exactly the colour of this gang.
POINTS = """(async () => {
  const { colourOf, isDark } = await import("/colours.js");
  const pen = new OffscreenCanvas(1, 1).getContext("2d");
  pen.fillStyle = colourOf(GANG, isDark());
  pen.fillRect(0, 0, 1, 1);
  const [r, g, b] = pen.getImageData(0, 0, 1, 1).data;
  const map = document.getElementById("map-canvas");
  const { data } = map.getContext("2d").getImageData(0, 0, map.width, map.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i] === r && data[i + 1] === g && data[i + 2] === b) count += 1;
  }
  return count;
})()"""


# Each queue with its numbers: gangs, waiting, pods, and devices where there are any.
QUEUES = """[...document.querySelectorAll("#queues tr")].map((row) => [
  row.querySelector("th").firstChild.data,
  ...[...row.querySelectorAll("td")].map((cell) => parseInt(cell.innerText, 10)),
].filter((each) => !Number.isNaN(each)))"""


def points(gang: str) -> str:
    return POINTS.replace("GANG", repr(gang))


def choose(gang: str) -> str:
    button = (
        f'document.querySelector(\'#gangs [data-gang="{gang}"], #waiting [data-gang="{gang}"]\')'
    )
    return f"({button}?.click(), Boolean({button}))"


async def test_the_map_is_live_and_shows_gpus_in_the_colour_of_their_gang(
    looking: Looking, cluster: Cluster, kubectl: Kubectl
) -> None:
    page, gang = looking.page, f"{cluster.namespace}/chat-0"
    await page.says("#tile-nodes", "32")
    assert await page.run(points(gang)) == 0
    kubectl.apply(engine_set("chat", pods=3, gpus=8))
    await page.says("#gangs", gang)
    await cluster.running("chat")
    await page.says("#gangs", "Running")
    squares = f"{points(gang)}.then((count) => count >= 24 * 25)"
    await page.until(squares, "24 squares in the gang's colour")
    (booked,) = await cluster.reservations()
    homes = {slot.node for _, slot, _ in booked.slots()}
    said = "document.getElementById('map-said').innerText"
    await page.run("document.getElementById('map').focus()")
    await page.press("Home")
    found = set()
    for _ in range(32):
        words = str(await page.run(said))
        if gang in words:
            found.add(words.partition(",")[0])
            assert f"8 of 8 GPUs used: 8 by {gang}" in words
        await page.press("ArrowRight")
    assert found == homes, "the map has the pods where they are"
    await looking.keep("map-light")
    kubectl.delete("chat")
    await page.until(f"{points(gang)}.then((count) => count === 0)", "its squares are free again")


async def test_a_gang_that_waits_is_shown_with_the_words_of_its_condition(
    looking: Looking, cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(engine_set("wide", pods=33, gpus=8))
    said = await cluster.gang("wide-0", reason=names.REASON_NEVER_FITS)
    card = f"#waiting [data-key='{cluster.namespace}/wide-0']"
    await looking.page.says(card, said.message)
    await looking.page.says(card, said.reason)
    await looking.page.says(card, "33 pods")
    await looking.page.until(choose(f"{cluster.namespace}/wide-0"), "it can be chosen")
    await looking.page.says("#gang-body", said.message)
    await looking.page.says("#gang-body", f"penstock explain {cluster.namespace}/wide-0")
    await looking.page.says("#gang-body .story", names.REASON_NEVER_FITS)
    await looking.keep("waiting-light")
    kubectl.delete("wide")
    await looking.page.until(f"!document.querySelector({card!r})", "it waits no more")


async def test_the_way_of_a_gang_is_shown_from_submission_to_bound(
    looking: Looking, cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(engine_set("way", pods=2, gpus=4))
    await cluster.running("way")
    gang = f"{cluster.namespace}/way-0"
    await looking.page.until(choose(gang), "it can be chosen")
    await looking.page.says("#gang-body .steps", "all pods bound")
    steps = await looking.page.run(
        "[...document.querySelectorAll('.steps strong')].map((each) => each.innerText)"
    )
    assert isinstance(steps, list)
    wanted = ["submitted", "gang made", "room reserved", "first pod bound", "all pods bound"]
    assert [each for each in steps if each in wanted] == wanted, steps
    pods = {pod.metadata.name: pod.spec.node_name for pod in await cluster.pods("way", 2)}
    for name, node in pods.items():
        await looking.page.says("#gang-body .pods", name)
        await looking.page.says("#gang-body .pods", f"on {node}")
    await looking.keep("gang-light")


async def test_a_refused_spec_is_shown_with_the_rule_it_broke(
    looking: Looking, cluster: Cluster, kubectl: Kubectl
) -> None:
    body = engine_set("bad", pods=1, gpus=8)
    spec = body["spec"]
    assert isinstance(spec, dict)
    refused: JsonObject = {**body, "spec": {**spec, "replicas": -1}}
    with pytest.raises(AssertionError, match=r"spec\.replicas"):
        kubectl.apply(refused)
    page = looking.page
    await page.says("#refused", f"PodCliqueSet {cluster.namespace}/bad")
    await page.says("#refused", "spec.replicas")
    assert await page.text("#refused code"), "the rule is named"
    await looking.keep("refused-light")


async def test_queues_are_shown_as_the_plugin_shows_them(
    looking: Looking, cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(engine_set("queued", pods=1, gpus=8))
    await cluster.running("queued")

    async def agreed() -> bool | None:
        found = await scene(cluster.client, SystemClock().now())
        lines = queueing.queued(found, judging.look(found).values())
        rows = await looking.page.run(QUEUES)
        assert isinstance(rows, list)
        told = {
            line.name: [len(line.gangs), len(line.waiting), line.pods, *line.devices.values()]
            for line in lines.values()
        }
        shown = {str(row[0]): row[1:] for row in rows if isinstance(row, list)}
        return True if told and shown == told else None

    await cluster.until(agreed, "the page and the plugin agree about queues")
