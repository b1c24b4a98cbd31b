"""Which gangs keep apart from which, and over which level: what a PodGang says of it. Pure."""

from collections.abc import Iterator
from typing import Final

import msgspec

from api import names
from api.jsons import JsonObject
from api.streams import Expression, SpreadConstraint
from controller.gangs import plain_slots
from controller.podgang import Gang
from scheduler.filters import constraints
from scheduler.requests import Kin, Spread

HARD: Final = "DoNotSchedule"  # as pods say it


def wishes(gang: Gang) -> tuple[Spread, ...]:
    """Read a gang's wishes, the level of each as it is written: all constraints of its spec.

    Without any it is that of its set's annotation, which is kept as well as can be.
    """
    found = tuple(each for each in _constraints(gang) if isinstance(each, Spread))
    word = gang.metadata.annotations.get(names.SPREAD_ANNOTATION, "")
    return found or ((Spread(word),) if word else ())


def unread(gang: Gang) -> Iterator[str]:
    """Say what of a gang's wishes nobody heeds, in whichever topology."""
    found = list(_constraints(gang))
    yield from (each for each in found if isinstance(each, str))
    if names.SPREAD_ANNOTATION in gang.metadata.annotations and any(
        isinstance(each, Spread) for each in found
    ):
        yield f"its annotation {names.SPREAD_ANNOTATION}, beside spreadConstraints,"


def kin(gang: Gang) -> Kin:
    """Say who a gang is to others: of which replica and set, and with which labels.

    Plain gangs are of no set: those of a namespace that ask for the same level are a family.
    """
    meta = gang.metadata
    family = meta.controller_uid
    if not family and plain_slots.is_plain(meta):
        word = meta.annotations.get(names.SPREAD_ANNOTATION, "")
        family = f"plain/{word}" if word else ""
    replica = gang.base[1] if gang.base else meta.name
    return Kin(replica, family, tuple(sorted(meta.labels.items())))


def _constraints(gang: Gang) -> Iterator[Spread | str]:
    """Read each constraint, or name one that is not heeded, and say why."""
    labels = gang.metadata.labels
    for i, raw in enumerate(gang.spec.spread_constraints):
        yield _read(raw, labels) or f"spreadConstraints[{i}], which has no labelSelector,"


def _read(raw: JsonObject, labels: dict[str, str]) -> Spread | None:
    try:
        read = msgspec.convert(raw, SpreadConstraint)
    except msgspec.ValidationError:
        return None
    # As for pods, one without a selector is about nobody.
    among = constraints.requirements(read.label_selector)
    if not read.topology_key or among is None:
        return None
    own = {Expression(k, "In", (labels[k],)) for k in read.match_label_keys if k in labels}
    return Spread(
        read.topology_key,
        hard=read.when_unsatisfiable == HARD,
        skew=max(1, read.max_skew),
        among=(*among, *sorted(own - set(among), key=lambda each: each.key)),
        min_domains=read.min_domains or 1,
        by_affinity=read.node_affinity_policy == "Honor",
        by_taints=read.node_taints_policy == "Honor",
    )
