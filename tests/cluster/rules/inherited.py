"""Sets that only an API server from before an upgrade would have stored, stored all the same."""

from collections.abc import Mapping
from typing import Final

from api.jsons import Json, JsonObject
from kube.resources import (
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PODCLIQUESETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from tests.cluster.rules.asking import JSON_PATCH, Ask, Server, create
from tests.cluster.rules.otherwise import select
from tests.support.edits import at, edited

SPACE: Final = "rules-inherited"
_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
_DEFINITION: Final = _DEFINITIONS.path(name=PODCLIQUESETS.full_name)
_RULES: Final = "spec.versions[0].schema.openAPIV3Schema.x-kubernetes-validations"
_POINTER: Final = "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations"
# The mutating one is asked first, so what it refuses shows that both are back.
_WEBHOOKS: Final = (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)


async def store(server: Server, sets: Mapping[str, JsonObject]) -> None:
    """Store sets under these names while the definition has no rules and no webhook is asked."""
    if not sets:
        return
    space: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    await server.ask(Ask("POST", NAMESPACES.path(), space, query={}))
    rules = at((await server.ask(Ask("GET", _DEFINITION, query={}))).body, _RULES)
    assert isinstance(rules, list)
    fresh = create(PODCLIQUESETS, next(iter(sets.values())), SPACE)
    for resource in _WEBHOOKS:
        await select(server, resource, SPACE, excluded=True)
    try:
        await _patch(server, {"op": "remove", "path": _POINTER})
        try:
            await server.until(fresh, "neither rules nor webhooks")
            for name, body in sets.items():
                # Nobody makes pods for it, since it has no replicas.
                kept = edited(body, {"metadata.name": name, "spec.replicas": 0})
                answer = await server.ask(Ask("POST", PODCLIQUESETS.path(SPACE), kept, query={}))
                assert answer.stored, answer.message
        finally:
            await _patch(server, {"op": "add", "path": _POINTER, "value": rules})
        await server.until(fresh, "the definition's rules back", lambda answer: not answer.stored)
    finally:
        for resource in _WEBHOOKS:
            await select(server, resource, SPACE, excluded=False)
    await server.until(
        fresh, "webhooks asked again", lambda answer: "admission webhook" in answer.message
    )


async def remove(server: Server) -> None:
    """Take the namespace of such sets away."""
    await server.ask(Ask("DELETE", NAMESPACES.path(name=SPACE), query={}))


async def _patch(server: Server, operation: JsonObject) -> None:
    patch: list[Json] = [operation]
    answer = await server.ask(Ask("PATCH", _DEFINITION, patch, {}, JSON_PATCH))
    assert answer.stored, answer.message
