"""One gang from submission to bound: what is written in objects about when each thing was. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from api import names
from api.models import Condition
from api.objects import condition_of, timestamp
from api.streams import Meta, Pod
from controller.gangs.views import GangView, Member
from penstock.dashboard.happenings import Happening
from penstock.dashboard.view import GangRow

SUBMITTED: Final = "submitted"
MADE: Final = "gang made"
PODS: Final = "pods made"
RESERVED: Final = "room reserved"
FIRST: Final = "first pod bound"
BOUND: Final = "all pods bound"
READY: Final = "ready"
WAITS: Final = "waits"


class Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that was at an instant; `kind` is step, wait, event or warning."""

    at: str
    what: str
    text: str = ""
    kind: str = "step"


class PodLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod on its way; what has not been yet is ""."""

    name: str
    clique: str
    node: str = ""
    state: str = ""
    made: str = ""
    bound: str = ""
    up: str = ""


class CliqueLine(msgspec.Struct, frozen=True):
    """A clique: how many pods it is to have, and cannot do without, and how far they are."""

    name: str
    pods: int
    minimum: int
    gated: int
    bound: int
    up: int


class Detail(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that is shown of one gang."""

    gang: str
    row: GangRow
    owner: str = ""
    base: str = ""
    domain: str = ""
    score: float | None = None
    marks: tuple[Mark, ...] = ()
    cliques: tuple[CliqueLine, ...] = ()
    pods: tuple[PodLine, ...] = ()
    pods_left_out: int = 0


MOST_PODS: Final = 500  # of one gang; a browser is to draw them


def detail(
    view: GangView, row: GangRow, owner: Meta | None, happenings: Iterable[Happening]
) -> Detail:
    """Tell all of one gang; `owner` is the set that it was made for."""
    gang, reservation = view.gang, view.reservation
    marks = [*_steps(view, owner), *(_event(each) for each in happenings)]
    pods = tuple(_pod(each) for each in view.members[:MOST_PODS])
    return Detail(
        gang="/".join(gang.key),
        row=row,
        owner=owner.name if owner is not None else "",
        base="/".join(gang.base) if gang.base else "",
        domain=reservation.spec.domain if reservation is not None else "",
        score=gang.status.placement_score,
        marks=tuple(sorted((each for each in marks if each.at), key=lambda each: each.at)),
        cliques=tuple(_cliques(view)),
        pods=pods,
        pods_left_out=len(view.members) - len(pods),
    )


def _steps(view: GangView, owner: Meta | None) -> Iterator[Mark]:
    gang, reservation = view.gang, view.reservation
    conditions = gang.status.conditions
    if owner is not None:
        yield Mark(_at(owner.creation_timestamp), SUBMITTED, f"PodCliqueSet {owner.name} stored")
    yield Mark(_at(gang.metadata.creation_timestamp), MADE, f"PodGang {gang.metadata.name}")
    made = condition_of(conditions, names.INITIALIZED)
    if made is not None and made.status == "True":
        yield Mark(made.last_transition_time, PODS, made.message)
    if reservation is not None:
        placed = condition_of(conditions, names.PLACED)
        text = placed.message if placed is not None and placed.status == "True" else ""
        yield Mark(_at(reservation.metadata.creation_timestamp), RESERVED, text)
    times = sorted(filter(None, (_since(each.pod, "PodScheduled") for each in view.members)))
    if times:
        yield Mark(times[0], FIRST)
    yield from _said(condition_of(conditions, names.SCHEDULED), BOUND, WAITS)
    yield from _said(condition_of(conditions, names.READY), READY, "")


def _said(condition: Condition | None, yes: str, no: str) -> Iterator[Mark]:
    """Tell what a condition says since when, in one word if it is so and in another if not."""
    if condition is None:
        return
    if condition.status == "True":
        yield Mark(condition.last_transition_time, yes, condition.message)
    elif no:
        text = f"{condition.reason}: {condition.message}" if condition.message else condition.reason
        yield Mark(condition.last_transition_time, no, text, "wait")


def _event(each: Happening) -> Mark:
    kind = "warning" if each.type == "Warning" else "event"
    return Mark(_at(each.at), each.reason, each.note, kind)


def _cliques(view: GangView) -> Iterator[CliqueLine]:
    for group in view.gang.spec.pod_groups:
        there = view.of_clique(group.name)
        yield CliqueLine(
            group.name, len(group.pod_references), group.min_replicas,
            sum(each.gated for each in there), sum(each.bound for each in there),
            sum(each.up for each in there),
        )  # fmt: skip


def _pod(each: Member) -> PodLine:
    meta, pod = each.pod.metadata, each.pod
    return PodLine(
        name=meta.name,
        clique=each.slot[0],
        node=pod.spec.node_name,
        state=_state(each),
        made=_at(meta.creation_timestamp),
        bound=_since(pod, "PodScheduled") if each.bound else "",
        up=_since(pod, "ContainersReady"),
    )


def _state(each: Member) -> str:
    """Say how far a pod is, in the glossary's words."""
    if each.pod.finished:
        return "finished"
    if each.up:
        return "up"
    if each.bound:
        return "bound"
    return "gated" if each.gated else "lifted"


def _since(pod: Pod, kind: str) -> str:
    """Tell since when a condition of the pod is true; "" if it is not."""
    for each in pod.status.conditions:
        if each.type == kind and each.status == "True":
            return _at(each.last_transition_time)
    return ""


def _at(when: datetime | None) -> str:
    return timestamp(when) if when is not None else ""
