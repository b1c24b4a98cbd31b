"""Our arithmetic says what Kubernetes' own helper says; `make vectors` asks it anew."""

from pathlib import Path
from typing import Final

import msgspec

from api import needs
from api.streams import Meta, Pod, PodSpec, PodStatus

VECTORS: Final = Path(__file__).parents[1] / "vectors" / "pod_requests.json"


class Drawn(msgspec.Struct, frozen=True):
    spec: PodSpec
    status: PodStatus = PodStatus()


class Vector(msgspec.Struct, frozen=True):
    pod: Drawn
    placed: dict[str, int]
    running: dict[str, int] | None = None

    def made(self, node: str = "") -> Pod:
        spec = msgspec.structs.replace(self.pod.spec, node_name=node)
        return Pod(Meta("p"), spec, self.pod.status)


def vectors() -> list[Vector]:
    return msgspec.json.decode(VECTORS.read_bytes(), type=list[Vector])


def test_a_pod_without_a_node_takes_what_kubernetes_says() -> None:
    for vector in vectors():
        assert needs.of_pod(vector.made()) == {**vector.placed, "pods": 1}, vector.pod


def test_a_pod_on_its_node_takes_what_kubernetes_says() -> None:
    for vector in vectors():
        expected = vector.placed if vector.running is None else vector.running
        assert needs.of_pod(vector.made("n")) == {**expected, "pods": 1}, vector.pod


def test_vectors_are_many_and_tell_every_way_apart() -> None:
    every = vectors()
    assert len(every) >= 300
    assert sum(vector.running is not None for vector in every) >= 100
    text = VECTORS.read_text()
    for part in ("Infeasible", "Deferred", '"overhead"', "Always", "hugepages-2Mi", '"100n"'):
        assert part in text
