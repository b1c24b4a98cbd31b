"""What people keep counts as taken, once, and is offered to those alone who may have it."""

from dataclasses import replace

import msgspec
import pytest

from api import names
from api.jsons import Json
from api.keep import State
from api.reservation import State as EntryState
from controller.gangs.asking import Around, request
from controller.gangs.deciding import Place
from controller.gangs.keeps.known import Keeps
from controller.gangs.keeps.views import Keep
from controller.gangs.views import GangView, Reservation
from scheduler.requests import Anchor
from tests.support.clusters import node
from tests.support.keeping import GPU, keep, user
from tests.support.sets import gang, member, reservation, view
from tests.support.stockrooms import LEVELS, NODES, Stand

KEY = ("default", "room")
TWO = {0: "n0", 1: "n1"}
NOT_FOR_US: Json = [{"object": {"kind": "PodGang", "name": "other"}}]


class Kept:
    """Keeps in a stockroom of ten nodes, and who is told of what."""

    def __init__(self) -> None:
        self.stand = Stand()
        self.touched: list[tuple[str, str]] = []
        self.changes = 0
        self.entries: dict[tuple[str, str], Reservation] = {}
        self.keeps = Keeps(self.stand.room, self._changed, self.entries)
        self.keeps.watch(self.touched.append, lambda: None)

    def _changed(self) -> None:
        self.changes += 1

    def put(self, *kept: Keep) -> None:
        for each in kept:
            self.keeps.put(each.key, each)

    def entry(self, entry: Reservation) -> None:
        """The gang's entry in the ledger is like this now."""
        meta = entry.metadata
        self.entries[meta.namespace, meta.name] = entry
        self.keeps.follow((meta.namespace, meta.name), entry)
        self.stand.see(view(asking().gang, [], entry))

    def offered(self, seen: GangView | None = None) -> dict[str, dict[str, int]] | None:
        seen = seen or asking()
        found = self.keeps.offer(seen, Place(seen.members, ()))
        return {share.node: dict(share.amounts) for share in found.shares} if found else None


def asking(annotation: str = "", entry: Reservation | None = None) -> GangView:
    seen = gang({"a": (2, 2)})
    if annotation:
        meta = msgspec.structs.replace(
            seen.metadata, annotations={names.RESERVATION_REF: annotation}
        )
        seen = replace(seen, metadata=meta)
    return view(seen, [member("a", 0), member("a", 1)], entry)


def test_what_is_kept_counts_as_taken_until_it_ends() -> None:
    kept = Kept()
    kept.put(keep(slots=TWO))
    assert kept.stand.taken() == ["n0", "n1"]
    kept.put(keep(slots=TWO, state=State.EXPIRED))
    assert kept.stand.taken() == []
    kept.put(keep(slots=TWO))
    kept.keeps.put(KEY, None)
    assert kept.stand.taken() == []
    assert kept.changes == 4


def test_what_a_gang_draws_counts_once_whoever_is_heard_of_first() -> None:
    for keep_first in (True, False):
        kept = Kept()
        entry = user({0: "n0", 1: "n7"}, {"n0": 1})
        if keep_first:
            kept.put(keep(slots=TWO))
        kept.entry(entry)
        if not keep_first:
            kept.put(keep(slots=TWO))
        assert kept.stand.taken() == ["n0", "n1", "n7"]


def test_when_the_gang_goes_its_room_is_kept_again() -> None:
    kept = Kept()
    kept.put(keep(slots=TWO))
    kept.entry(user({0: "n0"}, {"n0": 1}))
    kept.keeps.follow(("default", "demo-0"), None)
    kept.stand.see(asking())
    assert kept.stand.taken() == ["n0", "n1"]
    assert kept.touched[-1] == KEY


def test_an_entry_draws_on_no_namesake_of_its_keep() -> None:
    kept = Kept()
    kept.entry(user({0: "n0"}, {"n0": 1}))
    made = keep(slots=TWO)
    kept.put(replace(made, metadata=msgspec.structs.replace(made.metadata, uid="made-later")))
    assert kept.stand.taken() == ["n0", "n0", "n1"]


def test_a_gang_is_offered_what_is_left_if_the_rules_mean_it() -> None:
    kept = Kept()
    assert kept.offered() is None
    kept.put(keep(slots=TWO, owners=NOT_FOR_US))
    assert kept.offered() is None
    kept.put(keep(slots=TWO))
    assert kept.offered() == {"n0": {GPU: 1, "pods": 1}, "n1": {GPU: 1, "pods": 1}}
    kept.put(keep())
    assert kept.offered() is None


def test_room_for_once_is_offered_to_no_second_gang() -> None:
    for once in (True, False):
        kept = Kept()
        kept.put(keep(slots=TWO, allocateOnce=once))
        kept.keeps.follow(("default", "other-0"), user({0: "n0"}, {"n0": 1}, name="other-0"))
        left = {"n1": {GPU: 1, "pods": 1}}
        assert kept.offered() == (None if once else left)


def test_a_gang_goes_on_with_the_keep_it_draws_on_whichever_it_asks_for() -> None:
    kept = Kept()
    kept.put(keep(slots=TWO), keep("more", {0: "n5"}))
    entry = user({0: "n0"}, {"n0": 1}, EntryState.BOUND)
    kept.entry(entry)
    assert kept.offered(asking("more", entry)) == {"n1": {GPU: 1, "pods": 1}}


def test_of_several_a_gang_gets_the_one_it_asks_for_else_the_oldest() -> None:
    kept = Kept()
    older = keep("z-older", {0: "n5"})
    meta = older.metadata
    assert meta.creation_timestamp is not None
    born = meta.creation_timestamp.replace(year=2020)
    older = replace(older, metadata=msgspec.structs.replace(meta, creation_timestamp=born))
    kept.put(keep("a-newer", {0: "n6"}), older)
    assert list(kept.offered() or ()) == ["n5"]
    assert list(kept.offered(asking("a-newer")) or ()) == ["n6"]
    assert list(kept.offered(asking("elsewhere/a-newer")) or ()) == ["n5"]


def test_keeps_of_other_namespaces_are_never_offered() -> None:
    kept = Kept()
    made = keep(slots=TWO)
    meta = msgspec.structs.replace(made.metadata, namespace="elsewhere")
    kept.put(replace(made, metadata=meta))
    assert kept.offered(asking("elsewhere/room")) is None


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        ("", ""),
        ("room", ""),
        ("far/room", "reservation room is in namespace far, and room is kept for its own only"),
        ("none", "there is no reservation none"),
        ("theirs", "reservation theirs is not for this gang, by its owners"),
        ("over", "reservation over is Expired"),
    ],
)
def test_a_gang_is_told_why_it_does_not_get_what_it_asks_for(annotation: str, said: str) -> None:
    kept = Kept()
    kept.put(
        keep(slots=TWO),
        keep("theirs", {0: "n5"}, owners=NOT_FOR_US),
        keep("over", {0: "n6"}, State.EXPIRED),
    )
    assert kept.keeps.unheeded(asking(annotation).gang, {}) == said


def test_a_gang_may_ask_for_the_place_of_another_by_its_name() -> None:
    kept = Kept()
    kept.entries["default", "older-0"] = reservation({("a", 0): "n4", ("a", 1): "n3"})
    after = asking("older-0").gang
    assert kept.keeps.before(after) == ("n3", "n4")
    assert kept.keeps.unheeded(after, {}) == ""
    for other in ("", "demo-0", "far/older-0", "none"):
        assert kept.keeps.before(asking(other).gang) == ()
    kept.entries.clear()
    assert kept.keeps.before(after) == ()


def test_the_place_of_another_gang_draws_one_that_has_no_base() -> None:
    seen = asking()
    asked = request(seen, Place(seen.members, ()), Around(before=("n3", "n4")))
    assert asked.anchors == (Anchor("n3"), Anchor("n4"))


def test_slots_on_nodes_that_are_gone_or_overfull_are_lost() -> None:
    kept = Kept()
    kept.put(keep(slots={0: "n0", 1: "n1", 2: "n2"}))
    for index in range(8):
        kept.stand.put(member("b", index, gated=False, node="n1"))
    found = kept.keeps.view(KEY, lambda name: name != "n2")
    assert found is not None
    assert found.lost == {"n1", "n2"}


def test_what_is_kept_holds_up_no_gang_that_has_its_slots() -> None:
    kept = Kept()
    kept.put(keep(slots={0: "n1"}))
    for index in range(8):
        kept.stand.put(member("b", index, gated=False, node="n1"))
    assert kept.stand.room.overdrawn("n1") == frozenset()


def test_a_snapshot_promises_nothing_of_what_is_kept() -> None:
    kept = Kept()
    kept.put(keep(slots=dict(enumerate(NODES))))
    found = kept.stand.room.snapshot(LEVELS)
    column = found.resources.index(GPU)
    assert set(found.free[:, column].tolist()) == {7}
    assert node("n0").status.allocatable[GPU] == "8"
