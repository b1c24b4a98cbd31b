"""Random life of a set: edits, scales, failing pods, kills and API errors, and what comes of it.

After each step everybody else goes on until nobody writes any more; then what there is is held
against the oracle.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from typing_extensions import override

from api.jsons import JsonObject
from kube.transport import Call
from tests.model.checking import Seen, check, clique_of, image_of, is_up, named
from tests.model.memory import Target, part
from tests.model.oracle import Role, Strategy, Team, Wish
from tests.model.player import condition
from tests.model.stage import Stage

SETS = "apis/grove.io/v1alpha1/podcliquesets"
CLIQUES = "apis/grove.io/v1alpha1/podcliques"
GROUPS = "apis/grove.io/v1alpha1/podcliquescalinggroups"
GANGS = "apis/scheduler.grove.io/v1alpha1/podgangs"
SERVICES = "api/v1/services"
PODS = "api/v1/pods"

counts = st.integers(min_value=1, max_value=3)
shares = st.sampled_from((0.0, 0.0, 0.2, 0.5))
# After so many turns of the event loop the process is killed; after more than that, it is not.
LIFE = 400
instants = st.integers(min_value=0, max_value=600)
strategies = st.builds(
    Strategy,
    by_hand=st.sampled_from((False, False, False, True)),
    paused=st.sampled_from((False, False, True)),
    unavailable=st.sampled_from((None, 1, 2, "50%")),
    surge=st.sampled_from((None, None, 1, "50%")),
)


@st.composite
def wishes(draw: st.DrawFn) -> Wish:
    """Draw a set of up to three cliques, some of them in a scaling group."""
    roles: list[Role] = []
    for name in ("a", "b", "c")[: draw(counts)]:
        replicas = draw(counts)
        after = [role.name for role in roles if draw(st.booleans())]
        roles.append(Role(name, replicas, draw(st.integers(1, replicas)), tuple(after)))
    grouped = tuple(role.name for role in roles if draw(st.booleans()))
    copies = draw(counts)
    teams = [Team("g", grouped, copies, draw(st.integers(1, copies)))] if grouped else []
    startup = draw(st.sampled_from(("AnyOrder", "InOrder", "Explicit")))
    return Wish("m", roles, teams, draw(st.integers(1, 2)), startup=startup)


class Life(RuleBasedStateMachine):
    """One set from its making on."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stage = self.set_up()
        self.sound = False
        self.allowed = 0  # pods that may be deleted in this step
        self.victims: set[str] = set()
        self.struck: list[str] = []  # the clique that a mishap befell during an update
        self.broken: list[str] = []
        self.seen = Seen()

    def set_up(self) -> Stage:
        """Make the place where it lives."""
        return Stage()

    def run(self, work: Coroutine[None, None, None]) -> None:
        self.runner.run(work)

    @initialize(wish=wishes())
    def make(self, wish: Wish) -> None:
        self.wish = wish
        self.run(self.stage.start())
        self.stage.player.create(SETS, wish.body())
        self._end()

    @rule(replicas=st.integers(0, 3), share=shares, after=instants)
    def scale_set(self, replicas: int, share: float, after: int) -> None:
        self.wish.replicas = replicas
        self._step({"spec": {"replicas": replicas}}, share, after)

    @precondition(lambda self: self.wish.parts())
    @rule(which=st.integers(0, 99), count=st.integers(0, 3), share=shares, after=instants)
    def scale_clique(self, which: int, count: int, share: float, after: int) -> None:
        parts = self.wish.parts()
        self._scale_clique(parts[which % len(parts)].name, count)
        self._step({}, share, after)

    @precondition(lambda self: self.wish.groups())
    @rule(which=st.integers(0, 99), copies=st.integers(0, 4), share=shares, after=instants)
    def scale_group(self, which: int, copies: int, share: float, after: int) -> None:
        name = sorted(self.wish.groups())[which % len(self.wish.groups())]
        self._scale_group(name, copies)
        self._step({}, share, after)

    def _scale_clique(self, name: str, count: int) -> None:
        (chosen,) = (each for each in self.wish.parts() if each.name == name)
        # Below the minimum only nothing is allowed.
        count = count if count >= chosen.minimum else 0
        self.wish.counts[name] = count
        self.stage.player.patch(CLIQUES, name, {"spec": {"replicas": count}})

    def _scale_group(self, name: str, copies: int) -> None:
        copies = copies if copies >= self.wish.teams[0].minimum else 0
        self.wish.counts[name] = copies
        self.stage.player.patch(GROUPS, name, {"spec": {"replicas": copies}})

    @rule(which=st.integers(0, 2), count=counts, share=shares, after=instants)
    def edit_count(self, which: int, count: int, share: float, after: int) -> None:
        """Only what is made later follows a template's count."""
        role = self.wish.roles[which % len(self.wish.roles)]
        role.replicas = max(count, role.minimum)
        self._step(self.wish.body(), share, after)

    @rule(share=shares, after=instants)
    def edit_template(self, share: float, after: int) -> None:
        self.wish.edit_template()
        self._watched({}, share, after)

    @rule(strategy=strategies, share=shares, after=instants)
    def edit_strategy(self, strategy: Strategy, share: float, after: int) -> None:
        """What a pause had kept back may go on; nothing else begins."""
        self.wish.strategy = strategy
        self._watched({}, share, after)

    @rule(what=st.sampled_from(("lose", "fail", "clique", "group", "set", "pause")),
          which=st.integers(0, 99), count=st.integers(0, 4), share=shares, after=instants,
          rounds=st.integers(0, 4))  # fmt: skip
    def edit_template_and(
        self, what: str, which: int, count: int, share: float, after: int, rounds: int
    ) -> None:
        """Something else happens while pods are being replaced, or are about to be."""
        self.wish.edit_template()
        self.stage.wire.calls.clear()
        self.stage.player.patch(SETS, self.wish.name, self.wish.body())
        before = self._pods()
        self._witness()
        self.run(self._for_a_while(rounds))
        between = self._pods()
        # What is scaled in goes whatever its budget, and what went unnoticed costs nobody's.
        if share or what not in ("lose", "fail", "pause"):
            self.stage.wire.witness = lambda _: None
        edit = self._disturb(what, which, count)
        if self.wish.rolls:
            # Pods that a copy gets while it waits for its turn are as old as the others.
            grown = count if what == "clique" else 0
            self.allowed += len(before | between) + grown
        self._step(edit, share, after, fresh=False)

    async def _for_a_while(self, rounds: int) -> None:
        await self.stage.settle()
        for _ in range(rounds):
            self.stage.player.act()
            await self.stage.clock.advance(1.0)
            await self.stage.settle()

    def _disturb(self, what: str, which: int, count: int) -> JsonObject:
        """Have something happen that is not of the set, or give the edit of it that is."""
        pods, parts, groups = self.stage.player.pods(), self.wish.parts(), self.wish.groups()
        match what:
            case "lose" | "fail" if pods:
                name = str(part(pods[which % len(pods)], "metadata")["name"])
                self.victims.add(name)
                self.struck = [clique_of(pods[which % len(pods)])]
                if what == "lose":
                    self.stage.player.delete(PODS, name)
                else:
                    self.stage.player.fail(name)
            case "clique" if parts:
                self._scale_clique(parts[which % len(parts)].name, count)
            case "group" if groups:
                self._scale_group(sorted(groups)[which % len(groups)], count)
            case "set":
                self.wish.replicas = min(count, 3)
                return self.wish.body()
            case "pause" if not self.wish.strategy.paused:
                was = self.wish.strategy
                self.wish.strategy = replace(was, paused=True)
                self.stage.player.patch(SETS, self.wish.name, self.wish.body())
                self.run(self._for_a_while(3))
                self.wish.strategy = was
                return self.wish.body()
        return {}

    def _watched(self, edit: JsonObject, share: float, after: int) -> None:
        """Make an edit that lets pods be replaced, within the budget, or none."""
        self._witness()
        self._step(edit or self.wish.body(), share, after, replaced=self.wish.rolls)

    def _witness(self) -> None:
        self.stage.wire.witness = self._within_budget

    def _pods(self) -> set[str]:
        return {str(part(pod, "metadata")["name"]) for pod in self.stage.player.pods()}

    def _within_budget(self, call: Call) -> None:
        """Note a pod that is deleted for an update although it is new, or others are down."""
        target = Target.of(call.path)
        pod = self.stage.memory.objects.get((target.kind, target.namespace, target.name))
        if call.method != "DELETE" or target.kind != PODS or pod is None or not is_up(pod):
            return
        # Raised here, it would be taken for a mishap and tried again.
        if image_of(pod) == self.wish.image:
            self.broken.append(f"{target.name} was deleted although it was new")
        up = Counter(clique_of(each) for each in self.stage.player.pods() if is_up(each))
        # No replica's update waits for another that was struck before its turn.
        up.update(struck for struck in self.struck if struck[:4] != clique_of(pod)[:4])
        down = [*self.wish.lacking(clique_of(pod), up)]
        if down:
            self.broken.append(f"{target.name} was deleted while {down} were down: {up}")

    @precondition(lambda self: self.stage.player.pods())
    @rule(which=st.integers(0, 99), share=shares, after=instants, gone=st.booleans())
    def lose_pod(self, which: int, share: float, after: int, gone: bool) -> None:  # noqa: FBT001
        pods = self.stage.player.pods()
        name = str(part(pods[which % len(pods)], "metadata")["name"])
        self.victims.add(name)
        if gone:
            self.stage.player.delete(PODS, name)
        else:
            self.stage.player.fail(name)
        self._step({}, share, after)

    @precondition(lambda self: self.stage.player.pods())
    @rule(which=st.integers(0, 99))
    def weaken_pod(self, which: int) -> None:
        """A pod gets unready and, when all statuses have said so, ready again."""
        pods = self.stage.player.pods()
        pod = pods[which % len(pods)]
        name = str(part(pod, "metadata")["name"])
        self.stage.wire.calls.clear()
        self.stage.player.weaken(name)
        self.run(self.stage.quiet())
        self._check_weak(clique_of(pod))
        self.stage.player.cure(name)
        self._end()

    @precondition(lambda self: self.stage.player.pods())
    @rule(which=st.integers(0, 99))
    def neglect_pod(self, which: int) -> None:
        """A pod gets unready and nobody helps: what lacks its minimum is made anew, and no more."""
        pods = self.stage.player.pods()
        pod = pods[which % len(pods)]
        name = str(part(pod, "metadata")["name"])
        doomed = self.wish.made_anew(clique_of(pod))
        self.stage.wire.calls.clear()
        self.stage.player.weaken(name)
        self.run(self._long_time())
        deleted = {target.name for target in self.stage.wire.writes("DELETE", "pods")}
        assert {name.rpartition("-")[0] for name in deleted} == doomed
        self.allowed += sum(clique_of(each) in doomed for each in pods)
        if not doomed:
            self.stage.player.cure(name)
        self._end()

    async def _long_time(self) -> None:
        """Wait longer than the longest patience."""
        await self.stage.quiet()
        await self.stage.clock.advance(33 * 3600)
        await self.stage.quiet()

    def _check_weak(self, name: str) -> None:
        """One pod of this clique is not ready, and everything else is."""
        (mine,) = (p for p in self.wish.parts() if p.name == name)
        short = mine.pods - 1 < mine.minimum
        (clique,) = named(self.stage, "podcliques", name)
        assert part(clique, "status").get("readyReplicas", 0) == mine.pods - 1
        assert condition(clique, "MinAvailableBreached") == str(short)
        if mine.copy >= 0:
            copies = self.wish.groups()[mine.owner] - short
            (group,) = named(self.stage, "podcliquescalinggroups", mine.owner)
            assert part(group, "status").get("availableReplicas", 0) == copies
            short = copies < self.wish.teams[0].minimum
            assert condition(group, "MinAvailableBreached") == str(short)
        (owner,) = self.stage.memory.of_kind("podcliquesets")
        available = part(owner, "status").get("availableReplicas", 0)
        assert available == self.wish.replicas - short

    @rule(kind=st.sampled_from((CLIQUES, GROUPS, GANGS, SERVICES)), which=st.integers(0, 99),
          share=shares, after=instants)  # fmt: skip
    def lose_object(self, kind: str, which: int, share: float, after: int) -> None:
        """Somebody deletes what is not theirs."""
        there = self.stage.memory.of_kind(kind.rpartition("/")[2])
        if not there:
            return
        name = str(part(there[which % len(there)], "metadata")["name"])
        if kind == CLIQUES:
            self._forget(name)
            self.allowed += sum(name == clique_of(pod) for pod in self.stage.player.pods())
        if kind == GROUPS:
            members = [p.name for p in self.wish.parts() if p.owner == name]
            for member in (name, *members):
                self._forget(member)
            self.allowed += sum(clique_of(pod) in members for pod in self.stage.player.pods())
        self.stage.player.delete(kind, name)
        self._step({}, share, after)

    def _forget(self, name: str) -> None:
        """What is made in its place knows nothing of it."""
        self.wish.counts.pop(name, None)
        self.wish.given.pop(name, None)

    @rule(after=instants)
    def restart(self, after: int) -> None:
        self._step({}, 0.0, after)

    def _step(
        self,
        edit: JsonObject,
        share: float,
        after: int,
        *,
        replaced: bool = False,
        fresh: bool = True,
    ) -> None:
        """Make an edit while requests fail, kill whoever works on it after a while, and go on.

        A step that is not `fresh` goes on with another.
        """
        before = Counter(clique_of(pod) for pod in self.stage.player.pods())
        if edit:
            self.stage.player.patch(SETS, self.wish.name, edit)
        wanted = Counter({p.name: p.pods for p in self.wish.parts()})
        surplus = before.total() if replaced else (before - wanted).total()
        self.allowed += surplus + len(self.victims)
        if fresh:
            self.stage.wire.calls.clear()
        self.stage.trouble(share)
        self.run(self._interrupted(after, share))
        self._end()
        self.stage.wire.witness = lambda _: None

    async def _interrupted(self, after: int, share: float) -> None:
        await self.stage.some_time(after)
        if share:
            for _ in range(5):
                self.stage.player.act()
                await self.stage.clock.advance(1.0)
        if after > LIFE:
            self.stage.heal()
            # Whoever waits longer and longer for the server to come back.
            await self.stage.clock.advance(45.0)
            return
        await self.stage.kill()
        self.stage.heal()
        await self.stage.start()

    def _end(self) -> None:
        self.run(self.stage.quiet())
        deleted = {target.name for target in self.stage.wire.writes("DELETE", "pods")}
        assert len(deleted) <= self.allowed, (deleted, self.allowed)
        assert not self.broken, self.broken
        self.allowed = 0
        self.victims.clear()
        self.struck.clear()
        self.wish.settle()

    @invariant()
    def everything_is_as_it_should_be(self) -> None:
        self.sound = False
        check(self.stage, self.wish, self.seen)
        self.sound = True

    @override
    def teardown(self) -> None:
        if self.sound:
            self.stage.player.delete(SETS, self.wish.name)
            self.run(self.stage.quiet())
            assert self.stage.memory.left() == []
        self.run(self.stage.kill())
        self.runner.close()
