"""A second webhook, of another policy, that the API server asks about the sets of one namespace."""

import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from api import names
from api.jsons import Json, JsonObject
from kube.resources import (
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PODCLIQUESETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from policies.policy import Policy
from tests.cluster.rules.asking import JSON_PATCH, Ask, Server, create
from tests.cluster.rules.manifests import PLAIN
from tests.support.edits import at, edited
from tests.webhook.running import HOST, Running, files_in, serving

SPACE: Final = "rules-otherwise"
_SETS: Final = "podcliquesets.penstock.dev"
_PATHS: Final = {
    MUTATING_WEBHOOKS: "/default/podcliquesets",
    VALIDATING_WEBHOOKS: "/validate/podcliquesets",
}


@contextmanager
def governed(folder: Path, policy: Policy) -> Iterator[Running]:
    """Run a webhook that decides by this policy."""
    written = folder / "policy.yaml"
    written.write_text(policy.model_dump_json(by_alias=True))
    files = files_in(folder / "tls")
    files.issue()
    with serving(files, folder / "log", "--policy-file", str(written)) as running:
        yield running


@asynccontextmanager
async def asked_instead(server: Server, running: Running) -> AsyncIterator[None]:
    """Have sets of the namespace judged by that webhook, and by no other, for the while."""
    space: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    await server.ask(Ask("POST", NAMESPACES.path(), space, query={}))
    for resource, path in _PATHS.items():
        await select(server, resource, SPACE, excluded=True)
        body = _configuration(resource, running, path)
        answer = await server.ask(Ask("POST", resource.path(), body, query={}))
        assert answer.stored, answer.message
    # No webhook but that one takes a fabric, so that one taken shows who was asked.
    fabric = edited(PLAIN, {f"metadata.annotations[{names.MNNVL_ANNOTATION}]": "fabric"})
    await server.until(create(PODCLIQUESETS, fabric, SPACE), "the other webhook asked")
    try:
        yield
    finally:
        for resource in _PATHS:
            await server.ask(Ask("DELETE", resource.path(name=SPACE), query={}))
            await select(server, resource, SPACE, excluded=False)
        await server.ask(Ask("DELETE", NAMESPACES.path(name=SPACE), query={}))


async def select(server: Server, resource: Resource, space: str, *, excluded: bool) -> None:
    """Take a namespace's sets from Penstock's own webhook, or give them back."""
    path = resource.path(name=names.WEBHOOK_CONFIGURATION)
    found = await server.ask(Ask("GET", path, query={}))
    webhooks = at(found.body, "webhooks")
    assert isinstance(webhooks, list)
    (index,) = [i for i, webhook in enumerate(webhooks) if at(webhook, "name") == _SETS]
    values = at(webhooks[index], "namespaceSelector.matchExpressions[0].values")
    assert isinstance(values, list)
    others: list[Json] = [value for value in values if value != space]
    where = f"/webhooks/{index}/namespaceSelector/matchExpressions/0/values"
    wanted = [*others, space] if excluded else others
    patch: list[Json] = [{"op": "replace", "path": where, "value": wanted}]
    answer = await server.ask(Ask("PATCH", path, patch, {}, JSON_PATCH))
    assert answer.stored, answer.message


def _configuration(resource: Resource, running: Running, path: str) -> JsonObject:
    bundle = base64.b64encode(running.files.authority.certificate_pem).decode()
    rule: JsonObject = {
        "apiGroups": [names.GROVE_GROUP],
        "apiVersions": [names.GROVE_VERSION],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["podcliquesets"],
    }
    webhook: JsonObject = {
        "name": "sets.otherwise.example",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": f"https://{HOST}:{running.port}{path}", "caBundle": bundle},
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SPACE}},
    }
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": SPACE},
        "webhooks": [webhook],
    }
