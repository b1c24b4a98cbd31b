"""`penstock plan`: where what is in files would go, or why not, before it is submitted.

The files are unfolded into what would be stored, put beside what the cluster has, and placed in
memory by the same steps as `gangs` takes. Nothing is written.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from rich.console import RenderableType
from rich.text import Text

from api import exits
from api.jsons import Json, JsonObject
from api.topology import ClusterTopologyBindingSpec
from kube.objects import Key, key_of
from kube.resources import PODCLIQUESETS, PODGANGS
from penstock.ending import AskedWronglyError
from penstock.plugin import reports
from penstock.plugin.judging import Said
from penstock.plugin.rehearsing import Outcome, rehearse
from penstock.plugin.reports import Report
from penstock.plugin.scenes import Scene
from penstock.plugin.unfolding import Surroundings, Unfolded, unfold
from penstock.policy import files
from penstock.policy.files import BadFileError
from policies import reading, trying
from policies.known import Snapshot
from scheduler import explain, showing
from scheduler.answers import Placement, Plan

WAITS: Final = 11  # how the command ends if somebody would wait
REFUSED: Final = 12  # and if admission would refuse something

_VERDICTS: Final = {"fits": exits.OK, "waits": WAITS, "refused": REFUSED}
_FEW: Final = 8  # nodes of a clique, unless all are asked for
_SIGNS: Final = {"fits": "green", "waits": "yellow", "refused": "red"}


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


async def report(scene: Scene, namespace: str, *, paths: Sequence[Path]) -> Report:
    """Plan what the files ask for into the cluster as it is now."""
    try:
        manifests = [each.raw for each in files.manifests(list(paths))]
    except BadFileError as error:
        raise AskedWronglyError(str(error), exits.BAD_SETTINGS) from error
    found = unfold(manifests, surroundings(scene, namespace, manifests))
    _see_that_all_are_new(scene, manifests, found, namespace)
    contents = scene.contents()
    for kind, every in found.objects.items():
        contents[kind] = [*contents.get(kind, ()), *every]
    outcome = rehearse(await scene.with_contents(contents))
    fates = [_fate(outcome, key, scene) for key in found.gangs]
    verdict = _verdict(found, fates)
    data = _data(verdict, found, fates)
    return Report(data, lambda wide: _drawn(verdict, found, fates, wide=wide), _VERDICTS[verdict])


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


def _see_that_all_are_new(
    scene: Scene, manifests: Iterable[JsonObject], found: Unfolded, namespace: str
) -> None:
    """Refuse what is there already: a change of it is another matter than something new."""
    for manifest in manifests:
        metadata = reading.mapping(manifest.get("metadata"))
        key = reading.text(metadata.get("namespace")) or namespace, str(metadata.get("name"))
        if manifest.get("kind") == PODCLIQUESETS.kind and scene.sets.get(*key) is not None:
            raise AskedWronglyError(
                f"there is a set {'/'.join(key)} already: `penstock tree {key[1]} -n {key[0]}`"
                " shows where it is; to plan another one like it, give it another name"
            )
    there = {key_of(each) for each in scene.contents().get(PODGANGS, ())}
    for key in found.gangs:
        if key in there:
            raise AskedWronglyError(
                f"there is a gang {'/'.join(key)} already: `penstock explain {key[1]} -n {key[0]}`"
                " tells how it stands"
            )


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
    return "fits" if all(fate.fits for fate in fates) else "waits"


def _data(verdict: str, found: Unfolded, fates: Sequence[Fate]) -> JsonObject:
    return {
        "verdict": verdict,
        "gangs": [_written(fate) for fate in fates],
        "refused": [*found.refused],
        "warnings": [*found.warnings],
        "leftOut": [*found.left_out],
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


def _drawn(
    verdict: str, found: Unfolded, fates: Sequence[Fate], *, wide: bool
) -> Iterator[RenderableType]:
    for line in found.refused:
        yield Text.assemble(("refused  ", "red"), line)
    for line in found.warnings:
        yield Text.assemble(("warning  ", "yellow"), line)
    if found.left_out:
        told = ", ".join(found.left_out)
        yield Text(f"no gangs, and left out: {told}", "dim")
    if not found.refused and not fates:
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
