"""Generated sets through the real API server: what admission takes is stored as it was sent.

Each set is asked about as a dry run with strict fields. `PENSTOCK_EXAMPLES=1000` asks about a
thousand of each sort, new ones every time, and makes a failing one smaller; without it there are
a few, the same every time.
"""

import asyncio
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings

from api.jsons import Json, JsonObject
from kube.resources import NAMESPACES, PODCLIQUESETS, TOPOLOGY_BINDINGS
from tests.cluster.rules import judging
from tests.cluster.rules.asking import DRY, Answer, Ask, Server, create, speaking
from tests.cluster.rules.manifests import BROAD, LEVELS, OTHER, PLAIN, TEMPLATE, packed
from tests.support.edits import at, edited, lost
from tests.support.generated_sets import Broken, broken, podcliquesets, shaken
from tests.support.installed import Installed

pytestmark = pytest.mark.cluster

SPACE: Final = "generated"
BINDINGS: Final = {BROAD: LEVELS, OTHER: LEVELS}
STRICT: Final = {**DRY, "fieldValidation": "Strict"}

FEW: Final = 25
MORE: Final = int(os.environ.get("PENSTOCK_EXAMPLES", "0"))
asked = settings(
    max_examples=MORE or FEW,
    derandomize=not MORE,
    # Making a failing set smaller asks the API server a thousand times more.
    phases=[Phase.generate, Phase.shrink] if MORE else [Phase.generate],
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

# What the definition fills in by itself, beyond the patch.
DEFAULTS: Final = re.compile(
    r"^(status|spec\.replicas|spec\.updateStrategy\.type|spec\.template\.cliqueStartupType"
    r"|spec\.template\.podCliqueScalingGroups\[\d+\]\.(replicas|minAvailable)"
    r"|spec\.template\.cliques\[\d+\]\.spec\.replicas"
    r"|spec\.template\.cliques\[\d+\]\.spec\.podSpec\..*\.(protocol|name))$"
)
# What only the API server can know of: the schema of pods, claims and metrics, fields there are
# not, and what it decodes before it asks anybody.
ONLY_THE_SERVERS: Final = re.compile(
    r"podSpec|templateSpec|metrics|unknown field|strict decoding error|cannot unmarshal|metadata"
)


@dataclass(frozen=True)
class Asked:
    """The API server, asked one thing at a time by tests that are not asynchronous."""

    runner: asyncio.Runner
    server: Server

    def about(self, body: JsonObject) -> Answer:
        """Tell what would become of a new set."""
        ask = create(PODCLIQUESETS, body, SPACE)
        return self.runner.run(self.server.ask(Ask(ask.method, ask.path, body, STRICT)))


@pytest.fixture(scope="module")
def api(installed: Installed) -> Iterator[Asked]:
    """The session's lab, with two topology bindings and a namespace."""
    with asyncio.Runner() as runner:
        speaker = speaking(installed.lab.kubeconfig)
        server = runner.run(speaker.__aenter__())
        runner.run(_prepare(server))
        yield Asked(runner, server)
        runner.run(_clean(server))
        runner.run(speaker.__aexit__(None, None, None))


async def _prepare(server: Server) -> None:
    space: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    await server.ask(Ask("POST", NAMESPACES.path(), space, query={}))
    for made in judging.BINDINGS:
        await server.ask(Ask("POST", TOPOLOGY_BINDINGS.path(), made, query={}))
    for name in BINDINGS:
        near = edited(PLAIN, {f"{TEMPLATE}.topologyConstraint": packed("rack", topology=name)})
        await server.until(create(PODCLIQUESETS, near, SPACE), f"binding {name} known")


async def _clean(server: Server) -> None:
    for name in BINDINGS:
        await server.ask(Ask("DELETE", TOPOLOGY_BINDINGS.path(name=name), query={}))
    await server.ask(Ask("DELETE", NAMESPACES.path(name=SPACE), query={}))


def nothing_lost_or_added(expected: JsonObject, answer: Answer) -> None:
    """Hold what would be stored against what was sent and our patch."""
    assert answer.stored, answer.message
    # Of an object's own labels and annotations none is the same as an empty map of them.
    assert [path for path in lost(expected, answer.body) if at(expected, path) != {}] == []
    added = lost(answer.body["spec"], expected["spec"], "spec")
    assert [path for path in added if not DEFAULTS.match(path)] == []


def without_nulls(found: Json) -> Json:
    """The value without fields of nothing, as the API server hands it on."""
    if isinstance(found, dict):
        return {key: without_nulls(value) for key, value in found.items() if value is not None}
    return [*map(without_nulls, found)] if isinstance(found, list) else found


@asked
@given(body=podcliquesets(BINDINGS))
def test_a_valid_set_is_stored_as_it_was_sent_and_filled_in(api: Asked, body: JsonObject) -> None:
    ours = judging.judged(body)
    assert ours.stored, ours.message
    nothing_lost_or_added(ours.body, api.about(body))


@asked
@given(fault=broken(BINDINGS))
def test_a_set_with_a_fault_is_refused_and_says_where(api: Asked, fault: Broken) -> None:
    note(fault.how)
    answer = api.about(fault.body)
    assert 400 <= answer.status < 500, answer
    assert re.search(r"(spec|metadata)[.\[\w]", answer.message), answer.message
    if fault.by_rules:
        assert not judging.judged(fault.body).stored


@asked
@given(body=shaken(BINDINGS))
def test_the_rules_and_the_api_server_agree_about_any_set(api: Asked, body: JsonObject) -> None:
    # Fields of nothing are taken out before anybody is asked.
    ours = judging.judged({**body, "spec": without_nulls(body.get("spec"))})
    answer = api.about(body)
    if answer.stored:
        assert ours.stored, ours.message
        nothing_lost_or_added(ours.body, answer)
    else:
        assert 400 <= answer.status < 500, answer
        assert not ours.stored or ONLY_THE_SERVERS.search(answer.message), answer.message
