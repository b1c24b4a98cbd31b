from policies.audit_bounds import MOST_SORTS, Bounds, Pace, Sort

A, B = Sort("ns", "alice", "r"), Sort("ns", "bob", "r")


def test_each_sort_has_its_burst_and_then_its_pace() -> None:
    bounds = Bounds(Pace(3.0, 1.0), Pace(100.0, 100.0))
    assert [bounds.take(A, 0.0) for _ in range(5)] == [0, 0, 0, None, None]
    assert bounds.take(B, 0.0) == 0
    assert bounds.take(A, 1.0) == 2
    assert bounds.take(A, 1.5) is None
    assert bounds.take(A, 60.0) == 1


def test_all_together_have_theirs() -> None:
    bounds = Bounds(Pace(10.0, 1.0), Pace(4.0, 1.0))
    taken = [bounds.take(Sort("ns", str(i), "r"), 0.0) for i in range(6)]
    assert taken == [0, 0, 0, 0, None, None]


def test_what_went_without_is_owed_until_it_is_told() -> None:
    bounds = Bounds(Pace(1.0, 1.0), Pace(100.0, 100.0))
    for _ in range(4):
        bounds.take(A, 0.0)
    assert bounds.owed() == [(A, 3)]
    assert bounds.owed() == []


def test_memory_is_bounded_and_nothing_goes_uncounted() -> None:
    bounds = Bounds(Pace(1.0, 0.001), Pace(1e9, 1e9))
    told = 0
    for i in range(3 * MOST_SORTS):
        told += bounds.take(Sort("ns", str(i), "r"), 0.0) is not None
    owed = sum(count for _, count in bounds.owed())
    assert told + owed == 3 * MOST_SORTS
    assert len(bounds._sorts) <= MOST_SORTS + 1


def test_who_was_long_silent_makes_room() -> None:
    bounds = Bounds(Pace(1.0, 1.0), Pace(1e9, 1e9))
    for i in range(MOST_SORTS):
        bounds.take(Sort("ns", str(i), "r"), 0.0)
    assert bounds.take(A, 10.0) == 0
    assert bounds.take(A, 10.0) is None
    assert bounds.owed() == [(A, 1)]
