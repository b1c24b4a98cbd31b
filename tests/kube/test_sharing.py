import sys

from kube.sharing import Ones, Pool, Words


def _word(*parts: object) -> str:
    """Text that is no constant of this file, made anew each time."""
    return "-".join(map(str, parts))


def test_equal_values_become_one() -> None:
    pool: Pool[str, list[str]] = Pool()
    one, other = ["value"], ["value"]
    assert pool.shared("a", one) is one
    assert pool.shared("a", other) is one
    assert pool.shared("b", other) is other


def test_a_pool_forgets_what_is_gone_and_nothing_else() -> None:
    pool: Pool[int, list[int]] = Pool(least=10)
    held = [pool.shared(number, [number]) for number in range(3)]
    for number in range(1000):
        pool.shared(number, [number])
        assert len(pool) <= 11
    pool.forget()
    assert len(pool) == 3
    assert [pool.shared(number, []) for number in range(3)] == held == [[0], [1], [2]]


def test_a_pool_looks_again_only_when_it_has_doubled() -> None:
    looks: list[int] = []

    def held(value: int) -> bool:
        looks.append(value)
        return True

    pool: Pool[int, int] = Pool(held, least=10)
    for number in range(1000):
        pool.shared(number, number)
    assert len(pool) == 1000
    assert len(looks) < 2 * 1000


def test_values_that_are_their_own_key_are_forgotten_too() -> None:
    ones: Ones[tuple[int, str]] = Ones(least=10)
    held = ones.shared((7, _word("held", 7)))
    for number in range(1000):
        assert ones.shared((number, _word("held", number)))[0] == number
        assert len(ones) <= 11
    ones.forget()
    assert len(ones) == 1
    assert ones.shared((7, _word("held", 7))) is held


def test_words_become_one_within_maps_too() -> None:
    words = Words()
    one = words.within({_word("team"): _word("a", 1)})
    other = words.within({_word("team"): _word("a", 1)})
    assert one == other == {"team": "a-1"}
    assert one is not other
    assert [id(part) for part in (*one, *one.values())] == [
        id(part) for part in (*other, *other.values())
    ]
    assert words.shared(_word("a", 1)) is one["team"]


def test_words_are_forgotten_with_who_had_them() -> None:
    words = Words(least=10)
    held = [words.shared(_word("held", number)) for number in range(3)]
    for number in range(1000):
        words.within({_word("key", number): _word("value", number)})
        assert len(words) <= 12
    words.forget()
    assert len(words) == 3
    assert words.shared(_word("held", 2)) is held[2]


def test_what_is_shared_has_no_more_owners_than_it_has() -> None:
    pool: Pool[str, list[str]] = Pool()
    value = pool.shared("a", ["a"])
    before = sys.getrefcount(value)
    pool.forget()
    assert sys.getrefcount(value) == before
