"""Whatever state a set is in, an update takes no more than its budget lets it."""

from collections.abc import Callable
from zlib import crc32

from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from api.streams import Pod
from controller.workloads.expansion import expand
from controller.workloads.stepping import Step
from controller.workloads.updates import budgets, rolling
from tests.controller.test_updating import GROUP, spec_of
from tests.support.fleets import Fleet
from tests.support.generated_pods import parts
from tests.support.sets import clique

_shares: st.SearchStrategy[Json] = st.sampled_from([1, 2, 3, 4, "10%", "34%", "50%", "100%"])
_rules = parts(maxUnavailable=_shares, maxSurge=_shares)
_IMAGES = ("one", "two", "three")
_MOVES = (
    "look", "look", "look", "ready", "ready some", "unready some", "die some", "edit", "edit",
    "gone",
)  # fmt: skip


def spec_for(image: str, rules: JsonObject, sizes: tuple[int, int, int]) -> PodCliqueSetSpec:
    alone, minimum, copies = sizes
    group = {**GROUP, "replicas": copies}
    roles = (clique("router", alone, min(alone, minimum)), clique("leader", 1), clique("worker", 2))
    strategy: Json = rules
    return spec_of(*roles, image=image, replicas=2, groups=(group,), rollingUpdate=strategy)


def some(draw: st.DrawFn) -> Callable[[Pod], bool]:
    """About half of the pods, the same ones each time they are asked for."""
    salt = draw(st.integers(0, 7))
    return lambda pod: crc32(f"{salt}{pod.metadata.name}".encode()) % 3 == 0


class _Watched(Fleet):
    """A fleet that holds each look against the budget."""

    @override
    def step(self) -> list[Step]:
        before = self.standing()
        taken = {
            s.uid
            for s in self.rollout().removals
            # Such a step is for a pod that still waits, and nothing is lost with it.
            if not s.version
        }  # fmt: skip
        after = self.standing(taken)
        for name, (ready, wanted, unavailable, _) in before.items():
            left = after[name][0]
            assert left >= min(ready, wanted - unavailable), (name, before[name], after[name])
        for name, (_, _, most, starting) in before.items():
            assert after[name][3] <= max(starting, most + self.surplus(name)), (name, after[name])
        return super().step()

    def surplus(self, name: str) -> int:
        want = expand(self.view).cliques.get(name)
        return budgets.of_clique(self.view, want.replicas).surplus if want else 0

    def standing(self, without: set[str] = frozenset()) -> dict[str, tuple[int, int, int, int]]:  # type: ignore[assignment]
        """By clique and group: how many are ready, wanted, may be missing, and are starting."""
        view, wanted = self.view, expand(self.view)
        found: dict[str, tuple[int, int, int, int]] = {}
        for replica in rolling.replicas(view, wanted):
            for alone in replica.alone:
                old = [pod for pod in alone.old if pod.metadata.uid not in without]
                ready = sum(pod.containers_ready for pod in (*old, *alone.new))
                count = alone.want.replicas
                starting = max(0, count - len(old) - alone.new_ready)
                budget = budgets.of_clique(view, count)
                found[alone.want.name] = (ready, count, budget.unavailable, starting)
            for group in replica.groups:
                ready = starting = 0
                for copy in group.copies:
                    lost = sum(p.metadata.uid in without for m in copy.members for p in m.old)
                    ready += copy.settled and not lost
                    starting += bool(lost) or not (copy.behind or copy.settled)
                budget = budgets.of_group(view, group.want.copies)
                found[group.want.name] = (
                    ready, group.want.copies, budget.unavailable, starting,
                )  # fmt: skip
        return found


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_no_look_ever_takes_more_than_the_budget_and_all_is_updated_in_the_end(
    data: st.DataObject,
) -> None:
    rules = data.draw(_rules)
    sizes = data.draw(st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 4)))
    fleet = _Watched(spec_for("one", rules, sizes))
    fleet.lingering = data.draw(st.booleans())
    fleet.silent = data.draw(st.booleans())
    fleet.look()
    if data.draw(st.booleans()):
        fleet.ready()
    for move in data.draw(st.lists(st.sampled_from(_MOVES), max_size=14)):
        if move == "look":
            fleet.step()
        elif move == "ready":
            fleet.ready()
        elif move == "ready some":
            fleet.ready(data.draw(st.composite(some)()))
        elif move == "unready some":
            fleet.unready(data.draw(st.composite(some)()))
        elif move == "die some":
            unlucky = data.draw(st.composite(some)())
            fleet.lose(unlucky)
        elif move == "gone":
            fleet.gone()
        else:
            fleet.edit(spec_for(data.draw(st.sampled_from(_IMAGES)), rules, sizes))
            fleet.step()
    fleet.edit(spec_for("last", rules, sizes))
    fleet.silent = False
    fleet.settle()
    assert {image for found in fleet.images().values() for image in found} == {"new"}
