"""Half-made gangs of a namespace that wait for one another's quota."""

from collections import defaultdict

from api.streams import Custom, Meta
from controller.workloads.quota import shortage
from controller.workloads.quota.shortage import Refused
from controller.workloads.views import Rival
from kube.cache import Added, Cache, Change, Deleted
from kube.objects import Key


class Rivals:
    """Follows the PodGangs for those whose pods a quota refuses; hardly ever are there any."""

    def __init__(self, gangs: Cache[Custom]) -> None:
        self._found: dict[str, dict[Key, tuple[str, Rival]]] = defaultdict(dict)
        gangs.subscribe(self._on_change)

    def of(self, namespace: str, uid: str) -> tuple[Rival, ...]:
        """List those of a namespace that belong to another set than the one with this UID."""
        found = self._found.get(namespace, {})
        return tuple(rival for owner, rival in found.values() if owner != uid)

    def _on_change(self, change: Change[Custom]) -> None:
        if not isinstance(change, Added):
            self._forget(change.old.metadata)
        if not isinstance(change, Deleted):
            self._note(change.new.metadata)

    def _note(self, meta: Meta) -> None:
        found = shortage.read(meta.annotations)
        if isinstance(found, Refused) and meta.deletion_timestamp is None:
            rival = Rival(shortage.rank(meta, found.times), found.since)
            self._found[meta.namespace][meta.namespace, meta.name] = meta.controller_uid, rival

    def _forget(self, meta: Meta) -> None:
        of_namespace = self._found.get(meta.namespace, {})
        of_namespace.pop((meta.namespace, meta.name), None)
        if not of_namespace:
            self._found.pop(meta.namespace, None)
