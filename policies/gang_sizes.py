"""How large a set's gangs are: at once, and at the most that autoscaling may make of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from api import quantities
from api.jsons import Json, JsonObject
from api.quantities import BadQuantityError
from policies import reading
from policies.podcliqueset_view import Clique, Scaling, SetView

GPU_SUFFIX: Final = "/gpu"
_MOST_CONTAINERS: Final = 256


@dataclass(frozen=True)
class GangSizes:
    """What a set comes to. The base gang is the largest: what scales out alone is part of one."""

    gangs: int
    pods: int
    gpus: int
    cliques: tuple[tuple[Clique, int], ...]
    """Each clique, with the most pods that one copy of it has."""


def of_set(seen: SetView) -> GangSizes:
    """Count the gangs of a set and what the largest takes."""
    groups = {id(group): _most(group.replicas, group.scaling) for group in seen.groups}
    kept = {id(group): min(group.minimum or 1, groups[id(group)]) for group in seen.groups}
    pods = gpus = 0
    cliques: list[tuple[Clique, int]] = []
    for clique in seen.cliques:
        copies = _most(clique.replicas, clique.scaling)
        cliques.append((clique, copies))
        home = seen.home(clique)
        in_base = copies * (kept[id(home)] if home else 1)
        pods += in_base
        gpus += in_base * gpus_of(clique.pod)
    scaled = sum(groups[key] - kept[key] for key in groups)
    replicas = seen.replicas if seen.replicas is not None else 1
    return GangSizes(max(replicas, 0) * (1 + scaled), pods, gpus, tuple(cliques))


def gpus_of(pod: JsonObject) -> int:
    """Count the devices called GPUs, of whichever maker, that a pod asks for."""
    at_once = sum(_gpus(each) for each in containers(pod, "containers"))
    before = [*containers(pod, "initContainers")]
    lasting = sum(_gpus(each) for each in before if each.get("restartPolicy") == "Always")
    return max([at_once + lasting, *(_gpus(each) for each in before)])


def containers(pod: JsonObject, field: str) -> Iterator[JsonObject]:
    """Give the containers of one of a pod's lists of them."""
    for each in reading.items(pod.get(field))[:_MOST_CONTAINERS]:
        yield reading.mapping(each)


def _gpus(container: JsonObject) -> int:
    resources = reading.mapping(container.get("resources"))
    asked = {
        **reading.mapping(resources.get("limits")),
        **reading.mapping(resources.get("requests")),
    }
    return sum(_whole(name, asked[name]) for name in asked if name.endswith(GPU_SUFFIX))


def _whole(name: str, written: Json) -> int:
    if not isinstance(written, str | int) or isinstance(written, bool):
        return 0
    try:
        return quantities.whole(name, str(written))
    except BadQuantityError:
        return 0  # told where types are looked at


def _most(replicas: int | None, scaling: Scaling | None) -> int:
    highest = scaling.highest if scaling and scaling.highest else 0
    return max(replicas if replicas is not None else 1, highest, 0)
