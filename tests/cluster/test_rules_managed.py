"""Who may change what was made for a set, and how far /scale goes, through the real API server."""

import asyncio
from collections.abc import Iterable
from typing import Final

import pytest

from api import names
from api.jsons import JsonObject
from kube.resources import NAMESPACES, PODCLIQUESETS
from tests.cluster.rules.asking import DRY, Answer, Ask, Server, speaking
from tests.cluster.rules.managing import (
    FREE,
    KEEPER,
    KEPT,
    MANAGED,
    MANAGED_ROWS,
    SCALED,
    Managed,
    Scaled,
    touched,
)
from tests.cluster.rules.manifests import PLAIN
from tests.support.edits import edited
from tests.support.installed import Installed

SPACE: Final = "rules-managed"
CASES: Final[tuple[Managed | Scaled, ...]] = (*MANAGED, *SCALED)
# What nobody else may make.
KEEPERS: Final = {"PodClique", "PodCliqueScalingGroup", "PodGang"}
MERGE: Final = "application/merge-patch+json"


@pytest.fixture(scope="module")
def answers(installed: Installed) -> dict[str, Answer]:
    """The answer to every case, by its id."""
    return asyncio.run(_ask_all(installed))


async def _ask_all(installed: Installed) -> dict[str, Answer]:
    async with speaking(installed.lab.kubeconfig) as server:
        space: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
        await _make(server, NAMESPACES.path(), space)
        try:
            await _prepare(server)
            found = await asyncio.gather(*(server.ask(_question(case)) for case in CASES))
            return dict(zip((case.id for case in CASES), found, strict=True))
        finally:
            await server.ask(Ask("DELETE", NAMESPACES.path(name=SPACE), query={}))


async def _prepare(server: Server) -> None:
    """Store what the cases change, and wait until the webhook has heard of the sets."""
    leave = {f"metadata.annotations[{names.UNPROTECTED_ANNOTATION}]": "true"}
    for name, more in ((KEPT, {}), (FREE, leave)):
        # Nobody makes anything for them, since they have no replicas.
        body = edited(PLAIN, {"metadata.name": name, "spec.replicas": 0, **more})
        await _make(server, PODCLIQUESETS.path(SPACE), body)
    stored = {
        (case.resource.path(SPACE), str(case.body()["metadata"])): case.body()
        for case in CASES
        if isinstance(case, Scaled) or case.verb != "create"
    }
    await asyncio.gather(*(_make(server, path, body) for (path, _), body in stored.items()))
    await _heard(server, [case for case in MANAGED if case.parent in (KEPT, FREE)])


async def _heard(server: Server, cases: Iterable[Managed]) -> None:
    """Until it has, the webhook warns of sets there are not."""
    asked = [case for case in cases if case.verb == "update" and case.user != KEEPER]
    for case in asked:
        for _ in range(200):
            answer = await server.ask(_question(case))
            if not any("no PodCliqueSet" in warning for warning in answer.warnings):
                break
            await asyncio.sleep(0.05)


async def _make(server: Server, path: str, body: JsonObject) -> None:
    # Guards let the keeper make hardly anything that the person could not.
    user = KEEPER if body["kind"] in KEEPERS else ""
    answer = await server.ask(Ask("POST", path, body, query={}, user=user))
    assert answer.stored, answer.message


def _question(case: Managed | Scaled) -> Ask:
    if isinstance(case, Scaled):
        path = case.resource.path(SPACE, "scaled", "scale")
        return Ask("PATCH", path, {"spec": {"replicas": case.replicas}}, DRY, MERGE)
    path = case.resource.path(SPACE, case.name)
    match case.verb:
        case "create":
            # Under another name, since some are stored already.
            body = edited(case.body(), {"metadata.name": "another"})
            return Ask("POST", case.resource.path(SPACE), body, user=case.user)
        case "update":
            return Ask("PATCH", path, touched(), DRY, MERGE, case.user)
        case _:
            options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]}
            return Ask("DELETE", path, options, {}, user=case.user)


@pytest.mark.cluster
@pytest.mark.parametrize("case", MANAGED, ids=lambda case: case.id)
def test_managed(case: Managed, answers: dict[str, Answer]) -> None:
    answer = answers[case.id]
    if case.allowed:
        assert answer.stored, answer.message
        assert bool(answer.warnings) is case.warned
    else:
        assert answer.status == 403
        # Whose it is, and the way out.
        assert f"PodCliqueSet {KEPT}" in answer.message
        assert names.UNPROTECTED_ANNOTATION in answer.message


@pytest.mark.cluster
@pytest.mark.parametrize("case", SCALED, ids=lambda case: case.id)
def test_scaled(case: Scaled, answers: dict[str, Answer]) -> None:
    answer = answers[case.id]
    if case.allowed:
        assert answer.stored, answer.message
        assert answer.body["spec"] == ({"replicas": case.replicas} if case.replicas else {})
    else:
        assert answer.status == 422, answer.message
        assert "replicas" in answer.message


def test_every_managed_resource_is_tried_by_its_keeper_and_by_a_person() -> None:
    seen = {(case.rule, case.allowed) for case in MANAGED}
    assert seen == {(row, allowed) for row in MANAGED_ROWS for allowed in (True, False)}
    assert len(MANAGED_ROWS) == 14
    assert {case.allowed for case in SCALED} == {True, False}


def test_no_two_cases_are_called_alike() -> None:
    ids = [case.id for case in CASES]
    assert sorted(ids) == sorted({*ids})
