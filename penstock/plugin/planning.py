"""`penstock plan`: where what is in files would go, or why not, before it is submitted.

The files are unfolded into what would be stored, put beside what the cluster has, and placed in
memory by the same steps as `gangs` takes. Nothing is written.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from rich.console import RenderableType
from rich.text import Text

from api import exits
from api.jsons import Json, JsonObject
from api.streams import Pod
from api.topology import ClusterTopologyBindingSpec
from kube.objects import Key, KubeObject, key_of
from kube.resources import PODCLIQUESETS, PODGANGS, Resource
from penstock.ending import AskedWronglyError
from penstock.plugin import reports
from penstock.plugin.judging import Said
from penstock.plugin.rehearsing import Outcome, rehearse
from penstock.plugin.reports import Report
from penstock.plugin.scenes import Scene
from penstock.plugin.unfolding import Surroundings, Unfolded, unfold
from penstock.policy import files
from penstock.policy.files import BadFileError
from penstock.releasing import gang_of
from policies import reading, trying
from policies.known import Snapshot
from scheduler import explain, showing
from scheduler.answers import Placement, Plan

WAITS: Final = 11  # how the command ends if somebody would wait
REFUSED: Final = 12  # and if admission would refuse something

_VERDICTS: Final = {
    "fits": exits.OK, "waits": WAITS, "refused": REFUSED, "empty": exits.BAD_SETTINGS,
}  # fmt: skip
_FEW: Final = 8  # nodes of a clique, unless all are asked for
_SIGNS: Final = {"fits": "green", "waits": "yellow", "refused": "red"}


@dataclass(frozen=True)
class Known:
    """Something of the files that is there already, and the command that tells how it stands."""

    kind: str
    key: Key
    ask: str

    @property
    def text(self) -> str:
        """Name it."""
        return f"{self.kind} {'/'.join(self.key)}"

    @property
    def hint(self) -> str:
        """Say what to do about it."""
        return f"penstock {self.ask} {self.key[1]} -n {self.key[0]}"


@dataclass(frozen=True)
class Fate:
    """What would become of one gang."""

    key: Key
    placed: tuple[Placement, ...]
    said: Said
    pods: int
    waiting: int  # of these, those without a place, extras among them
    plan: Plan  # the refusal, if there is one

    @property
    def fits(self) -> bool:
        """Whether its minimum would have its place."""
        return bool(self.placed) and not self.plan.refusals


@dataclass(frozen=True)
class Answer:
    """All that is told: `there` names what the cluster has already, which is not planned anew."""

    verdict: str
    found: Unfolded
    fates: Sequence[Fate]
    there: Sequence[Known]


async def report(scene: Scene, namespace: str, *, paths: Sequence[Path]) -> Report:
    """Plan what the files ask for into the cluster as it is now."""
    try:
        manifests = [each.raw for each in files.manifests(list(paths))]
    except BadFileError as error:
        raise AskedWronglyError(str(error), exits.BAD_SETTINGS) from error
    fresh, there = _sorted_out(scene, manifests, namespace)
    found = unfold(fresh, surroundings(scene, namespace, manifests))
    found, gangs = _without_those_there(scene, found)
    there += gangs
    contents = scene.contents()
    for kind, every in found.objects.items():
        contents[kind] = [*contents.get(kind, ()), *every]
    outcome = rehearse(await scene.with_contents(contents))
    fates = [_fate(outcome, key, scene) for key in found.gangs]
    answer = Answer(_verdict(found, fates), found, fates, there)
    return Report(_data(answer), lambda wide: _drawn(answer, wide=wide), _VERDICTS[answer.verdict])


def surroundings(scene: Scene, namespace: str, manifests: Iterable[JsonObject]) -> Surroundings:
    """Say what the cluster, and topology bindings among the files, mean for what is asked."""
    bindings = {key[1]: binding for key, binding in scene.sources.bindings.items()}
    specs: dict[str, ClusterTopologyBindingSpec] = {}
    for name, binding in bindings.items():
        try:
            specs[name] = ClusterTopologyBindingSpec.model_validate_json(bytes(binding.spec))
        except ValidationError:
            continue  # nobody can go by it
    specs |= trying.known_from(manifests).topologies
    levels = {name: {each.domain: each.key for each in spec.levels} for name, spec in specs.items()}
    classes = list(scene.classes)
    sets = {key: each.metadata.annotations for key, each in scene.sets.items()}
    return Surroundings(
        namespace,
        scene.now,
        scene.policy,
        Snapshot(specs, None, sets),
        levels,
        {each.metadata.name: each.value for each in classes},
        next((each.value for each in classes if each.global_default), 0),
    )


def _sorted_out(
    scene: Scene, manifests: Iterable[JsonObject], namespace: str
) -> tuple[list[JsonObject], list[Known]]:
    """Part what is new from what is there already: a change of that is another matter."""
    gangs = _gangs_there(scene)
    fresh: list[JsonObject] = []
    there: list[Known] = []
    for manifest in manifests:
        metadata = reading.mapping(manifest.get("metadata"))
        key = reading.text(metadata.get("namespace")) or namespace, str(metadata.get("name"))
        kind = manifest.get("kind")
        if kind == PODCLIQUESETS.kind and scene.sets.get(*key) is not None:
            there.append(Known(PODCLIQUESETS.kind, key, "tree"))
        elif kind == PODGANGS.kind and key in gangs:
            there.append(Known(PODGANGS.kind, key, "explain"))
        else:
            fresh.append(manifest)
    return fresh, there


def _without_those_there(scene: Scene, found: Unfolded) -> tuple[Unfolded, list[Known]]:
    """Take out the gangs of labelled pods that are there already, with these pods."""
    known = _gangs_there(scene)
    there = {key: Known("gang", key, "explain") for key in found.gangs if key in known}
    objects = {
        kind: tuple(each for each in every if _gang_key(kind, each) not in there)
        for kind, every in found.objects.items()
    }
    left = tuple(key for key in found.gangs if key not in there)
    return replace(found, objects=objects, gangs=left), [*there.values()]


def _gang_key(kind: Resource, thing: KubeObject) -> Key | None:
    """Name the gang that an object is, or that a pod says it is of."""
    if isinstance(thing, Pod):
        return thing.metadata.namespace, gang_of(thing)
    return key_of(thing) if kind == PODGANGS else None


def _gangs_there(scene: Scene) -> set[Key]:
    return {key_of(each) for each in scene.contents().get(PODGANGS, ())}


def _fate(outcome: Outcome, key: Key, scene: Scene) -> Fate:
    standing = outcome.standings[key]
    groups = standing.view.gang.spec.pod_groups
    asked = sum(len(group.pod_references) for group in groups)
    placed = outcome.placed.get(key, ())
    put = sum(len(placement.placed) for placement in placed)
    refusal = outcome.refusal_of(key)
    plan = Plan((), (refusal,) if refusal is not None else ())
    return Fate(key, placed, standing.said(scene.now), asked, asked - put, plan)


def _verdict(found: Unfolded, fates: Sequence[Fate]) -> str:
    if found.refused:
        return "refused"
    if not fates:
        return "empty"
    return "fits" if all(fate.fits for fate in fates) else "waits"


def _data(answer: Answer) -> JsonObject:
    there = [f"{each.text}, which is there already" for each in answer.there]
    return {
        "verdict": answer.verdict,
        "gangs": [_written(fate) for fate in answer.fates],
        "refused": [*answer.found.refused],
        "warnings": [*answer.found.warnings],
        "leftOut": [*answer.found.left_out, *there],
    }


def _written(fate: Fate) -> Json:
    return {
        "gang": {"namespace": fate.key[0], "name": fate.key[1]},
        "fits": fate.fits,
        "pods": fate.pods,
        "withoutPlace": fate.waiting,
        "reason": "" if fate.fits else fate.said.reason,
        "message": "" if fate.fits else fate.said.message,
        "placements": [showing.placement_json(each) for each in fate.placed],
        "refusal": explain.details(fate.plan.refusals[0]) if fate.plan.refusals else None,
    }


def _drawn(answer: Answer, *, wide: bool) -> Iterator[RenderableType]:
    found, fates, verdict = answer.found, answer.fates, answer.verdict
    for line in found.refused:
        yield Text.assemble(("refused  ", "red"), line)
    for line in found.warnings:
        yield Text.assemble(("warning  ", "yellow"), line)
    if found.left_out:
        told = ", ".join(found.left_out)
        yield Text(f"no gangs, and left out: {told}", "dim")
    for each in answer.there:
        yield Text(f"there already, and not planned anew: {each.text}; `{each.hint}` tells how it"
                   " stands", "dim")  # fmt: skip
    if verdict == "empty" and answer.there:
        yield Text("nothing in these files is new: to plan another one like it, give it another"
                   " name", "yellow")  # fmt: skip
    elif verdict == "empty":
        yield Text("there is no gang in these files: a gang is a PodCliqueSet, a PodGang, or pods "
                   "labelled penstock.dev/gang", "yellow")  # fmt: skip
    for fate in fates:
        yield from _shown(fate, wide=wide)
    fit = sum(fate.fits for fate in fates)
    if fates:
        yield Text("")
        yield Text.assemble(
            (verdict, _SIGNS[verdict]),
            f": {fit} of {reports.count(len(fates), 'gang')} would be placed now; nothing was"
            " written",
        )


def _shown(fate: Fate, *, wide: bool) -> Iterator[RenderableType]:
    name = "/".join(fate.key)
    if not fate.fits:
        why = f": {fate.said.message}" if fate.said.message else ""
        yield Text.assemble(
            ("gang ", "dim"), (name, "bold"), ("  would wait, ", "yellow"),
            (fate.said.reason, "yellow"), why,
        )  # fmt: skip
        told = showing.gang_explained(fate.plan, fate.key) or ""
        _, _, rest = told.partition("\n")
        if rest.strip():
            yield Text(rest.strip("\n"))
        return
    first = fate.placed[0]
    extras = f", {fate.waiting} beyond the minimum without a place" if fate.waiting else ""
    pods = reports.count(fate.pods - fate.waiting, "pod")
    yield Text.assemble(
        ("gang ", "dim"), (name, "bold"), ("  would be placed", "green"),
        f" in {explain.domain_text(first.domain)}: {pods}, score {first.score:.2f}",
        (extras, "yellow"),
    )  # fmt: skip
    yield reports.table(("  CLIQUE", "PODS", "NODES"), _rows(fate, wide=wide), right="PODS")


def _rows(fate: Fate, *, wide: bool) -> Iterator[tuple[str, str, str]]:
    by_clique: dict[str, Counter[str]] = {}
    for placement in fate.placed:
        for each in placement.placed:
            by_clique.setdefault(each.want.clique, Counter())[each.node] += 1
    for clique, nodes in by_clique.items():
        shown = sorted(nodes.items())
        few = shown if wide else shown[:_FEW]
        told = ", ".join(f"{node} ({pods})" if pods > 1 else node for node, pods in few)
        more = f" and {len(shown) - len(few)} more" if len(shown) > len(few) else ""
        yield f"  {clique}", str(sum(nodes.values())), f"{told}{more}"
