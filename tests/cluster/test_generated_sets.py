"""Generated sets through the real API server: what admission takes is stored as it was sent.

Each set is asked about as a dry run with strict fields. `PENSTOCK_EXAMPLES=1000` asks about a
thousand of each sort, new ones every time, and makes a failing one smaller; without it there are
a few, the same every time.
"""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings

from api import names
from api.jsons import Json, JsonObject
from controller.workloads.expansion import expand
from kube.resources import NAMESPACES, PODCLIQUESETS, PODS, TOPOLOGY_BINDINGS, Resource
from tests.cluster.rules import judging
from tests.cluster.rules.asking import DRY, Answer, Ask, Server, create, speaking
from tests.cluster.rules.manifests import BROAD, LEVELS, OTHER, PLAIN, TEMPLATE, packed
from tests.support.edits import at, edited, lost
from tests.support.generated_sets import Broken, broken, podcliquesets, shaken
from tests.support.installed import Installed
from tests.support.worlds import admitted

pytestmark = pytest.mark.cluster

SPACE: Final = "generated"
BINDINGS: Final = {BROAD: LEVELS, OTHER: LEVELS}
STRICT: Final = {**DRY, "fieldValidation": "Strict"}

FEW: Final = 12
MORE: Final = int(os.environ.get("PENSTOCK_EXAMPLES", "0"))
WORKLOADS: Final = f"system:serviceaccount:{names.NAMESPACE}:{names.WORKLOADS_ACCOUNT}"
CLAIM: Final[JsonObject] = {"spec": {"spec": {"devices": {"requests": [
    {"name": "link", "exactly": {"deviceClassName": "links"}}
]}}}}  # fmt: skip
# The one that generated sets and pods name.
HIGH: Final[JsonObject] = {
    "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"},
    "value": 1000,
}  # fmt: skip
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
asked = settings(
    max_examples=MORE or FEW,
    derandomize=not MORE,
    # Making a failing set smaller asks the API server a thousand times more.
    phases=[Phase.generate, Phase.shrink] if MORE else [Phase.generate],
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

few = settings(asked, max_examples=MORE or 2)

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

    def of(self, resource: Resource, body: JsonObject, user: str = "") -> Answer:
        """Tell what would become of a new object that somebody makes."""
        groups = ("system:serviceaccounts", "system:authenticated")
        path = resource.path(SPACE)
        return self.runner.run(
            self.server.ask(Ask("POST", path, body, STRICT, user=user, groups=groups))
        )


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
    await server.ask(Ask("POST", CLASSES, HIGH, query={}))
    for made in judging.BINDINGS:
        await server.ask(Ask("POST", TOPOLOGY_BINDINGS.path(), made, query={}))
    for name in BINDINGS:
        near = edited(PLAIN, {f"{TEMPLATE}.topologyConstraint": packed("rack", topology=name)})
        await server.until(create(PODCLIQUESETS, near, SPACE), f"binding {name} known")


async def _clean(server: Server) -> None:
    for name in BINDINGS:
        await server.ask(Ask("DELETE", TOPOLOGY_BINDINGS.path(name=name), query={}))
    await server.ask(Ask("DELETE", NAMESPACES.path(name=SPACE), query={}))
    await server.ask(Ask("DELETE", f"{CLASSES}/high", query={}))


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


@few
@given(body=podcliquesets(BINDINGS))
def test_what_is_made_of_a_valid_set_is_taken_as_well(api: Asked, body: JsonObject) -> None:
    all_made_is_taken(api, body)


@pytest.mark.long
@settings(few, max_examples=100, derandomize=False)
@given(body=podcliquesets(BINDINGS))
def test_what_is_made_of_a_hundred_valid_sets_is_taken_as_well(
    api: Asked, body: JsonObject
) -> None:
    all_made_is_taken(api, body)


def all_made_is_taken(api: Asked, body: JsonObject) -> None:
    """Ask about each object that `workloads` makes of a set, as `workloads`.

    A pod is to be taken if a bare one of the same podSpec would be.
    """
    stored = judging.judged(body)
    assert stored.stored, stored.message
    world = admitted(stored.body, CLAIM)
    made = world.settle()
    view = world.view()
    assert view is not None
    roles = {name: clique.template for name, clique in expand(view).cliques.items()}
    asked_about: Counter[tuple[str, str]] = Counter()
    bare: dict[str, bool] = {}
    for step in made:
        planned = cast("JsonObject", in_space(step.body))
        clique = str(at(planned, f"metadata.labels[{names.PODCLIQUE_LABEL}]"))
        role = roles[clique].name if step.resource is PODS else ""
        asked_about[step.resource.plural, role] += 1
        if asked_about[step.resource.plural, role] > (1 if role else 6):
            continue
        if role and role not in bare:
            alone: JsonObject = {
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"},
                "spec": roles[clique].spec.pod_spec,
            }  # fmt: skip
            bare[role] = api.of(PODS, alone).stored
        if bare.get(role, True):
            answer = api.of(step.resource, planned, WORKLOADS)
            assert answer.stored, f"{step.resource.kind}: {answer.message}"


def in_space(found: Json) -> Json:
    """The same object in the test's namespace."""
    if isinstance(found, dict):
        return {
            key: SPACE if key == "namespace" and value == "default" else in_space(value)
            for key, value in found.items()
        }
    return [*map(in_space, found)] if isinstance(found, list) else found


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
