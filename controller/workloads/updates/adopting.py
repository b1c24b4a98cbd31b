"""Live sets that an upstream Grove made: taken over as they are, and given back as they were. Pure.

What tells one template from another is a label. Grove's is a hash we cannot compute, so it is kept:
a PodClique with such a label whose content is what its template says stands for that template, and
what is made from it gets the same label. The annotation `penstock.dev/template-hash` notes on such
a PodClique which template that is in our hash. A real change brings our own labels, as any update.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from api import names
from api.cliques import CliqueTemplate
from api.jsons import Json, JsonObject
from controller.workloads import containers
from controller.workloads.stepping import Change, Remove, Step
from controller.workloads.updates import hashing
from controller.workloads.views import Clique, SetView
from controller.workloads.wants import Wanted, WantedClique
from kube.resources import PODCLIQUES, PODS

_OURS: Final = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Versions:
    """What stands for the newest templates: a label for each clique's, and one for all together."""

    labels: Mapping[str, str]
    generation: str


def versions(view: SetView) -> Versions:
    """Give our own hashes, or those of Grove for templates it knew that have not changed."""
    hashes = hashing.template_hashes(view.spec)
    ours = hashing.generation_of(hashes)
    if all(is_ours(_label(clique)) for clique in view.cliques.values()):
        return Versions(hashes, ours)
    taken_over = _taken_over(view, hashes)
    labels = {name: _most(taken_over.get(name, ()), ours) for name, ours in hashes.items()}
    return Versions(labels, _generation(view, labels) or ours)


def _generation(view: SetView, labels: Mapping[str, str]) -> str:
    """Give what Grove says stands for all templates, if it knew all of them and says one thing."""
    told: dict[str, set[str]] = {name: set() for name in labels}
    for clique in view.cliques.values():
        template = _template(view, clique)
        generation = clique.status.current_pod_clique_set_generation_hash
        if template and generation and _label(clique) == labels[template.name]:
            told[template.name].add(generation)
    said = set().union(*told.values())
    known = all(told.values()) and not any(is_ours(label) for label in labels.values())
    return said.pop() if known and len(said) == 1 else ""


def marks(view: SetView, clique: WantedClique) -> JsonObject:
    """Give the annotation of a PodClique whose label is not our own hash."""
    if is_ours(clique.template_hash):
        return {}
    priority = view.spec.template.priority_class_name
    return {names.TEMPLATE_HASH_ANNOTATION: hashing.template_hash(clique.template, priority)}


def steps(view: SetView, wanted: Wanted, _now: datetime) -> Iterator[Step]:
    """Note which template a PodClique has, and replace pods that only Grove would let start."""
    for clique in wanted.cliques.values():
        there = view.cliques.get(clique.name)
        if there is None or is_ours(_label(there)):
            continue
        if _label(there) == clique.template_hash and not _note(there):
            patch: JsonObject = {"metadata": {"annotations": marks(view, clique)}}
            yield Change(PODCLIQUES, there.metadata.name, there.metadata.uid, patch)
        if names.GROVE_GATE in _named(there.spec.pod_spec.get("schedulingGates")):
            continue
        for pod in view.pods_of(clique.name):
            if names.GROVE_GATE in pod.gates and pod.metadata.deletion_timestamp is None:
                yield Remove(PODS, pod.metadata.name, pod.metadata.uid)


def is_ours(label: str) -> bool:
    """Tell whether a label is a hash of our own."""
    return _OURS.fullmatch(label) is not None


def makes_pods_of(there: Clique, template: CliqueTemplate) -> bool:
    """Tell whether a PodClique's podSpec makes the pods of a template, whoever has written it."""
    written = template.spec.pod_spec
    newest = hashing.spec_hash(written)
    return newest == there.spec_hash or newest == hashing.spec_hash(
        _without_additions(there.spec.pod_spec, written)
    )


def is_groves_order(clique: WantedClique, said: Sequence[str]) -> bool:
    """Tell whether Grove may have made a member of a group wait for these, and nobody else did.

    It has a member wait for those of its group in all copies of the base gang, and forgets an order
    in scaled gangs. Which cliques wait for which can never be changed, so that is left.
    """
    place = clique.place
    if not place.group:
        return False
    wanted = {parent.clique for parent in clique.waits_for}
    if place.base and not said:
        return True
    own = f"{place.group_name}-{place.copy}-"
    shorts = {name.removeprefix(own) for name in wanted if name.startswith(own)}
    extra = {*said} - wanted
    return wanted <= {*said} and all(
        _is_in_another_copy(name, place.group_name, shorts) for name in extra
    )


def _is_in_another_copy(name: str, group: str, shorts: set[str]) -> bool:
    copy, _, short = name.removeprefix(f"{group}-").partition("-")
    return name.startswith(f"{group}-") and copy.isdecimal() and short in shorts


def _taken_over(view: SetView, hashes: Mapping[str, str]) -> dict[str, list[str]]:
    """Find, for each template, the labels of PodCliques that have it under another hash."""
    found: dict[str, list[str]] = {}
    for clique in view.cliques.values():
        label = _label(clique)
        if not label or is_ours(label):
            continue
        template = _template(view, clique)
        if template and hashes[template.name] == (_note(clique) or _hash(view, clique, template)):
            found.setdefault(template.name, []).append(label)
    return found


def _most(found: list[str] | tuple[()], ours: str) -> str:
    # Grove gives one template one label; should there be two, the fewest pods are replaced.
    counted = Counter(found)
    return max(counted, key=lambda label: (counted[label], label), default=ours)


def _template(view: SetView, clique: Clique) -> CliqueTemplate | None:
    """Find the template a PodClique was made from, by where its labels say it stands."""
    said = clique.metadata.labels
    group = said.get(names.SCALING_GROUP_LABEL)
    if group:
        stem = f"{group}-{said.get(names.SCALING_GROUP_REPLICA_LABEL)}-"
    else:
        stem = f"{view.metadata.name}-{said.get(names.SET_REPLICA_LABEL)}-"
    if not clique.metadata.name.startswith(stem):
        return None
    name = clique.metadata.name.removeprefix(stem)
    return next((each for each in view.spec.template.cliques if each.name == name), None)


def _hash(view: SetView, clique: Clique, template: CliqueTemplate) -> str:
    """Hash what a PodClique has of its template, without what Grove adds."""
    spec = _without_additions(clique.spec.pod_spec, template.spec.pod_spec)
    meta = clique.metadata
    priority = view.spec.template.priority_class_name
    return hashing.pods_hash(meta.labels, meta.annotations, spec, priority)


def _without_additions(spec: JsonObject, written: JsonObject) -> JsonObject:
    claims = _named(spec.get("resourceClaims")) - _named(written.get("resourceClaims"))
    kept = {**spec, "resourceClaims": _without(spec.get("resourceClaims"), claims)}
    return containers.changed(kept, partial(_plain, claims))


def _plain(claims: set[str], container: JsonObject) -> JsonObject:
    env = container.get("env")
    told = {name for name in _named(env) if name.startswith(hashing.GROUP_VARIABLES)}
    kept = {**container, "env": _without(env, told)}
    resources = container.get("resources")
    if isinstance(resources, dict):
        kept["resources"] = {**resources, "claims": _without(resources.get("claims"), claims)}
    return kept


def _named(items: Json) -> set[str]:
    found = items if isinstance(items, list) else []
    return {str(item.get("name")) for item in found if isinstance(item, dict)}


def _without(items: Json, gone: set[str]) -> Json:
    if not isinstance(items, list):
        return items
    return [each for each in items if not (isinstance(each, dict) and each.get("name") in gone)]


def _label(clique: Clique) -> str:
    return clique.metadata.labels.get(names.TEMPLATE_HASH_LABEL, "")


def _note(clique: Clique) -> str:
    return clique.metadata.annotations.get(names.TEMPLATE_HASH_ANNOTATION, "")
