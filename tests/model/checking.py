"""What there is in a memory, held against what the oracle expects."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from api.jsons import Json, JsonObject
from tests.model.memory import part
from tests.model.oracle import Part, Wish
from tests.model.player import condition, listed, said
from tests.model.stage import Stage


@dataclass
class Seen:
    """What earlier looks have seen, that later ones must agree with.

    Whatever happens in between, one version of the templates has one hash, and each clique's
    template one label; no other version has the same.
    """

    pods: set[str] = field(default_factory=set)  # by UID
    hashes: dict[int, str] = field(default_factory=dict)
    labels: dict[tuple[str, int], str] = field(default_factory=dict)


def check(stage: Stage, wish: Wish, before: Seen) -> None:
    """Hold all that there is against what the oracle expects, and note it."""
    memory = stage.memory
    pods = Counter(clique_of(pod) for pod in memory.of_kind("pods"))
    assert pods == Counter({p.name: p.pods for p in wish.parts() if p.pods})
    assert _names(stage, "podcliques") == {p.name for p in wish.parts()}
    assert _names(stage, "podcliquescalinggroups") == set(wish.groups())
    assert _names(stage, "podgangs") == set(wish.gangs())
    assert _names(stage, "services") == wish.services()
    for clique in memory.of_kind("podcliques"):
        _check_clique(stage, wish, clique)
    for group in memory.of_kind("podcliquescalinggroups"):
        _check_group(stage, wish, group)
    for gang in memory.of_kind("podgangs"):
        _check_gang(stage, wish, gang)
    (owner,) = memory.of_kind("podcliquesets")
    _check_set(stage, wish, owner, before)
    old = [*_old(stage, wish)]
    _check_images(stage, wish, old, before)
    _check_progress(stage, wish, part(owner, "status"), {clique_of(pod) for pod in old})
    before.pods = {uid_of(pod) for pod in memory.of_kind("pods")}


def _check_set(stage: Stage, wish: Wish, owner: JsonObject, before: Seen) -> None:
    status = part(owner, "status")
    generation = part(owner, "metadata")["generation"]
    assert status["observedGeneration"] == generation, (generation, status)
    assert status.get("replicas", 0) == wish.replicas
    assert status.get("availableReplicas", 0) == wish.replicas
    behind = {p.replica for p in wish.parts() if p.name in _behind(stage, wish)}
    assert status.get("updatedReplicas", 0) == wish.replicas - len(behind)
    assert status.get("lastErrors", []) == []
    assert condition(owner, "StartupImpossible") == ("True" if wish.stuck() else "")
    old = any(True for _ in _old(stage, wish))
    state = "Error" if wish.stuck() else "Processing" if old else "Succeeded"
    assert part(status, "lastOperation")["state"] == state, status["lastOperation"]
    told = {str(gang["name"]): gang for gang in listed(status, "podGangStatuses")}
    assert told.keys() == {*wish.gangs()}
    for gang in stage.memory.of_kind("podgangs"):
        short = told[str(part(gang, "metadata")["name"])]
        assert short["phase"] == part(gang, "status")["phase"]
        assert condition({"status": {**short}}, "Initialized") == "True"
    digest = str(status["currentGenerationHash"])
    assert before.hashes.setdefault(wish.image, digest) == digest
    assert len({*before.hashes.values()}) == len(before.hashes)


def _old(stage: Stage, wish: Wish) -> Iterator[JsonObject]:
    """List the pods that do not follow the newest template."""
    return (pod for pod in stage.memory.of_kind("pods") if image_of(pod) != wish.image)


def _behind(stage: Stage, wish: Wish) -> set[str]:
    """Name the cliques that an update has not done with."""
    kept_back = {p.name for p in wish.parts() if wish.image_of(p.name) != wish.image}
    return kept_back | {clique_of(pod) for pod in _old(stage, wish)}


def _check_images(stage: Stage, wish: Wish, old: list[JsonObject], before: Seen) -> None:
    """Pods that were made since the last look follow what their PodClique was given then."""
    assert not (old and wish.rolls), [part(pod, "metadata")["name"] for pod in old]
    for pod in stage.memory.of_kind("pods"):
        if uid_of(pod) not in before.pods:
            assert image_of(pod) == wish.image_of(clique_of(pod)), part(pod, "metadata")["name"]
        role, image = clique_of(pod).rpartition("-")[2], image_of(pod)
        label = label_of(pod, "grove.io/pod-template-hash")
        assert before.labels.setdefault((role, image), label) == label
    # Other cliques may have the same template, and then its label.
    assert len({(role, text) for (role, _), text in before.labels.items()}) == len(before.labels)
    for clique in stage.memory.of_kind("podcliques"):
        name = str(part(clique, "metadata")["name"])
        (container,) = listed(part(part(clique, "spec"), "podSpec"), "containers")
        assert container["image"] == f"model:{wish.image_of(name)}", name


def _check_progress(stage: Stage, wish: Wish, status: JsonObject, old: set[str]) -> None:
    """What is said of an update: since when, how far, and whether it is over."""
    if wish.image == 1:
        assert status.get("updateProgress") is None
        return
    progress = part(status, "updateProgress")
    behind = _behind(stage, wish)
    units = {p.unit: p.copy < 0 for p in wish.parts()}
    units |= dict.fromkeys(wish.groups(), False)
    late = {p.unit for p in wish.parts() if p.name in behind}
    for alone, what in ((True, "PodCliques"), (False, "PodCliqueScalingGroups")):
        these = {unit for unit, one in units.items() if one is alone}
        assert progress.get(f"total{what}Count", 0) == len(these)
        assert progress.get(f"updated{what}Count", 0) == len(these - late)
    ended, started = progress.get("updateEndedAt"), progress["updateStartedAt"]
    kept_back = any(wish.image_of(p.name) != wish.image for p in wish.parts())
    if kept_back:
        assert not ended, "it is paused"
    if not wish.strategy.paused:
        assert progress.get("currentlyUpdating", []) == []
        assert ended
    if wish.strategy.by_hand and old and not kept_back:
        assert ended == started


def _check_clique(stage: Stage, wish: Wish, clique: JsonObject) -> None:
    name = str(part(clique, "metadata")["name"])
    (wanted,) = (p for p in wish.parts() if p.name == name)
    assert _owner(clique) == wanted.owner
    pods = [pod for pod in stage.memory.of_kind("pods") if clique_of(pod) == name]
    for pod in pods:
        assert _owner(pod) == name
        assert label_of(pod, "grove.io/podgang") == wanted.gang
        assert part(pod, "status")["phase"] == "Running"
    hosts = {str(part(pod, "spec")["hostname"]) for pod in pods}
    assert len(hosts) == wanted.pods
    assert all(host.rpartition("-")[0] == name for host in hosts)
    status = part(clique, "status")
    for count in ("replicas", "readyReplicas", "scheduledReplicas"):
        assert status.get(count, 0) == wanted.pods, count
    new = sum(image_of(pod) == wish.image for pod in pods)
    assert status.get("updatedReplicas", 0) == new
    _check_hashes(stage, wish, clique, following=name not in _behind(stage, wish))
    assert [*_texts(part(clique, "spec").get("startsAfter"))] == wish.waits_for(wanted)
    assert status.get("scheduleGatedReplicas", 0) == 0
    assert condition(clique, "MinAvailableBreached") == "False"
    assert said(clique, "PodCliqueScheduled")
    assert status["observedGeneration"] == part(clique, "metadata")["generation"]


def _check_hashes(stage: Stage, wish: Wish, thing: JsonObject, *, following: bool) -> None:
    """Who follows the newest templates says so, and nobody else does."""
    (owner,) = stage.memory.of_kind("podcliquesets")
    newest = part(owner, "status")["currentGenerationHash"]
    status, name = part(thing, "status"), part(thing, "metadata")["name"]
    said = status.get("currentPodCliqueSetGenerationHash")
    assert (said == newest) is following, (name, said, newest)
    if following and thing["kind"] == "PodClique":
        label = label_of(thing, "grove.io/pod-template-hash")
        assert status["currentPodTemplateHash"] == label, name


def _check_group(stage: Stage, wish: Wish, group: JsonObject) -> None:
    name = str(part(group, "metadata")["name"])
    copies = wish.groups()[name]
    status = part(group, "status")
    for count in ("replicas", "availableReplicas", "scheduledReplicas"):
        assert status.get(count, 0) == copies, count
    behind = _behind(stage, wish)
    late = {p.copy for p in wish.parts() if p.owner == name and p.name in behind}
    assert status.get("updatedReplicas", 0) == copies - len(late)
    _check_hashes(stage, wish, group, following=not late)
    assert condition(group, "MinAvailableBreached") == "False"


def _check_gang(stage: Stage, wish: Wish, gang: JsonObject) -> None:
    wanted: list[Part] = wish.gangs()[str(part(gang, "metadata")["name"])]
    groups = {str(group["name"]): group for group in listed(part(gang, "spec"), "podgroups")}
    assert groups.keys() == {p.name for p in wanted}
    for each in wanted:
        referred = {str(ref["name"]) for ref in listed(groups[each.name], "podReferences")}
        there = {
            str(part(pod, "metadata")["name"])
            for pod in stage.memory.of_kind("pods")
            if clique_of(pod) == each.name
        }
        assert referred == there
        assert groups[each.name]["minReplicas"] == min(each.minimum, each.pods)
    assert said(gang, "Initialized")


def named(stage: Stage, plural: str, name: str) -> list[JsonObject]:
    """Give the one object of this name, or none."""
    return [o for o in stage.memory.of_kind(plural) if part(o, "metadata")["name"] == name]


def _names(stage: Stage, plural: str) -> set[str]:
    return {str(part(thing, "metadata")["name"]) for thing in stage.memory.of_kind(plural)}


def _owner(thing: JsonObject) -> str:
    (owner,) = listed(part(thing, "metadata"), "ownerReferences")
    return str(owner["name"])


def is_up(pod: JsonObject) -> bool:
    """Tell whether a pod is there to stay, and ready."""
    return "deletionTimestamp" not in part(pod, "metadata") and said(pod, "ContainersReady")


def clique_of(pod: JsonObject) -> str:
    """Name the clique of a pod, in full."""
    return label_of(pod, "grove.io/podclique")


def label_of(thing: JsonObject, key: str) -> str:
    """Give the text of a label."""
    return str(part(part(thing, "metadata"), "labels")[key])


def uid_of(thing: JsonObject) -> str:
    """Tell one object from all others, also of its name."""
    return str(part(thing, "metadata")["uid"])


def image_of(pod: JsonObject) -> int:
    """Tell which version of the template a pod is of."""
    (container,) = listed(part(pod, "spec"), "containers")
    return int(str(container["image"]).removeprefix("model:"))


def _texts(found: Json) -> list[str]:
    return [str(each) for each in found] if isinstance(found, list) else []
