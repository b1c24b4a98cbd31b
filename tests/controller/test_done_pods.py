"""A pod that is done is missed by nobody: it is left, and an update takes it like one at work."""

import msgspec

from api.streams import Pod
from tests.controller.test_updating import spec_of
from tests.support.fleets import Fleet
from tests.support.sets import clique


def done(pod: Pod) -> Pod:
    status = msgspec.structs.replace(pod.status, phase="Succeeded", conditions=())
    return msgspec.structs.replace(pod, status=status)


def running(image: str = "one") -> Fleet:
    fleet = Fleet(spec_of(clique("leader", 1), clique("worker", 2), image=image, replicas=2))
    fleet.settle()
    return fleet


def finish(fleet: Fleet, *cliques: str) -> None:
    """Let all pods of these cliques be done."""
    ours = {pod.metadata.name for name in cliques for pod in fleet.pods(name)}
    fleet.change(lambda pod: done(pod) if pod.metadata.name in ours else pod)


def test_nothing_is_made_anew_for_it() -> None:
    fleet = running()
    finish(fleet, "demo-0-leader", "demo-1-worker")
    assert fleet.look() == []
    assert fleet.view.status.available_replicas == 2


def test_an_update_takes_it_in_its_turn_and_does_not_wait_for_it_to_be_ready() -> None:
    fleet = running()
    finish(fleet, "demo-0-leader", "demo-1-leader")
    fleet.edit(spec_of(clique("leader", 1), clique("worker", 2), image="two", replicas=2))
    first = fleet.look()
    assert {name.rpartition("-")[0] for name in first} == {"demo-0-leader", "demo-0-worker"}
    fleet.gone()
    fleet.look()
    # The new one is done before the update looks again.
    fleet.ready()
    finish(fleet, "demo-0-leader")
    for _ in range(20):
        fleet.ready(lambda pod: pod.status.phase != "Succeeded")
        fleet.gone()
        fleet.look()
    assert {image for images in fleet.images().values() for image in images} == {"new"}
    assert len(fleet.pods()) == 6
