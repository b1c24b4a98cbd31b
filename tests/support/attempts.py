"""An attempt to get more than one's rights, as a value, and how it is carried out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec
import pytest

from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import ApiError
from kube.resources import PODS
from kube.transport import JSON
from tests.support.tenants import MERGE_PATCH, Estate, Tenant

ONLY_LIFT: Final = "only an account with the verb lift on schedulinggates.penstock.dev"
ONLY_MAKERS: Final = "needs an account with the verb create on gangpods.penstock.dev"
BELONGING: Final = "cannot be changed on a pod that exists"
KEPT: Final = "cannot be changed on a pod of a gang"
PLACE: Final = "cannot be changed while the pod has the gate"
NO_RIGHT: Final = "cannot (get|create|patch|update|delete|impersonate) resource"


@dataclass(frozen=True)
class Ask:
    """One request of an attempt."""

    method: str
    path: str
    body: Json = None
    media: str = JSON
    query: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Seen:
    """The estate, and the gated pod as it is now."""

    estate: Estate
    pod: JsonObject

    def gated(self, sub: str | None = None) -> str:
        """Give the path of the pod that waits behind our gate, or of a part of it."""
        return self.estate.path(PODS, self.estate.gated, sub)

    def bound(self, sub: str | None = None) -> str:
        """Give the path of the pod that runs in a gang."""
        return self.estate.path(PODS, self.estate.bound, sub)

    def loose(self, sub: str | None = None) -> str:
        """Give the path of a pod that is in no gang and on no node."""
        return self.estate.path(PODS, self.estate.loose, sub)


@dataclass(frozen=True)
class Attempt:
    """Who tries what, and what the refusal of its last request must say.

    With nothing to say the requests may be answered in any way: nothing may come of them.
    """

    what: str
    tenants: tuple[str, ...]
    asks: Callable[[Seen], list[Ask]]
    says: str = ""


def each(*attempts: Attempt) -> pytest.MarkDecorator:
    """Parametrize a test by the attempts, each as every tenant who tries it."""
    return pytest.mark.parametrize(
        ("attempt", "tenant"),
        [
            pytest.param(attempt, tenant, id=f"{tenant} {attempt.what}")
            for attempt in attempts
            for tenant in attempt.tenants
        ],
    )


async def look(person: Client, estate: Estate, name: str) -> JsonObject:
    """Read a pod of the estate."""
    found: JsonObject = msgspec.json.decode(await person.raw_get(estate.path(PODS, name)))
    return found


async def carry_out(person: Client, estate: Estate, attempt: Attempt, tenant: str) -> None:
    """Make the attempt, and see that it is refused in the right words and changes nothing."""
    pods = (estate.gated, estate.bound, estate.loose)
    before = [await look(person, estate, name) for name in pods]
    async with estate.acting(tenant) as asking:
        *first, last = attempt.asks(Seen(estate, before[0]))
        for ask in first:
            await _send(asking, ask)
        if attempt.says:
            with pytest.raises(ApiError, match=attempt.says) as refused:
                await _send(asking, last)
            assert refused.value.status in {403, 409, 422}
        else:
            await _send(asking, last)
    after = [await look(person, estate, name) for name in pods]
    assert [_standing(pod) for pod in after] == [_standing(pod) for pod in before]


async def _send(asking: Tenant, ask: Ask) -> None:
    await asking.ask(ask.method, ask.path, ask.body, ask.media, **dict(ask.query))


STANDING: Final = (
    *(("metadata", key) for key in ("uid", "labels", "annotations")),
    *(("metadata", key) for key in ("ownerReferences", "finalizers")),
    *(("spec", key) for key in ("schedulingGates", "affinity", "nodeSelector", "tolerations")),
    ("spec", "nodeName"),
    ("status", "nominatedNodeName"),
)


def _standing(pod: JsonObject) -> list[Json]:
    """Give what decides where a pod goes and whose it is."""
    return [part(pod, *path) for path in STANDING]


def part(body: JsonObject, *path: str) -> Json:
    """Give what an object says at a path, or None."""
    found: Json = body
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    return found


def merge(path: str, body: Json) -> list[Ask]:
    """Change something by a merge patch."""
    return [Ask("PATCH", path, body, MERGE_PATCH)]


def labels(**words: str | None) -> JsonObject:
    """Write a patch of labels: `grove__pod_gang` stands for grove.io/pod-gang, `ours__` for us."""
    return {"metadata": {"labels": {_key(word): value for word, value in words.items()}}}


def _key(word: str) -> str:
    group, _, name = word.partition("__")
    host = {"grove": "grove.io", "ours": "penstock.dev", "app": "app.kubernetes.io"}[group]
    return f"{host}/{name.replace('_', '-')}"


def changed(body: JsonObject, *path: str, to: Json) -> JsonObject:
    """Give a copy of an object with one field written over."""
    first, *rest = path
    inner = body.get(first)
    if rest:
        value: Json = changed(inner if isinstance(inner, dict) else {}, *rest, to=to)
        return {**body, first: value}
    return {**body, first: to}
