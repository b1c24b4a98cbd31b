"""Every rule of admission through the real API server, by its number in policies/rulebook.py.

The tables are in tests/cluster/rules. All cases are asked at once, as dry runs, when the first
test needs an answer; each test then looks at its own.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

import pytest

from api.jsons import JsonObject
from kube.resources import NAMESPACES, PODCLIQUESETS, TOPOLOGY_BINDINGS
from policies import rulebook
from tests.cluster.rules import (
    binding,
    creating,
    creating_more,
    defaulting,
    inherited,
    judging,
    otherwise,
    own,
    placing,
    stances,
    updating,
)
from tests.cluster.rules.asking import Answer, Ask, Server, create, replace, speaking
from tests.cluster.rules.cases import Case, Refused, Stored
from tests.cluster.rules.manifests import BROAD, OTHER, PLAIN, SPACE, TEMPLATE, packed
from tests.support.edits import edited
from tests.support.installed import Installed
from tests.webhook.running import Running

TABLES: Final = (defaulting, creating, creating_more, placing, updating, binding, stances, own)
CASES: Final = tuple(case for table in TABLES for case in table.CASES)
ROWS: Final = tuple(row for table in TABLES for row in table.ROWS)
CREATE: Final[Mapping[str, str]] = {}

lab_only = pytest.mark.cluster


@pytest.fixture(scope="module")
def answers(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """The answer to every case, by its id."""
    with otherwise.governed(tmp_path_factory.mktemp("otherwise"), placing.OTHERWISE) as second:
        return asyncio.run(_ask_all(installed, second))


async def _ask_all(installed: Installed, second: Running) -> dict[str, Answer]:
    async with speaking(installed.lab.kubeconfig) as server:
        await _prepare(server)
        try:
            async with otherwise.asked_instead(server, second):
                return await _answers(server)
        finally:
            for name in (BROAD, OTHER):
                await server.ask(Ask("DELETE", TOPOLOGY_BINDINGS.path(name=name), query=CREATE))
            await server.ask(Ask("DELETE", NAMESPACES.path(name=SPACE), query=CREATE))
            await inherited.remove(server)


async def _prepare(server: Server) -> None:
    """Make what the cases speak of, and wait until the webhook knows it."""
    space: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    await _really(server, NAMESPACES.path(), space)
    for made in judging.BINDINGS:
        await _really(server, TOPOLOGY_BINDINGS.path(), made)
    for name in (BROAD, OTHER):
        near = edited(PLAIN, {f"{TEMPLATE}.topologyConstraint": packed("rack", topology=name)})
        await server.until(create(PODCLIQUESETS, near, SPACE), f"binding {name} known")
    await server.until(
        create(PODCLIQUESETS, own.LARGEST, SPACE),
        "the room of the largest node known",
        lambda answer: bool(answer.warnings),
    )


async def _really(server: Server, path: str, body: JsonObject) -> None:
    answer = await server.ask(Ask("POST", path, body, query=CREATE))
    assert answer.stored, answer.message


async def _answers(server: Server) -> dict[str, Answer]:
    stored = await _stored(server)

    async def answer(case: Case) -> Answer:
        bound = case.sent["kind"] == "ClusterTopologyBinding"
        resource, space = (TOPOLOGY_BINDINGS, None) if bound else (PODCLIQUESETS, _space(case))
        if case.before is None:
            return await server.ask(create(resource, case.sent, space))
        return await server.ask(replace(resource, stored[repr(case.before)], case.sent, space))

    found = await asyncio.gather(*map(answer, CASES))
    return dict(zip((case.id for case in CASES), found, strict=True))


def _space(case: Case) -> str:
    if not case.storable:
        return inherited.SPACE
    return otherwise.SPACE if case.policy == placing.OTHERWISE else SPACE


async def _stored(server: Server) -> dict[str, str]:
    """Store every object that some case changes, once, and give the names they have."""
    kept = {repr(case.before): case.before for case in CASES if case.before and case.storable}
    old = {repr(case.before): case.before for case in CASES if case.before and not case.storable}
    called = {key: f"o{i}" for i, key in enumerate(old)}
    await inherited.store(server, {called[key]: before for key, before in old.items()})
    for i, (key, before) in enumerate(kept.items()):
        if before["kind"] == "ClusterTopologyBinding":
            called[key] = BROAD
            continue
        # Nobody makes pods for it, since it has no replicas.
        called[key] = f"s{i}"
        body = edited(before, {"metadata.name": called[key], "spec.replicas": 0})
        await _really(server, PODCLIQUESETS.path(SPACE), body)
    return called


@lab_only
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_rule(case: Case, answers: dict[str, Answer], installed: Installed) -> None:
    assert judging.wrong(case, answers[case.id]) == []


def test_every_rule_has_a_manifest_that_is_stored_and_one_that_is_refused() -> None:
    seen = {(case.rule, type(case.then)) for case in CASES}
    # What is filled in where something is missing refuses nothing, and some only warn.
    silent = ("2.5.5", *own.WARNING)
    refusing = [row for row in ROWS if not row.startswith("2.2.") and row not in silent]
    assert [row for row in ROWS if (row, Stored) not in seen] == []
    assert [row for row in refusing if (row, Refused) not in seen] == []


def test_no_rule_is_lost_together_with_its_table() -> None:
    sections = [row.split(".")[1] if row[0] == "2" else row for row in ROWS]
    sections = ["own" if row.startswith("own") else row for row in sections]
    counted = {section: sections.count(section) for section in sections}
    assert counted == {
        "2": 11, "3": 19, "4": 1, "5": 6, "6": 3, "7": 28, "8": 4,
        "1.2": 1, "1.6": 1, "12.2": 1, "12.3": 1, "12.14": 1, "own": 13,
    }  # fmt: skip
    assert {case.rule for case in CASES} == {*ROWS}


def test_every_rule_that_is_written_is_tried() -> None:
    assert {*rulebook.RULEBOOK} <= {*ROWS}


def test_no_two_cases_are_called_alike() -> None:
    ids = [case.id for case in CASES]
    assert sorted(ids) == sorted({*ids})
