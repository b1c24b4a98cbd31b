import random

from hypothesis import given
from hypothesis import strategies as st

from kube.objects import BareObject, Key, ObjectMeta
from kube.store import Added, Change, Deleted, Modified, Store


def thing(name: str, version: int, uid: str = "u") -> BareObject:
    return BareObject(ObjectMeta(name=name, uid=uid, resource_version=str(version)))


def filled(*things: BareObject, at: int = 10) -> Store[BareObject]:
    store: Store[BareObject] = Store()
    store.replace(things, str(at))
    return store


def test_a_list_tells_what_it_changes() -> None:
    old_a, old_b = thing("a", 1), thing("b", 2)
    store = filled(old_a, old_b, thing("same", 3))
    new_b, new_c = thing("b", 11), thing("c", 12)
    changes = store.replace([new_b, new_c, thing("same", 3)], "12")
    assert changes == [Deleted(old_a), Modified(old_b, new_b), Added(new_c)]
    assert set(store.objects) == {("", "b"), ("", "c"), ("", "same")}


def test_a_namesake_is_another_object() -> None:
    old, new = thing("a", 1, "u1"), thing("a", 20, "u2")
    assert filled(old).replace([new], "20") == [Deleted(old), Added(new)]
    assert filled(old).put(new) == [Deleted(old), Added(new)]


def test_states_that_are_not_newer_change_nothing() -> None:
    store = filled(thing("a", 9))
    store.put(thing("a", 15))
    assert store.put(thing("a", 15)) == []
    assert store.put(thing("a", 14)) == []
    assert store.remove(("", "a"), "14") == []
    assert store.objects["", "a"].metadata.resource_version == "15"


def test_what_is_known_from_after_a_list_outlives_it() -> None:
    store = filled(thing("a", 1), thing("b", 2), thing("c", 3), at=3)
    own, newer = thing("new", 101), thing("a", 102)
    store.put(own)
    store.put(newer)
    store.remove(("", "c"), "103")
    changes = store.replace([thing("a", 1), thing("b", 99), thing("c", 3)], "100")
    assert changes == [Modified(thing("b", 2), thing("b", 99))]
    assert set(store.objects.values()) == {own, newer, thing("b", 99)}
    assert store.put(thing("c", 102)) == []
    assert store.replace([thing("b", 99)], "104") == [Deleted(newer), Deleted(own)]


def test_versions_are_numbers_not_texts() -> None:
    store = filled(thing("a", 9), at=9)
    assert store.put(thing("a", 10)) == [Modified(thing("a", 9), thing("a", 10))]


def test_an_echo_from_before_its_deletion_does_not_bring_an_object_back() -> None:
    store = filled(thing("a", 9))
    assert store.remove(("", "a"), "20") == [Deleted(thing("a", 9))]
    assert store.put(thing("a", 19)) == []
    assert store.put(thing("a", 21)) == [Added(thing("a", 21))]


def test_an_echo_from_before_the_list_changes_nothing() -> None:
    store = filled(at=100)
    assert store.put(thing("a", 99)) == []
    assert store.remove(("", "a"), "98") == []


def test_removing_the_unknown_tells_nobody_but_is_remembered() -> None:
    store = filled()
    assert store.remove(("", "a"), "20") == []
    assert store.put(thing("a", 15)) == []


def test_memory_of_deletions_is_bounded() -> None:
    store = filled()
    for n in range(5000):
        store.remove(("", f"n{n}"), str(100 + n))
    assert len(store._graves) == 4096
    assert store.put(thing("n4999", 4000)) == []


Op = tuple[str, bool]
histories = st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=25)


@given(histories=histories, chance=st.randoms(use_true_random=False), first=st.integers(0, 25))
def test_any_order_of_any_events_with_echoes_ends_in_the_newest_states(
    histories: list[Op], chance: random.Random, first: int
) -> None:
    """Each object's newest state wins, and handlers could have built the same from the changes."""
    truth: dict[Key, BareObject] = {}
    events: list[tuple[Key, BareObject | None, int]] = []
    listed: list[BareObject] = []
    first = min(first, len(histories))
    for number, (name, present) in enumerate(histories, start=1):
        key = ("", name)
        new = thing(name, number) if present else None
        events.append((key, new, number))
        if new is None:
            truth.pop(key, None)
        else:
            truth[key] = new
        if number == first:
            listed = list(truth.values())
    store: Store[BareObject] = Store()
    told: dict[Key, BareObject] = {}
    replay(told, store.replace(listed, str(first)))
    shuffled = events + events
    chance.shuffle(shuffled)
    for key, new, version in shuffled:
        replay(told, store.put(new) if new else store.remove(key, str(version)))
    assert dict(store.objects) == truth
    assert told == truth


def replay(told: dict[Key, BareObject], changes: list[Change[BareObject]]) -> None:
    for change in changes:
        match change:
            case Added(new):
                assert ("", new.metadata.name) not in told
                told["", new.metadata.name] = new
            case Modified(old, new):
                assert told["", new.metadata.name] == old
                told["", new.metadata.name] = new
            case Deleted(old):
                assert told.pop(("", old.metadata.name)) == old
