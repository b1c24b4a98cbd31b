"""The topologies that gangs are placed by: the built-in one, and that of each topology binding."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from pydantic import ValidationError

from api import names
from api.streams import Custom
from api.topology import ClusterTopologyBindingSpec
from kube.cache import Change, Deleted
from kube.objects import KubeObject
from scheduler.topology import Levels

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=KubeObject)

HOST: Final = "host"  # one node; a word that every topology knows


class Followed(Protocol[T]):
    """A cache, as far as it is needed here."""

    def subscribe(self, handler: Callable[[Change[T]], None]) -> None:
        """Call `handler` for every change, and at once for each object already there."""
        ...


@dataclass(frozen=True)
class Network:
    """One topology: the node label key of each level, by what people call it, widest first."""

    name: str
    keys_by_word: Mapping[str, str]

    @property
    def levels(self) -> Levels:
        """Give it in the engine's words."""
        return Levels(self.name, tuple(self.keys_by_word.values()))

    def key(self, word: str) -> str:
        """Give the label key of the level called so, or that is this key itself; else ""."""
        if word in (HOST, names.HOSTNAME_KEY):
            return self.keys_by_word.get(HOST, names.HOSTNAME_KEY)
        return word if word in self.keys_by_word.values() else self.keys_by_word.get(word, "")

    def has(self, keys: Collection[str]) -> bool:
        """Whether all these are levels of it."""
        return all(self.key(key) for key in keys)


BUILT_IN: Final = Network(
    "", {"zone": names.ZONE_KEY, "block": names.BLOCK_KEY, "rack": names.RACK_KEY}
)


def meant(networks: Iterable[Network], name: str, wanted: Iterable[Collection[str]]) -> Network:
    """Find the topology of this name, else the first that has all levels of a choice, else any.

    Choices are tried in turn.
    """
    every = tuple(networks)
    by_name = (each for each in every if name and each.name == name)
    by_levels = (each for words in wanted for each in every if each.has(words))
    return next(by_name, None) or next(by_levels, None) or every[0]


class Topologies:
    """Follows topology bindings; `changed` is called when what they say is new."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.networks: tuple[Network, ...] = (BUILT_IN,)
        self._changed = changed

    def follow(self, bindings: Followed[Custom]) -> None:
        """Know every binding there is and will be."""
        bindings.subscribe(self._on_binding)

    def _on_binding(self, change: Change[Custom]) -> None:
        name = (change.old if isinstance(change, Deleted) else change.new).metadata.name
        by_name = {network.name: network for network in self.networks[1:]}
        by_name.pop(name, None)
        if not isinstance(change, Deleted):
            words = read(change.new)
            if words:
                by_name[name] = Network(name, words)
        networks = (BUILT_IN, *(by_name[each] for each in sorted(by_name)))
        if networks != self.networks:
            self.networks = networks
            self._changed()


def read(binding: Custom) -> dict[str, str]:
    """Give a binding's label keys by what their levels are called; none if it cannot be read."""
    try:
        spec = ClusterTopologyBindingSpec.model_validate_json(bytes(binding.spec))
    except ValidationError as error:
        _log.warning("topology binding %s cannot be read: %s", binding.metadata.name, error)
        return {}
    return {level.domain: level.key for level in spec.levels}
