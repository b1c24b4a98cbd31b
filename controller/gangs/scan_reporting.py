"""Writes what a scan came to as reports, one a namespace, in each kind of report that is served."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import msgspec
import orjson

from api import names
from api.jsons import JsonObject
from controller.gangs import scan_results
from controller.gangs.scan_results import Tally
from kube.client import Client, Deletion, Scope
from kube.errors import AlreadyExists, Forbidden, NotFound
from kube.objects import LabelledMeta, LabelledObject
from kube.resources import Resource

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Reported:
    """A report as it is stored."""

    meta: LabelledMeta
    raw: JsonObject

    @property
    def is_ours(self) -> bool:
        name, by = self.meta.name, self.meta.labels.get(names.MANAGED_BY_LABEL)
        return (name, by) == (names.POLICY_REPORT, names.REPORTED_BY)


class Reporter:
    """Writes reports; each write stands for itself."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def report(self, tally: Tally) -> None:
        """Write the reports that differ, and take ours away where nothing is broken any more."""
        for kind in scan_results.KINDS:
            await self._of_kind(kind, scan_results.reports(tally, kind))

    async def _of_kind(self, kind: Resource, wanted: Mapping[str, JsonObject]) -> None:
        scope = Scope(fields=f"metadata.name={names.POLICY_REPORT}")
        try:
            listed = await self._client.list_with(kind, _reported, scope)
        except (NotFound, Forbidden):
            return  # nobody reads such reports here
        there = {each.meta.namespace: each for each in listed.items}
        for namespace in sorted(wanted.keys() | there.keys()):
            try:
                await self._in(kind, namespace, there.get(namespace), wanted.get(namespace))
            except (AlreadyExists, NotFound, Forbidden) as error:
                # Another's, or its namespace goes: reports of others do not wait for it.
                _log.info("no %s in namespace %s this time: %s", kind.kind, namespace, error)

    async def _in(
        self, kind: Resource, namespace: str, there: _Reported | None, wanted: JsonObject | None
    ) -> None:
        name = names.POLICY_REPORT
        if there is not None and not there.is_ours:
            _log.warning("the %s %s in namespace %s is another's", kind.kind, name, namespace)
        elif wanted is None and there is not None:
            version = there.meta.resource_version
            how = Deletion(uid=there.meta.uid or None, resource_version=version or None)
            await self._client.delete(kind, name, namespace, how)
        elif wanted is not None and there is None:
            await self._client.create(kind, wanted, namespace)
        elif wanted is not None and there is not None and _differs(there.raw, wanted):
            metadata = cast("JsonObject", wanted["metadata"])
            guarded = {**metadata, "resourceVersion": there.meta.resource_version}
            body = {**wanted, "metadata": guarded}
            await self._client.merge_patch(kind, name, body, namespace)


def _reported(raw: msgspec.Raw) -> _Reported:
    meta = msgspec.json.decode(raw, type=LabelledObject).metadata
    return _Reported(meta, cast("JsonObject", orjson.loads(bytes(raw))))


def _differs(there: JsonObject, wanted: JsonObject) -> bool:
    meta, said = (cast("JsonObject", each["metadata"]) for each in (there, wanted))
    ours = {key: meta.get(key) for key in said}
    return ours != said or any(there.get(key) != wanted[key] for key in ("summary", "results"))
