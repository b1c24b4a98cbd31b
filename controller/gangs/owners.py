"""Whose a pod is: PodCliques and the scaling groups above them, followed up to the set.

Owners are told apart by UID. A name or a label is a claim that anybody can make.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from api.streams import Custom, PodClique
from controller.podgang import Gang
from kube.cache import Added, Cache, Change, Deleted, Modified
from kube.client import Client
from kube.errors import ApiError, Forbidden, NotFound
from kube.objects import Key
from kube.resources import Resource

_log = logging.getLogger(__name__)

PROBE_EVERY: Final = 5.0  # seconds, while a kind is not served
ASK_AGAIN: Final = 0.5  # seconds, while nobody can tell


class Owners:
    """Follows the caches of PodCliques and scaling groups.

    `touched` is called with a clique's key whenever its pods may belong to somebody else, or wait
    for somebody else.
    """

    def __init__(
        self,
        cliques: Cache[PodClique],
        groups: Cache[Custom],
        touched: Callable[[Key], None],
    ) -> None:
        self._cliques = cliques
        self._touched = touched
        self._controllers: dict[str, str] = {}  # of each scaling group, by its UID
        self._members: dict[str, set[Key]] = {}  # the cliques that each controls, by its UID
        groups.subscribe(self._on_group)
        cliques.subscribe(self._on_clique)

    def cliques_of(self, gang: Gang) -> Mapping[str, PodClique]:
        """Give those of the gang's cliques that belong to whom the gang belongs to.

        They belong to the gang's own controller, or to a scaling group which that one controls.
        """
        found: dict[str, PodClique] = {}
        ours = gang.metadata.controller_uid
        for group in gang.spec.pod_groups:
            clique = self._cliques.get(gang.metadata.namespace, group.name)
            if clique is None or not ours:
                continue
            owner = clique.metadata.controller_uid
            if ours in (owner, self._controllers.get(owner)):
                found[group.name] = clique
        return found

    def _on_clique(self, change: Change[PodClique]) -> None:
        if isinstance(change, Modified) and _means_the_same(change.old, change.new):
            return  # its status changes all the time
        if not isinstance(change, Added):
            self._forget(change.old)
        if not isinstance(change, Deleted):
            owner = change.new.metadata.controller_uid
            self._members.setdefault(owner, set()).add(_key(change.new))
        self._touched(_key(change.old if isinstance(change, Deleted) else change.new))

    def _forget(self, clique: PodClique) -> None:
        owner = clique.metadata.controller_uid
        members = self._members.get(owner, set())
        members.discard(_key(clique))
        if not members:
            self._members.pop(owner, None)

    def _on_group(self, change: Change[Custom]) -> None:
        if isinstance(change, Modified) and _same_place(change.old, change.new):
            return
        if not isinstance(change, Added):
            self._controllers.pop(change.old.metadata.uid, None)
            self._touch_members(change.old.metadata.uid)
        if not isinstance(change, Deleted):
            self._controllers[change.new.metadata.uid] = change.new.metadata.controller_uid
            self._touch_members(change.new.metadata.uid)

    def _touch_members(self, uid: str) -> None:
        for key in self._members.get(uid, ()):
            self._touched(key)


async def served(client: Client, kind: Resource) -> bool:
    """Tell whether the API server serves the kind to us, as soon as that can be told."""
    why = await _refused(client, kind)
    if why is not None:
        _log.warning("%s are not known, nor what follows from them: %s", kind.full_name, why)
    return why is None


async def follow(client: Client, kind: Resource, run: Callable[[], Awaitable[None]]) -> None:
    """Run the kind's cache, from when it is served: gangs without a set need none of it."""
    while await _refused(client, kind) is not None:
        await client.clock.sleep(PROBE_EVERY)
    await run()


async def _refused(client: Client, kind: Resource) -> ApiError | None:
    """Ask for the kind until that is answered; give the answer if it is no."""
    while True:
        try:
            await client.probe(kind)
        except (NotFound, Forbidden) as error:
            return error
        except ApiError as error:
            _log.info("%s cannot be asked for now: %s", kind.full_name, error)
            await client.clock.sleep(ASK_AGAIN)
        else:
            return None


def _means_the_same(old: PodClique, new: PodClique) -> bool:
    return old.spec == new.spec and _same_place(old, new)


def _same_place(old: PodClique | Custom, new: PodClique | Custom) -> bool:
    return (
        old.metadata.uid == new.metadata.uid
        and old.metadata.controller_uid == new.metadata.controller_uid
    )


def _key(clique: PodClique) -> Key:
    return clique.metadata.namespace, clique.metadata.name
