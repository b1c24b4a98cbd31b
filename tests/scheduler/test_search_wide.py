"""A slice of `make bench-quality`: what is hidden in one rack of hundreds is found."""

import msgspec
import pytest

from tests.bench import quality_engine, quality_judging, quality_peer, quality_wide

CASES = 6


@pytest.mark.parametrize("number", range(CASES))
def test_what_is_hidden_in_one_rack_of_hundreds_is_found(number: int) -> None:
    case = quality_wide.draw(3, number)
    answer = quality_engine.ask(case)
    assert answer.placed
    assert quality_judging.problems(case, answer.puts) == []


@pytest.mark.no_cover
def test_first_fit_fails_in_most_of_these() -> None:
    cases = [quality_wide.draw(3, number) for number in range(CASES)]
    assert sum(quality_peer.place(case) is None for case in cases) > CASES / 2


def test_most_racks_hold_as_much_as_is_needed_and_each_kind_of_pod() -> None:
    case = next(c for n in range(9) if len((c := quality_wide.draw(3, n)).groups) < 2)
    lone = [msgspec.structs.replace(clique, minimum=1) for clique in case.cliques]
    small = msgspec.structs.replace(case, cliques=tuple(lone))
    for rack in range(0, len(case.nodes), 40):
        there = msgspec.structs.replace(small, nodes=case.nodes[rack : rack + 4], groups=())
        for clique in lone:
            one = msgspec.structs.replace(there, cliques=(clique,))
            assert quality_engine.ask(one).placed
