"""What `gangs` shows to Prometheus."""

import msgspec
import pytest

from api import names
from api.podgang import PodGangStatus
from api.reservation import State
from api.streams import Custom, Meta
from controller.exposing import Metrics
from controller.gangs import lacking
from controller.gangs.metering import Known, Meters, stage
from controller.gangs.views import Reservation
from controller.podgang import Gang
from kube.cache import Added, Deleted
from tests.controller.test_gang_accounting import KEY, booked
from tests.support.manualclock import LeapingClock
from tests.support.sets import NOW, gang


class Desk:
    """The meters, and what they can look up."""

    def __init__(self) -> None:
        self.clock = LeapingClock(NOW)
        self.leads = True
        self.gangs: list[Gang] = []
        self.there: Reservation | None = None
        self.metrics = Metrics("gangs", lambda: self.leads)
        known = Known(
            lambda: map(stage, self.gangs),
            lambda key: next((each for each in self.gangs if each.key == key), None),
            lambda _: self.there,
            lambda: (3, 2),
        )
        self.meters = Meters(self.metrics, self.clock, lambda: self.leads, known)

    def see(self, there: Reservation | None, after: float = 0.0) -> None:
        self.clock.skip(after)
        self.there = there
        raw = Custom(Meta(name=KEY[1], namespace=KEY[0]))
        self.meters.on_reservation(Added(raw) if there else Deleted(raw))

    def shown(self, *series: str) -> list[float]:
        lines = [line.rpartition(" ") for line in self.metrics.written().decode().splitlines()]
        values = {name: float(value) for name, _, value in lines if not name.startswith("#")}
        return [values.get(each, -1.0) for each in series]


def ours(made: Reservation) -> Reservation:
    owner = {"kind": "PodGang", "name": KEY[1], "uid": made.spec.gang.uid, "controller": True}
    raw = {"name": KEY[1], "namespace": KEY[0], "uid": "r", "ownerReferences": [owner]}
    return Reservation(msgspec.convert(raw, Meta), made.spec, made.status)


def test_a_gang_on_its_way_to_its_nodes_is_timed() -> None:
    desk = Desk()
    born = NOW
    made = gang({"a": (2, 2)})
    meta = msgspec.structs.replace(made.metadata, creation_timestamp=born)
    desk.gangs = [Gang(meta, made.spec, made.status)]
    desk.meters.asked(KEY)
    desk.clock.skip(0.02)
    desk.meters.asked(KEY)
    desk.clock.skip(0.02)
    desk.meters.planned(0.004)
    desk.meters.decided(KEY, "placed")
    desk.see(ours(booked(State.HELD)))
    desk.see(ours(booked(State.BOUND)), after=2.0)
    assert desk.shown(
        'grove_gang_decision_seconds_bucket{le="0.025"}',
        'grove_gang_decision_seconds_bucket{le="0.05"}',
        'penstock_gangs_plan_seconds_bucket{le="0.005"}',
        'penstock_gangs_decisions_total{answer="placed"}',
        "penstock_gangs_reserve_to_bound_seconds_sum",
        'grove_gang_placement_score_bucket{le="0.5"}',
        'penstock_gangs_held_gpu_seconds_total{resource="nvidia.com/gpu"}',
    ) == pytest.approx([0, 1, 1, 1, 2.0, 1, 4.0])
    (waited,) = desk.shown("grove_gang_wait_seconds_sum")
    assert waited == pytest.approx(2.04)


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("2 of its pods lost their place and there is no other", "no_other_place"),
        ("a-0 was not bound: 0/3 nodes are available", "not_bound"),
        ("none of its pods was bound within 60 s, its gang timeout", "timeout"),
        ("its base gang was rolled back", "base_rolled_back"),
        (lacking.gates(()), "foreign_gates"),
    ],
)
def test_rollbacks_are_counted_by_cause_and_what_they_wasted(message: str, cause: str) -> None:
    desk = Desk()
    desk.see(ours(booked(State.LIFTING)))
    desk.see(ours(booked(State.ROLLED_BACK, message=message)), after=3.0)
    assert desk.shown(
        f'penstock_gangs_rollbacks_total{{cause="{cause}"}}',
        'penstock_gangs_wasted_gpu_seconds_total{resource="nvidia.com/gpu"}',
    ) == [1, 6]


def test_who_stands_by_counts_nothing_that_others_do() -> None:
    desk = Desk()
    desk.leads = False
    desk.see(ours(booked(State.LIFTING)))
    desk.see(ours(booked(State.BOUND)), after=3.0)
    held = 'penstock_gangs_held_gpu_seconds_total{resource="nvidia.com/gpu"}'
    assert desk.shown("penstock_gangs_leads", held) == [0, -1]
    assert desk.shown("penstock_gangs_reserve_to_bound_seconds_count") == [0]


def test_a_new_leader_counts_from_when_it_leads() -> None:
    desk = Desk()
    desk.leads = False
    desk.see(ours(booked(State.LIFTING)))
    desk.shown()
    desk.clock.skip(10.0)
    desk.shown()
    desk.leads = True
    desk.clock.skip(1.0)
    held = 'penstock_gangs_held_gpu_seconds_total{resource="nvidia.com/gpu"}'
    assert desk.shown(held) == [2]


def test_room_that_a_person_keeps_is_not_held_for_a_gang() -> None:
    desk = Desk()
    desk.see(booked(State.HELD))
    desk.clock.skip(5.0)
    assert desk.shown('penstock_gangs_held_gpu_seconds_total{resource="nvidia.com/gpu"}') == [-1]


def said(name: str, phase: str, reason: str, status: str = "False") -> Gang:
    made = gang({"a": (1, 1)}, name=name)
    condition = {
        "type": names.SCHEDULED, "status": status, "reason": reason,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    told = PodGangStatus.model_validate({"phase": phase, "conditions": [condition]})
    return Gang(made.metadata, made.spec, told)


def test_gangs_are_shown_by_phase_and_those_that_wait_by_reason() -> None:
    desk = Desk()
    desk.gangs = [
        said("one", "Pending", names.REASON_NEVER_FITS),
        said("two", "Pending", names.REASON_INSUFFICIENT),
        said("three", "Running", names.REASON_BOUND, "True"),
    ]
    phases = [f'grove_gangs{{phase="{phase}"}}' for phase in ("Pending", "Starting", "Running")]
    waiting = 'penstock_gangs_waiting{reason="NeverFits"}'
    depths = [f'penstock_gangs_queue_depth{{queue="{name}"}}' for name in ("look", "place")]
    assert desk.shown(*phases, waiting, *depths) == [2, 0, 1, 1, 3, 2]
    desk.gangs = desk.gangs[1:]
    assert desk.shown(phases[0], waiting) == [1, -1]
