"""A plain gang through random lives of its pods: what it says always fits what there is."""

import random
from dataclasses import dataclass, field, replace

import pytest

from api import names
from api.streams import Pod
from controller.gangs import plain_pods, plain_slots
from controller.gangs.plain_deciding import PlainView, Rest, Unmake, decide, vacant
from controller.gangs.plain_slots import Ledger, Room
from scheduler import needs
from tests.support.chance import dice
from tests.support.clusters import node
from tests.support.plaingangs import after, plain, seen

MINIMUM = 3
EVENTS = 60


@dataclass
class Life:
    """A gang whose pods come, are lifted, end and vanish as chance has it."""

    rng: random.Random
    view: PlainView = field(default_factory=seen)
    born: int = 0

    def happen(self) -> None:
        name = self.rng.choice(("come", "come", "go", "end", "lift", "lift", "vanish", "tire"))
        getattr(self, name)()

    def come(self) -> None:
        self.born += 1
        gpus = self.rng.choice(("1", "1", "1", "2"))
        self.put(plain(f"p{self.born:03}", gpus=gpus, born=self.born % 60))

    def go(self) -> None:
        for pod in self.some():
            self.put(self.like(pod, going=True))

    def end(self) -> None:
        for pod in self.some():
            if pod.spec.node_name:
                phase = self.rng.choice(("Succeeded", "Failed"))
                self.put(self.like(pod, phase=phase))

    def vanish(self) -> None:
        gone = {pod.metadata.name for pod in self.some()}
        pods = tuple(pod for pod in self.view.pods if pod.metadata.name not in gone)
        self.view = replace(self.view, pods=pods)

    def tire(self) -> None:
        self.view = replace(self.view, tired=frozenset(vacant(self.view)))
        self.settle()
        there = {index for index in self.view.before.values() if self.view.there}
        rooms = {i: room for i, room in self.view.ledger.rooms.items() if i in there}
        self.view = replace(self.view, tired=frozenset(), ledger=self.ledger(rooms))

    def lift(self) -> None:
        """Place and lift as `gangs` does: the first time the whole minimum, then anybody."""
        gang, view = self.view.there, self.view
        if gang is None or not gang.initialized:
            return
        index = {name: i for (_, name), i in plain_slots.slots_of(gang).items()}
        waiting = [p for p in view.pods if names.GATE in p.gates and plain_pods.lives(p)]
        running = [p for p in view.pods if p.spec.node_name and plain_pods.lives(p)]
        if len(waiting) + len(running) < MINIMUM and not view.ledger.committed:
            return
        rooms = dict(view.ledger.rooms)
        for pod in waiting:
            own = index[pod.metadata.name]
            room = rooms.setdefault(own, Room(f"n{own}", needs.of_pod(pod)))
            assert room.holds(pod), "lifted onto a slot that is too small"
            self.put(self.like(pod, on=room.node))
        self.view = replace(self.view, ledger=self.ledger(rooms))

    def ledger(self, rooms: dict[int, Room]) -> Ledger:
        nodes = {room.node: node(room.node) for room in rooms.values()}
        return Ledger(rooms, nodes, committed=bool(rooms) or self.view.ledger.committed)

    def like(self, pod: Pod, *, on: str = "", phase: str = "Pending", going: bool = False) -> Pod:
        requests = pod.spec.containers[0].resources.requests
        return plain(
            pod.metadata.name,
            gpus=requests["nvidia.com/gpu"],
            on=on or pod.spec.node_name,
            phase=phase,
            going=going or pod.metadata.deletion_timestamp is not None,
        )

    def put(self, pod: Pod) -> None:
        others = (p for p in self.view.pods if p.metadata.name != pod.metadata.name)
        pods = sorted((*others, pod), key=lambda p: p.metadata.name)
        self.view = replace(self.view, pods=tuple(pods))

    def some(self) -> list[Pod]:
        pods = self.view.pods
        return self.rng.sample(pods, k=min(len(pods), self.rng.choice((1, 1, 2, 5))))

    def settle(self) -> None:
        """Take steps until there is none; each is decided on what there is and nothing else."""
        step = decide(self.view)
        for _ in range(5):
            if isinstance(step, Rest):
                return
            before, was = self.view.before, self.running()
            self.view = after(self.view, step)
            if not isinstance(step, Unmake):
                for name in was & before.keys():
                    assert self.view.before[name] == before[name], "a pod that runs was moved"
            step = decide(self.view)
        raise AssertionError(f"it never rests: {step}")

    def running(self) -> set[str]:
        return {
            pod.metadata.name
            for pod in self.view.pods
            if pod.spec.node_name and plain_pods.lives(pod)
        }

    def check(self) -> None:
        waiting = {
            pod.metadata.name
            for pod in self.view.pods
            if names.GATE in pod.gates and plain_pods.lives(pod)
        }
        gang = self.view.there
        if gang is None:
            assert not waiting, "pods wait and there is no PodGang"
            return
        assert waiting | self.running(), "a PodGang of nobody"
        indices = plain_slots.slots_of(gang)
        assert len(set(indices.values())) == len(list(gang.references())) == len(indices)
        assert waiting | self.running() <= {name for _, name in indices}


@pytest.mark.parametrize("seed", range(40))
def test_whatever_befalls_its_pods_a_gang_says_what_there_is_and_moves_nobody(seed: int) -> None:
    life = Life(dice(seed))
    for _ in range(EVENTS):
        life.happen()
        life.settle()
        life.check()
