"""What becomes of gangs where there is room for some of them only."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from api import names
from api.objects import condition_of
from api.streams import Custom, Pod
from controller.gangs.entries import read_reservation
from controller.podgang import read_gang
from kube.client import Client
from kube.resources import PODGANGS, PODS, RESERVATIONS
from scheduler import needs
from tests.bench.gangs_loads import Load, gang_of
from tests.bench.gangs_runs import Make, Seen, Site
from tests.bench.harness import Budget, Row

GPU: Final = "nvidia.com/gpu"


@dataclass(frozen=True)
class Outcome:
    """Gangs that run whole and in part, GPUs held by those that do not run whole, and reasons."""

    seconds: float  # until nothing more was bound
    whole: int
    partial: int
    held: int
    explained: int

    def rows(self, what: str, fit: int, load: Load, floor: "Outcome") -> Iterator[Row]:
        yield Row(f"{what}, whole", self.whole, "gangs", floor.whole, Budget(fit, least=True))
        yield Row(f"{what}, in part", self.partial, "gangs", floor.partial, Budget(0))
        yield Row(f"{what}, held by these and the rest", self.held, "GPUs", floor.held, Budget(0))
        rest = Budget(load.gangs - fit, least=True)
        yield Row(f"{what}, explained", self.explained, "gangs", None, rest)
        yield Row(f"{what}, last of these bound", self.seconds, "s", floor.seconds)


async def outcome(site: Site, load: Load, make: Make) -> Outcome:
    """Ask for a load of which only a part finds room, and look once nobody writes any more."""
    async with site.space() as space, site.watching(space) as seen:
        begun = await site.begin(load, make, space)
        await site.settled()
        pods = (await site.client.list_pages(PODS, Pod, space)).items
        bound: dict[str, list[Pod]] = {}
        for pod in pods:
            if pod.spec.node_name:
                bound.setdefault(gang_of(pod.metadata.labels), []).append(pod)
        whole = {name for name, there in bound.items() if len(there) == len(load.gpus)}
        idle = [pod for name, there in bound.items() if name not in whole for pod in there]
        held = sum(needs.of_pod(pod).get(GPU, 0) for pod in idle)
        explained = 0
        if site.reserves:
            held += await _reserved(site.client, space, whole)
            explained = await _explained(site.client, space)
        seconds = _last(seen) - begun
        return Outcome(seconds, len(whole), len(bound) - len(whole), held, explained)


def _last(seen: Seen) -> float:
    return max(seen.bound.values())


async def _reserved(client: Client, space: str, whole: set[str]) -> int:
    """Count the GPUs that are kept for sets which do not run whole."""
    found = map(read_reservation, (await client.list_pages(RESERVATIONS, Custom, space)).items)
    return sum(
        int(requests.get(GPU, "0"))
        for reservation in found
        if reservation and reservation.metadata.name.removesuffix("-0") not in whole
        for _, _, requests in reservation.slots()
    )


async def _explained(client: Client, space: str) -> int:
    """Count the gangs that say what they lack."""
    gangs = map(read_gang, (await client.list_pages(PODGANGS, Custom, space)).items)
    said = [condition_of(gang.status.conditions, names.SCHEDULED) for gang in gangs if gang]
    return sum(
        1 for c in said if c and c.reason == names.REASON_INSUFFICIENT and "gpu" in c.message
    )
