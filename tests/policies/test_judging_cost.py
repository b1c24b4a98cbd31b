"""What judging costs, in calls made instead of seconds, which differ from machine to machine."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from api.jsons import Json, JsonObject
from policies import reading
from tests.policies import drafts
from tests.policies.drafts import clique, cluster, constraint, draft, edited, group

LONG = "x" * 100_000
CLUSTER = cluster("net", node={"cpu": 64_000, "pods": 110}, domains={"example.com/rack": {}})


def calls(raw: JsonObject, before: JsonObject | None = None) -> int:
    """How many calls it takes to judge a set."""
    made = 0

    def count(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    counting = sys.getprofile()
    sys.setprofile(count)
    try:
        drafts.asked(raw, before, known=CLUSTER)
    finally:
        sys.setprofile(counting)
    return made


def pod(variables: int = 8) -> JsonObject:
    env: list[Json] = [{"name": f"V{i}", "value": "x"} for i in range(variables)]
    asked: JsonObject = {"requests": {"cpu": "4", "memory": "16Gi"}}
    return {"containers": [{"name": "main", "image": "x", "env": env, "resources": asked}]}


def grown(size: int) -> JsonObject:
    """A set of so many cliques, half of them in groups of two, all constrained and in order."""
    return draft(
        *(
            clique(
                f"c{i}",
                *([f"c{i - 1}"] if i else []),
                pod=pod(),
                labels={"app": "x"},
                topologyConstraint=constraint("rack"),
            )
            for i in range(size)
        ),
        groups=tuple(group(f"g{i}", f"c{i}", f"c{i + 1}") for i in range(0, size // 2, 2)),
        topologyConstraint=constraint("zone", name="net"),
    )


def ring(size: int) -> JsonObject:
    return draft(*(clique(f"c{i}", f"c{(i + 1) % size}") for i in range(size)))


def tangle(size: int) -> JsonObject:
    """Everybody waits for everybody."""
    return draft(*(clique(f"c{i}", *(f"c{j}" for j in range(size))) for i in range(8)))


def worded(size: int) -> JsonObject:
    return draft(clique("a", pod=pod(variables=size)))


def wrong(size: int) -> JsonObject:
    return draft(*(clique(f"C{i}", "nobody", pod={}) for i in range(size)))


@pytest.mark.parametrize(
    ("made", "size"),
    [(grown, 32), (wrong, 32), (ring, 500), (tangle, 500), (worded, 500)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_twice_the_size_costs_about_twice_as_much(
    made: Callable[[int], JsonObject], size: int
) -> None:
    one, two = made(size), made(2 * size)
    # What is remembered from the first time is not counted.
    drafts.asked(two, None, known=CLUSTER)
    assert calls(two) < 2.3 * calls(one)


def test_a_change_costs_no_more_than_a_creation_and_a_look_at_the_old_set() -> None:
    old = grown(20)
    new = edited(old, "spec/template/cliques/0/spec/podSpec/containers/0/image", "y")
    assert calls(new, old) < 2 * calls(new)


def test_what_is_too_much_costs_no_more_however_much_it_is() -> None:
    # All of it is read once, but not searched.
    assert calls(ring(4_000)) < 2 * calls(ring(2_000))


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(draft(*(clique(f"c{i}") for i in range(64)), name=LONG), id="set"),
        pytest.param(
            draft(
                *(clique(f"c{i}", counts={"autoScalingConfig": {}}) for i in range(64)),
                groups=(group(LONG, *(f"c{i}" for i in range(64))),),
            ),
            id="group",
        ),
        pytest.param(
            draft(clique(LONG), *(clique(f"c{i}", "x", "y", "z") for i in range(60))), id="choice"
        ),
        pytest.param(
            draft(*(clique(f"c{i}", counts={"roleName": LONG}) for i in range(64))), id="role"
        ),
        pytest.param(
            draft(
                *(clique(f"c{i}", topologyConstraint=constraint("rack", name=f"n{i}"))
                  for i in range(64)),
                topologyConstraint=constraint("rack", name=LONG),
            ),
            id="topology",
        ),
    ],
)  # fmt: skip
def test_a_name_that_is_none_for_its_length_is_not_repeated(raw: JsonObject) -> None:
    found = drafts.problems(raw, known=CLUSTER)
    assert any("at most" in problem.message for problem in found)
    assert max(len(problem.message) for problem in found) < 2_000


def crowded(size: int) -> JsonObject:
    return draft(clique("a", pod={"containers": [{"name": "c"} for _ in range(size)]}))


def vague(size: int) -> JsonObject:
    terms: list[Json] = [{} for _ in range(size)]
    required: JsonObject = {"nodeSelectorTerms": terms}
    affinity: JsonObject = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return draft(clique("a", pod={**drafts.POD, "affinity": {"nodeAffinity": affinity}}))


def shared(size: int) -> JsonObject:
    return draft(resourceClaimTemplates=[{} for _ in range(size)])


@pytest.mark.parametrize("made", [crowded, vague, shared], ids=lambda each: each.__name__)
@pytest.mark.no_cover
def test_what_nobody_writes_costs_little(made: Callable[[int], JsonObject]) -> None:
    assert calls(made(100_000), made(100_001)) < 60_000


def test_a_comparison_ends() -> None:
    many: list[Json] = [{"a": None} for _ in range(100_000)]
    assert not reading.alike({"x": many}, {"x": [{} for _ in many]})
