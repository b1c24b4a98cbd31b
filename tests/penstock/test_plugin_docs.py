"""What the page about the plugin shows is what the plugin shows."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from api import exits
from penstock.ending import INTERRUPTED
from penstock.piping import LEFT
from penstock.plugin import (
    explaining,
    judging,
    keeping,
    planning,
    queueing,
    status,
    supposing,
    topology,
)
from penstock.plugin.asking import Nodes
from penstock.plugin.reports import Report
from penstock.plugin.scenes import KINDS, Scene
from policies.policy import Policy
from tests.repo import checkout, prose
from tests.support.clusters import racks
from tests.support.scenes import Stage, custom, gang, shown

PAGE = prose.read(checkout.ROOT / "docs" / "plugin.md")
WIDTH = 118
RACK = "topology.kubernetes.io/rack"
BLOCK = "topology.kubernetes.io/block"
POLICY = Policy.model_validate(
    {
        "queues": [
            {"name": "serving", "namespaces": ["default"], "default": True},
            {"name": "research", "namespaces": ["*"], "limits": {"gpusPerGang": 64}},
        ]
    }
)
KEEP = custom(
    {
        "metadata": {
            "name": "tonight", "namespace": "default", "uid": "u",
            "creationTimestamp": "2026-01-02T03:00:00Z",
        },
        "spec": {
            "owners": [{"object": {"kind": "PodCliqueSet", "name": "nightly"}}],
            "replicas": 1, "requests": {"nvidia.com/gpu": "4"}, "ttl": "12h",
        },
        "status": {
            "state": "Available", "requests": {"nvidia.com/gpu": "4", "pods": "1"},
            "slots": [{"index": 0, "node": "n-0-1-1-2"}],
            "kept": {"nvidia.com/gpu": "4", "pods": "1"},
        },
    }
)  # fmt: skip

Ask = Callable[[Scene], Awaitable[Report]]
EXAMPLE = checkout.ROOT / "examples" / "disaggregated.yaml"
ASKED: dict[str, Ask] = {
    "status": lambda scene: status.report(scene, "default"),
    "explain wide": lambda scene: explaining.report(scene, "default", gang="wide"),
    "plan -f examples/disaggregated.yaml": lambda scene: planning.report(
        scene, "default", paths=[EXAMPLE]
    ),
    "what-if drain n-0-0-0-0": lambda scene: supposing.report(
        scene, "default", drain=("n-0-0-0-0",)
    ),
    f"what-if add-nodes 2 --like n-0-1-0-0 --label {RACK}=z0-b1-r1": lambda scene: supposing.report(
        scene, "default", add=Nodes("n-0-1-0-0", 2, {RACK: "z0-b1-r1"})
    ),
    "what-if delete search": lambda scene: supposing.report(scene, "default", delete="search"),
    "topology": lambda scene: topology.report(scene, "default"),
    "queues": lambda scene: queueing.report(scene, "default"),
    "reservations": lambda scene: keeping.report(scene, "default"),
}


async def scene() -> Scene:
    """Two blocks of two racks with three nodes each; two gangs run, and one waits."""
    search = gang("search", 2, 8, at=["n-0-0-0-0", "n-0-0-0-1"], level=RACK)
    train = gang(
        "train", 3, 8, at=["n-0-1-0-0", "n-0-1-0-1", "n-0-1-0-2"],
        labels={"penstock.dev/queue": "research"},
    )  # fmt: skip
    stage = Stage(racks(1, 2, 2, 3), reservations=[KEEP])
    found = await stage.beside(search, train, gang("wide", 5, 8, level=BLOCK)).scene()
    return replace(found, policy=POLICY)


def examples() -> dict[str, str]:
    found = {}
    for language, content in prose.fences(PAGE):
        line, _, rest = content.partition("\n")
        if language == "text" and line.startswith("$ kubectl penstock "):
            found[line.removeprefix("$ kubectl penstock ")] = rest.rstrip("\n")
    return found


@pytest.mark.parametrize("line", ASKED)
async def test_what_is_shown_is_what_is_answered(line: str) -> None:
    assert examples()[line] == shown(await ASKED[line](await scene()), width=WIDTH)


def test_every_example_is_tried() -> None:
    assert examples().keys() == ASKED.keys()


def test_every_code_is_told() -> None:
    table = prose.rows(prose.section(PAGE, "### Exit codes"))
    assert {int(row[0]) for row in table} == {
        exits.OK, exits.UNEXPECTED, exits.BAD_SETTINGS, exits.NO_API_SERVER,
        exits.BAD_CREDENTIALS, exits.MISSING_KIND, judging.NOT_FOUND, planning.WAITS,
        planning.REFUSED, INTERRUPTED, LEFT,
    }  # fmt: skip


def test_every_right_is_told() -> None:
    table = prose.rows(prose.section(PAGE, "### Rights"))
    told = {
        (row[0].strip("`").replace("core", ""), plural)
        for row in table
        if "list" in row[2]
        for plural in re.findall(r"`([a-z]+)`", row[1])
    }
    assert told == {(kind.group, kind.plural) for kind in KINDS}
