"""Bad input through the real API server: a refusal that names the field, never a fault of ours."""

import asyncio
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

import pytest

from api.jsons import JsonObject
from kube.resources import NAMESPACES, PODCLIQUESETS, TOPOLOGY_BINDINGS
from tests.cluster.rules import judging
from tests.cluster.rules.asking import DRY, Answer, Ask, Server, create, speaking
from tests.cluster.rules.manifests import BROAD, PLAIN, TEMPLATE, packed
from tests.cluster.rules.whole import FIELDS, whole
from tests.support import bad_input
from tests.support.bad_input import Bad
from tests.support.edits import at, edited, lost
from tests.support.installed import Installed

SPACE: Final = "bad-input"
STRICT: Final = {**DRY, "fieldValidation": "Strict"}


def without_labels(every: Iterator[Bad]) -> Iterator[Bad]:
    """Leave out what takes the API server ten seconds by itself, to note who owns which label."""
    return (bad for bad in every if "labels" not in bad.what)


# Of all combinations every third is asked, which leaves out no name, no field and no wrong type;
# the others are asked of a webhook without an API server before it.
EACH: Final = 3

GROUPS: Final[dict[str, Callable[[], Iterator[Bad]]]] = {
    "hostile names": lambda: islice(bad_input.hostile_names(PLAIN), 0, None, EACH),
    "odd texts": lambda: bad_input.odd_texts(PLAIN),
    "numbers": lambda: islice(bad_input.numbers(whole()), 0, None, EACH),
    "wrong types": lambda: islice(bad_input.wrong_types(whole(), FIELDS), 0, None, EACH),
    "a thousand levels": lambda: bad_input.deep(PLAIN, 1_000),
    "as deep as the API server reads": lambda: bad_input.deep(PLAIN, 9_900),
    "deeper than the API server reads": lambda: bad_input.deep(PLAIN, 11_000),
    "great sets": lambda: without_labels(bad_input.big(PLAIN)),
    "greedy sets": lambda: islice(without_labels(bad_input.greedy(PLAIN)), 0, None, EACH),
    "no json": lambda: bad_input.broken_json(PLAIN),
    "a field twice": lambda: bad_input.twice(PLAIN),
}


@pytest.fixture(scope="module")
def answers(installed: Installed) -> dict[str, list[tuple[Bad, Answer]]]:
    """The answers to all of them, by their sort."""
    return asyncio.run(_ask_all(installed))


async def _ask_all(installed: Installed) -> dict[str, list[tuple[Bad, Answer]]]:
    async with speaking(installed.lab.kubeconfig) as server:
        space: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
        await server.ask(Ask("POST", NAMESPACES.path(), space, query={}))
        await server.ask(Ask("POST", TOPOLOGY_BINDINGS.path(), judging.BINDINGS[0], query={}))
        near = edited(PLAIN, {f"{TEMPLATE}.topologyConstraint": packed("rack", topology=BROAD)})
        await server.until(create(PODCLIQUESETS, near, SPACE), "the binding known")
        try:
            return {group: await _asked(server, every()) for group, every in GROUPS.items()}
        finally:
            await server.ask(Ask("DELETE", TOPOLOGY_BINDINGS.path(name=BROAD), query={}))
            await server.ask(Ask("DELETE", NAMESPACES.path(name=SPACE), query={}))


async def _asked(server: Server, every: Iterator[Bad]) -> list[tuple[Bad, Answer]]:
    listed = list(every)
    path = PODCLIQUESETS.path(SPACE)
    asks = [server.ask(Ask("POST", path, bad.text, STRICT)) for bad in listed]
    return list(zip(listed, await asyncio.gather(*asks), strict=True))


def wrong(bad: Bad, answer: Answer) -> str:
    """What is wrong with the answer; empty if nothing is."""
    if answer.status >= 500:
        return f"{answer.status}: {answer.message}"
    if bad.taken:
        sent = judging.loaded(bad.text)
        return "" if answer.stored and not lost(sent, answer.body) else str(answer.message)
    if answer.stored:
        return "taken"
    # The API server adds the record of who owns which field, and so doubles what an object holds.
    said = bad.path in answer.message or "holds more than" in answer.message
    return "" if said else answer.message


@pytest.mark.cluster
@pytest.mark.parametrize("group", GROUPS)
def test_bad_sets_are_refused_with_the_field(
    answers: dict[str, list[tuple[Bad, Answer]]], group: str
) -> None:
    found = {bad.what: wrong(bad, answer) for bad, answer in answers[group]}
    assert {what: fault for what, fault in found.items() if fault} == {}


@pytest.mark.cluster
async def test_what_is_no_unicode_is_mended_by_the_api_server_and_stored_so(
    installed: Installed,
) -> None:
    async with speaking(installed.lab.kubeconfig) as server:
        for bad in bad_input.half_unicode(PLAIN):
            path = PODCLIQUESETS.path("default")
            answer = await server.ask(Ask("POST", path, bad.text, STRICT))
            assert answer.stored, answer.message
            assert set(str(at(answer.body, f"{bad_input.ARGUMENTS}[0]"))) == {"\ufffd"}


@pytest.mark.cluster
def test_no_refusal_writes_over_a_terminal(
    answers: dict[str, list[tuple[Bad, Answer]]],
) -> None:
    messages = [answer.message for every in answers.values() for _, answer in every]
    assert [m for m in messages if re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", m)] == []


@pytest.mark.cluster
async def test_unknown_fields_are_refused_or_warned_of_at_every_depth(
    installed: Installed,
) -> None:
    places = (
        "spec", TEMPLATE, f"{TEMPLATE}.cliques[0]", f"{TEMPLATE}.cliques[0].spec",
        f"{TEMPLATE}.cliques[0].spec.podSpec",
        f"{TEMPLATE}.cliques[0].spec.podSpec.containers[0]",
        f"{TEMPLATE}.cliques[0].spec.podSpec.containers[0].resources",
        f"{TEMPLATE}.cliques[0].spec.autoScalingConfig",
        f"{TEMPLATE}.cliques[0].spec.autoScalingConfig.metrics[0]",
        f"{TEMPLATE}.podCliqueScalingGroups[0]", f"{TEMPLATE}.topologyConstraint.pack",
        f"{TEMPLATE}.resourceClaimTemplates[0].templateSpec.spec.devices",
    )  # fmt: skip
    async with speaking(installed.lab.kubeconfig) as server:
        for place in places:
            path = f"{place}.misspelt"
            sent = edited(whole(), {path: 1, f"{TEMPLATE}.topologyConstraint.topologyName": "x"})
            strict = await server.ask(Ask("POST", PODCLIQUESETS.path("default"), sent, STRICT))
            assert not strict.stored
            assert path in strict.message
            warn = {**DRY, "fieldValidation": "Warn"}
            warned = await server.ask(Ask("POST", PODCLIQUESETS.path("default"), sent, warn))
            assert any(path in warning for warning in warned.warnings), warned
