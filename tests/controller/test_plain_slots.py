"""Who gets which slot of a plain gang: as far as others could lift a pod onto it at any moment."""

from collections import Counter
from dataclasses import replace

import msgspec
from typing_extensions import override

from api import names
from api.streams import Node, Pod
from controller.gangs.plain_deciding import decide
from controller.gangs.plain_slots import Ledger
from tests.support.plaingangs import gang_of, ledger, plain, seen, slots

D = plain("d", born=3)
RUNNING = tuple(plain(name, on=f"n{i}", born=i) for i, name in enumerate("abc"))
ROOMS = ledger({0: "n0", 1: "n1", 2: "n2"})
WHOLE = gang_of("abc")


def test_a_smaller_namesake_stays_where_it_can_be_lifted_at_any_moment() -> None:
    small = plain("c", gpus="1", born=9)
    rooms = ledger({0: "n0", 1: "n1", 2: "n2"}, like=plain("any", gpus="4"))
    view = replace(seen(*RUNNING[:2], small, D, there=WHOLE), ledger=rooms)
    assert slots(decide(view)) == {0: "a", 1: "b", 2: "c", 3: "d"}


def test_no_slot_is_kept_for_a_pod_that_others_hold_back_too() -> None:
    held = replace_gates(D, names.GATE, "example.com/other")
    view = replace(seen(*RUNNING[:2], held, there=WHOLE), ledger=ROOMS)
    assert slots(decide(view)) == {0: "a", 1: "b", 2: "c", 3: "d"}


def replace_gates(pod: Pod, *gates: str) -> Pod:
    body = msgspec.to_builtins(pod)
    body["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
    return msgspec.convert(body, Pod)


def test_pods_of_another_size_do_not_look_at_every_slot_each() -> None:
    """Else the leader would lose its lease over one rollout."""
    looks = Counter[str]()

    class Counting(dict[str, Node]):
        @override
        def get(self, name: str, default: Node | None = None) -> Node | None:  # type: ignore[override]
            looks["slots"] += 1
            return super().get(name, default)

    before = [f"p{i:03}" for i in range(200)]
    found = ledger({i: f"n{i}" for i in range(200)})
    rooms = Ledger(found.rooms, Counting(found.nodes), committed=True)
    kept = plain("p000", on="n0")
    larger = [plain(f"q{i:03}", gpus="4", born=9) for i in range(200)]
    view = replace(seen(kept, *larger, there=gang_of(before)), ledger=rooms)
    assert len(slots(decide(view))) == 400
    assert looks["slots"] <= 200
