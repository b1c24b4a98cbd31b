"""Live sets of an upstream Grove keep pods and hashes until a template really changes."""

from dataclasses import replace

from api import names
from api.jsons import JsonObject
from api.podclique import PodCliqueStatus
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from controller.workloads.expansion import expand
from controller.workloads.stepping import Change, Create
from controller.workloads.updates import hashing
from kube.resources import PODCLIQUES, PODS, SCALING_GROUPS
from tests.controller.test_updating import GROUP, spec_of
from tests.support.fleets import Fleet
from tests.support.sets import clique
from tests.support.upstream import GENERATION, Upstream, hash_of

PARTS = (clique("router", 2), clique("leader", 1), clique("worker", 2))


def spec(image: str = "one") -> PodCliqueSetSpec:
    return spec_of(*PARTS, image=image, replicas=2, groups=(GROUP,))


def left_by_grove(made: PodCliqueSetSpec | None = None, *, running: bool = True) -> Fleet:
    """A set whose objects Grove has made, from a spec that may be older than the set's."""
    fleet = Fleet(spec())
    meta = fleet.view.metadata
    grove = Upstream(meta.name, meta.namespace, meta.uid, made or spec())
    for body in grove.groups():
        fleet.carry(Create(SCALING_GROUPS, body))
    groups = {name: group.metadata.uid for name, group in fleet.view.groups.items()}
    for body in grove.cliques(groups):
        fleet.carry(Create(PODCLIQUES, body))
    uids = {name: found.metadata.uid for name, found in fleet.view.cliques.items()}
    for body in grove.pods(uids):
        fleet.carry(Create(PODS, body))
    status = PodCliqueSetStatus.model_validate(grove.status_of_set())
    fleet.view = replace(fleet.view, status=status)
    for name, place in grove.places():
        said = PodCliqueStatus.model_validate(grove.status_of_clique(place.clique))
        there = replace(fleet.view.cliques[name], status=said)
        fleet.view = replace(fleet.view, cliques={**fleet.view.cliques, name: there})
    if running:
        fleet.ready()
    return fleet


def labels_of(fleet: Fleet) -> set[tuple[str, str]]:
    """The hash labels of PodCliques and pods, with the clique each is of."""
    metas = [(name, each.metadata) for name, each in fleet.view.cliques.items()]
    metas += [(name, pod.metadata) for name in fleet.view.pods for pod in fleet.pods(name)]
    return {
        (name.rsplit("-", 1)[1], meta.labels[names.TEMPLATE_HASH_LABEL]) for name, meta in metas
    }


GROVES = {(name, hash_of(name)) for name in ("router", "leader", "worker")}


def test_nothing_is_replaced_and_every_hash_stays() -> None:
    fleet = left_by_grove()
    pods = {pod.metadata.uid for pod in fleet.pods()}
    fleet.settle()
    assert fleet.removed == []
    assert {pod.metadata.uid for pod in fleet.pods()} == pods
    assert labels_of(fleet) == GROVES
    assert fleet.view.status.current_generation_hash == GENERATION
    assert fleet.view.status.update_progress is None
    for name, there in fleet.view.cliques.items():
        assert there.status.current_pod_template_hash == hash_of(name.rsplit("-", 1)[1])
        assert there.status.current_pod_clique_set_generation_hash == GENERATION


def test_each_podclique_is_noted_once() -> None:
    fleet = left_by_grove()
    changes = [step for step in fleet.step() if isinstance(step, Change)]
    assert {change.name for change in changes} == set(fleet.view.cliques)
    ours = hashing.template_hashes(fleet.view.spec)
    for name, there in fleet.view.cliques.items():
        note = there.metadata.annotations[names.TEMPLATE_HASH_ANNOTATION]
        assert note == ours[name.rsplit("-", 1)[1]]
    assert not any(isinstance(step, Change) for step in fleet.step())


def test_the_note_is_not_copied_to_pods() -> None:
    fleet = left_by_grove()
    fleet.settle()
    fleet.change(lambda _: None)
    fleet.look()
    assert {
        pod.metadata.annotations.get(names.TEMPLATE_HASH_ANNOTATION) for pod in fleet.pods()
    } == {None}


def test_what_is_made_later_from_the_same_templates_has_groves_hashes() -> None:
    fleet = left_by_grove()
    fleet.settle()
    fleet.edit(spec().model_copy(update={"replicas": 3}))
    fleet.scale("demo-0-router", 3)
    fleet.settle()
    assert fleet.removed == []
    assert len(fleet.pods("demo-2-router")) == 2
    assert len(fleet.pods("demo-0-router")) == 3
    assert labels_of(fleet) == GROVES
    assert fleet.view.status.current_generation_hash == GENERATION


def test_a_real_change_is_an_update_like_any_other() -> None:
    fleet = left_by_grove()
    fleet.settle()
    count = len(fleet.pods())
    fleet.edit(spec("two"))
    assert len(fleet.look()) == 4  # one router, and one copy of the group
    fleet.settle()
    assert len(fleet.removed) == count
    ours = hashing.template_hashes(fleet.view.spec)
    assert labels_of(fleet) == {*ours.items()}
    assert fleet.view.status.current_generation_hash == hashing.generation_hash(fleet.view.spec)
    assert all(
        names.TEMPLATE_HASH_ANNOTATION not in there.metadata.annotations
        for there in fleet.view.cliques.values()
    )


def test_a_clique_that_does_not_change_keeps_its_pods_and_hash_while_another_is_updated() -> None:
    fleet = left_by_grove()
    fleet.settle()
    changed = spec()
    router = changed.template.cliques[0].model_copy(update={"labels": {"tier": "front"}})
    cliques = [router, *changed.template.cliques[1:]]
    template = changed.template.model_copy(update={"cliques": cliques})
    fleet.edit(changed.model_copy(update={"template": template}))
    fleet.settle()
    assert {name.rsplit("-", 1)[0] for name in fleet.removed} == {"demo-0-router", "demo-1-router"}
    assert GROVES - labels_of(fleet) == {("router", hash_of("router"))}


def test_an_update_that_grove_had_not_finished_is_carried_on() -> None:
    fleet = left_by_grove(spec("older"))
    assert len(fleet.look()) == 4
    fleet.settle()
    assert labels_of(fleet) == {*hashing.template_hashes(fleet.view.spec).items()}
    assert fleet.view.status.update_progress is not None
    assert fleet.view.status.update_progress.update_ended_at


def test_pods_that_only_grove_would_let_start_are_made_anew() -> None:
    fleet = left_by_grove(running=False)
    count = len(fleet.pods())
    assert all(pod.gates == (names.GROVE_GATE,) for pod in fleet.pods())
    fleet.look()
    assert all(pod.gates == (names.GATE,) for pod in fleet.pods())
    assert len(fleet.pods()) == count
    assert labels_of(fleet) == GROVES


def test_what_grove_adds_to_a_podclique_makes_it_no_other_template() -> None:
    fleet = left_by_grove()
    claim: JsonObject = {"name": "mnnvl-claim", "resourceClaimTemplateName": "demo-0-nvl"}
    for name, there in fleet.view.cliques.items():
        pod_spec = there.spec.pod_spec
        containers = pod_spec["containers"]
        assert isinstance(containers, list)
        main = containers[0]
        assert isinstance(main, dict)
        main = {**main, "resources": {"claims": [{"name": "mnnvl-claim"}]}}
        with_claim = {**pod_spec, "containers": [main], "resourceClaims": [claim]}
        given = there.spec.model_copy(update={"pod_spec": with_claim})
        changed = {name: replace(there, spec=given)}
        fleet.view = replace(fleet.view, cliques={**fleet.view.cliques, **changed})
    fleet.settle()
    assert fleet.removed == []


def test_sets_of_our_own_have_our_own_hashes() -> None:
    fleet = Fleet.running(spec())
    wanted = expand(fleet.view)
    ours = hashing.template_hashes(fleet.view.spec)
    assert {c.template.name: c.template_hash for c in wanted.cliques.values()} == ours
    assert wanted.generation_hash == hashing.generation_hash(fleet.view.spec)
