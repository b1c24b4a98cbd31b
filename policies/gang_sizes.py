"""How large a set's gangs are: at once, and at the most that autoscaling may make of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from api import quantities
from api.jsons import Json, JsonObject
from api.quantities import BadQuantityError
from policies import bounds, reading
from policies.podcliqueset_view import Clique, Scaling, SetView

GPU_SUFFIX: Final = "/gpu"
_NOTHING: Final[JsonObject] = {}
_FEW: Final = {str(count): count for count in range(129)}


@dataclass(frozen=True)
class GangSizes:
    """What a set comes to. The base gang is the largest: what scales out alone is part of one."""

    gangs: int
    pods: int
    gpus: int
    cliques: tuple[tuple[Clique, int], ...]
    """Each clique, with the most pods that one copy of it has."""


def of_set(seen: SetView, counted: Sequence[int] | None = None) -> GangSizes:
    """Count the gangs of a set and what the largest takes.

    `counted` says how many GPUs a pod of each clique asks for, where that is known.
    """
    each_takes = counted or [gpus_of(clique.pod) for clique in seen.cliques]
    groups = {id(group): _most(group.replicas, group.scaling) for group in seen.groups}
    kept = {id(group): min(group.minimum or 1, groups[id(group)]) for group in seen.groups}
    pods = gpus = 0
    cliques: list[tuple[Clique, int]] = []
    for clique, gpus_each in zip(seen.cliques, each_takes, strict=True):
        copies = _most(clique.replicas, clique.scaling)
        cliques.append((clique, copies))
        home = seen.home(clique)
        in_base = copies * (kept[id(home)] if home else 1)
        pods += in_base
        gpus += in_base * gpus_each
    scaled = sum(groups[key] - kept[key] for key in groups)
    replicas = seen.replicas if seen.replicas is not None else 1
    return GangSizes(max(replicas, 0) * (1 + scaled), pods, gpus, tuple(cliques))


def gpus_of(pod: JsonObject) -> int:
    """Count the devices called GPUs, of whichever maker, that a pod asks for."""
    at_once = 0
    for each in containers(pod, "containers"):
        at_once += gpus_asked(each)
    before = containers(pod, "initContainers")
    if not before:
        return at_once
    most = lasting = 0
    for each in before:
        asked = gpus_asked(each)
        most = max(most, asked)
        if asked and each.get("restartPolicy") == "Always":
            lasting += asked
    return max(at_once + lasting, most)


def containers(pod: JsonObject, field: str) -> list[JsonObject]:
    """Give the containers of one of a pod's lists of them."""
    return [each for each in bounds.listed(pod, field) if isinstance(each, dict)]


def gpus_asked(container: JsonObject) -> int:
    """Count the GPUs that a container asks for; a limit is a request where there is no other."""
    resources = container.get("resources")
    if not isinstance(resources, dict):
        return 0
    total = 0
    # Without a detour by `reading`: this is asked for every container of every set.
    written = resources.get("requests")
    requests = written if isinstance(written, dict) else _NOTHING
    for name in requests:
        # Twice, since the first costs a sixth of the second, and few names come that far.
        if GPU_SUFFIX in name and name.endswith(GPU_SUFFIX):
            total += _gpus(name, requests[name])
    written = resources.get("limits")
    limits = written if isinstance(written, dict) else _NOTHING
    for name in limits:
        if GPU_SUFFIX in name and name.endswith(GPU_SUFFIX) and name not in requests:
            total += _gpus(name, limits[name])
    return total


def gpus_limited(container: JsonObject) -> int:
    """Count the GPUs that a container is limited to."""
    limits = reading.mapping(reading.mapping(container.get("resources")).get("limits"))
    total = 0
    for name in limits:
        if GPU_SUFFIX in name and name.endswith(GPU_SUFFIX):
            total += _gpus(name, limits[name])
    return total


def _gpus(resource: str, written: Json) -> int:
    # Of almost all pods it is one of these, which are found in a third of the time.
    few = _FEW.get(written) if isinstance(written, str) else None
    return amount(resource, written) if few is None else few


def amount(resource: str, written: Json) -> int:
    """Give an amount in the engine's unit; nothing for what is none, as is told elsewhere."""
    if isinstance(written, str):
        short = len(written) <= _LONGEST_REMEMBERED and len(resource) <= _LONGEST_REMEMBERED
        return (_remembered if short else _amount)(resource, written)
    if isinstance(written, bool) or not isinstance(written, int):
        return 0
    return _amount(resource, str(written))


def _amount(resource: str, written: str) -> int:
    try:
        return quantities.whole(resource, written)
    except BadQuantityError:
        return 0


_LONGEST_REMEMBERED: Final = 64
_remembered: Final = lru_cache(maxsize=4096)(_amount)


def _most(replicas: int | None, scaling: Scaling | None) -> int:
    highest = scaling.highest if scaling and scaling.highest else 0
    return max(replicas if replicas is not None else 1, highest, 0)
