"""Of many pods a question is asked in one go where it can be; nobody can tell from what it says."""

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.jsons import Json, JsonObject
from policies.cel import expression
from policies.cel.expression import Expression
from policies.cel.running import MOST_STEPS, Meter
from policies.expression_view import VARIABLES, PodSeen

AT_ONCE: Final = (
    "pod.containers.all(c, c.gpu.requests == c.gpu.limits)",
    "pod.allContainers.all(c, c.cpu.requests <= 2000 && c.image.startsWith('r'))",
    "pod.containers.all(c, 4000 / c.cpu.requests > 1)",
    "pod.containers.all(pod, pod.name != 'b')",
    "pod.nodeSelector.all(k, k != 'b')",
    "pod.containers.all(c, c.env.size() < 70 && c.name.contains('a'))",
)
ONE_BY_ONE: Final = (
    "pod.containers.all(c, c.name == pod.schedulerName)",
    "pod.containers.all(c, queue == 'q' && c.name != 'b')",
    "pod.containers.all(c, pod.containers.exists(d, d.name == c.name))",
    "!pod.containers.all(c, c.name == 'a')",
    "pod.containers.exists(c, c.name == 'a')",
    "pod.containers.filter(c, c.name == 'a').all(c, c.cpu.requests > 0)",
    "pod.containers.all(c, c.ports.all(p, p.containerPort > 0))",
)
AMOUNTS: Final[st.SearchStrategy[Json]] = st.sampled_from(
    [None, "1", "2", "500m", 3, True, "x" * 40]
)


@st.composite
def pods_of(draw: st.DrawFn) -> PodSeen:
    def container() -> JsonObject:
        requests: JsonObject = {"cpu": draw(AMOUNTS), "example.com/gpu": draw(AMOUNTS)}
        limits: JsonObject = {"example.com/gpu": draw(AMOUNTS)}
        return {
            "name": draw(st.sampled_from(["a", "b", 7])),
            "image": draw(st.sampled_from(["r/a", "x", "r" * 200])),
            "resources": {"requests": requests, "limits": limits},
            "env": [{"name": "X"}] * draw(st.sampled_from([0, 1, 70])),
        }

    few: list[Json] = [container() for _ in range(draw(st.integers(0, 3)))]
    many: list[Json] = [{"name": "a"}] * 70
    selector: JsonObject = dict.fromkeys(draw(st.lists(st.sampled_from(["a", "b"]))), "x")
    containers = few if draw(st.integers(0, 5)) else many
    return PodSeen("n", {"containers": containers, "nodeSelector": selector})


def read(text: str) -> Expression:
    return expression.read(text, VARIABLES)


@pytest.mark.parametrize("text", AT_ONCE + ONE_BY_ONE)
@given(pods=st.lists(pods_of(), max_size=4), steps=st.just(MOST_STEPS) | st.integers(0, 400))
def test_it_is_as_if_each_were_asked_by_itself(text: str, pods: list[PodSeen], steps: int) -> None:
    asked = read(text)
    told = []
    for each in (asked, replace(asked, _every=None)):
        meter = Meter(steps)
        told.append((each.failures({"queue": "q"}, "pod", pods, meter), meter.left))
    assert told[0] == told[1]


@pytest.mark.parametrize("text", AT_ONCE)
def test_what_asks_of_each_alone_is_asked_at_once(text: str) -> None:
    assert read(text)._every is not None


@pytest.mark.parametrize("text", ONE_BY_ONE[:-1])
def test_what_asks_of_more_is_not(text: str) -> None:
    assert read(text)._every is None


def test_it_is_no_longer_than_asking_one_by_one() -> None:
    """Of the same list, as the steps tell that are left."""
    containers: list[Json] = [{"name": "a"}, {"name": "b"}]
    spec: JsonObject = {"containers": containers}
    meter = Meter()
    assert read(AT_ONCE[0]).failures({}, "pod", [PodSeen("n", spec)] * 3, meter) == []
    alone = Meter()
    for _ in range(3):
        read(AT_ONCE[0]).ask({"pod": PodSeen("n", spec)}, alone)
    assert meter.left == alone.left < MOST_STEPS
