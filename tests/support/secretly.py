"""Objects with a secret planted in every place where text may stand, values and keys alike."""

import string
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Final, cast

import yaml

from api import names
from api.jsons import Json, JsonObject
from tests.bench.webhook_reviews import clique, gang_pod, pod_clique_set, topology_binding

EVERYTHING: Final = Path(__file__).parent.parent / "cluster" / "everything.yaml"
# What an object is called is said of it everywhere; only what cannot be a name is a secret there.
IDENTITY: Final = frozenset(("name", "generateName", "namespace", "uid"))
FREE_MAPS: Final = ("labels", "annotations", "nodeSelector", "matchLabels", "limits", "requests")
LETTERS: Final = string.ascii_letters + string.digits
SPELLINGS: Final = (
    "{}",
    "-----BEGIN KEY----- {}",
    "postgres://user:{}@host/db?x=1",
    "--password={}",
    '"{}"',
    "'{}'",
    "registry.example/{}:latest",
    "é{}\n",
    "example.com/{}",
)


@dataclass
class Planting:
    """Makes secrets, and remembers which."""

    chance: Random
    planted: list[str] = field(default_factory=list)

    def secret(self, *, nameable: bool = True) -> str:
        """Give a new secret; one that is not nameable can be no object's name."""
        core = "".join(self.chance.choices(LETTERS, k=self.chance.randint(12, 30)))
        if nameable and self.chance.random() < 0.3:
            core = "x" + core.lower()
            self.planted.append(core)
            return core
        core = "Q" + core
        self.planted.append(core)
        return self.chance.choice(SPELLINGS).format(core)

    def plant(self, value: Json, share: float, path: tuple[str, ...] = ()) -> Json:
        """Replace such a share of all text in a value."""
        if isinstance(value, dict):
            made = {
                self._key(key, share, path): self.plant(inside, share, (*path, key))
                for key, inside in value.items()
            }
            if path and path[-1] in FREE_MAPS:
                made[self.secret()] = self.secret()
            return made
        if isinstance(value, list):
            return [self.plant(each, share, path) for each in value]
        if isinstance(value, str) and self.chance.random() < share:
            identity = len(path) == 2 and path[0] == "metadata" and path[1] in IDENTITY
            return self.secret(nameable=not identity)
        if isinstance(value, int) and self.chance.random() < share / 20:
            return self.secret()
        return value

    def _key(self, key: str, share: float, path: tuple[str, ...]) -> str:
        keeps = not path or (key == "labels" and len(path) == 1)
        free = bool(path) and path[-1] in FREE_MAPS
        if keeps or self.chance.random() >= (share if free else share / 50):
            return key
        return self.secret()


# Where people put what nobody may read; no rule asks for it, so no answer says it back either.
HUSHED: Final = frozenset(("value", "args", "command", "annotations", "httpHeaders", "data"))


def hushed(value: Json, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Give the text in all places where secrets are put; what we ask of annotations is ours."""
    inside = not HUSHED.isdisjoint(path) and "tolerations" not in path
    if isinstance(value, dict):
        for key, below in value.items():
            if "grove.io/" not in key and names.GROUP not in key:
                yield from hushed(below, (*path, key))
    elif isinstance(value, list):
        for each in value:
            yield from hushed(each, path)
    elif inside and isinstance(value, str):
        yield value


def plain_pod() -> JsonObject:
    """A pod that is one of a plain gang."""
    made = gang_pod()
    metadata = cast("JsonObject", made["metadata"])
    labels: JsonObject = {names.GANG_LABEL: "train", names.GANG_SIZE_LABEL: "4"}
    labels |= {names.QUEUE_LABEL: "research", "team": "vision"}
    metadata["labels"] = labels
    metadata["annotations"] = {"note": "x"}
    return made


@cache
def everything() -> JsonObject:
    """A set that uses every field; not to be written into."""
    return cast("JsonObject", yaml.safe_load(EVERYTHING.read_text()))


def drawn(planting: Planting) -> tuple[str, JsonObject]:
    """Draw an object with secrets in it, and the path of the webhook that judges such."""
    chance = planting.chance
    path, raw = chance.choice(
        [
            ("/validate/podcliquesets", pod_clique_set(chance.randint(1, 4))),
            ("/default/podcliquesets", everything()),
            ("/validate/podcliquesets", everything()),
            ("/mutate/pods", plain_pod()),
            ("/mutate/pods", plain_pod()),
            ("/authorize/managed", clique()),
            ("/validate/clustertopologybindings", topology_binding()),
        ]
    )
    share = chance.choice((0.02, 0.1, 0.5, 1.0))
    return path, cast("JsonObject", planting.plant(raw, share))
