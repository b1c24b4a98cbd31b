"""Random life of a set: edits, scales, failing pods, kills and API errors, and what comes of it.

After each step everybody else goes on until nobody writes any more; then what there is is held
against the oracle.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from typing_extensions import override

from api.jsons import JsonObject
from kube.transport import Call
from tests.model.memory import Target, part
from tests.model.oracle import Part, Role, Team, Wish
from tests.model.player import condition, listed, said
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


@st.composite
def wishes(draw: st.DrawFn) -> Wish:
    """Draw a set of up to three cliques, some of them in a scaling group."""
    roles = []
    for name in ("a", "b", "c")[: draw(counts)]:
        replicas = draw(counts)
        roles.append(Role(name, replicas, draw(st.integers(1, replicas))))
    grouped = tuple(role.name for role in roles if draw(st.booleans()))
    copies = draw(counts)
    teams = [Team("g", grouped, copies, draw(st.integers(1, copies)))] if grouped else []
    return Wish("m", roles, teams, draw(st.integers(1, 2)))


class Life(RuleBasedStateMachine):
    """One set from its making on."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stage = self.set_up()
        self.sound = False
        self.allowed = 0  # pods that may be deleted in this step
        self.victims: set[str] = set()
        self.broken: list[str] = []

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
        chosen = parts[which % len(parts)]
        # Below the minimum only nothing is allowed.
        count = count if count >= chosen.minimum else 0
        self.wish.counts[chosen.name] = count
        self.stage.player.patch(CLIQUES, chosen.name, {"spec": {"replicas": count}})
        self._step({}, share, after)

    @precondition(lambda self: self.wish.groups())
    @rule(which=st.integers(0, 99), copies=st.integers(0, 4), share=shares, after=instants)
    def scale_group(self, which: int, copies: int, share: float, after: int) -> None:
        name = sorted(self.wish.groups())[which % len(self.wish.groups())]
        copies = copies if copies >= self.wish.teams[0].minimum else 0
        self.wish.counts[name] = copies
        self.stage.player.patch(GROUPS, name, {"spec": {"replicas": copies}})
        self._step({}, share, after)

    @rule(which=st.integers(0, 2), count=counts, share=shares, after=instants)
    def edit_count(self, which: int, count: int, share: float, after: int) -> None:
        """Only what is made later follows a template's count."""
        role = self.wish.roles[which % len(self.wish.roles)]
        role.replicas = max(count, role.minimum)
        self._step(self.wish.body(), share, after)

    @rule(share=shares, after=instants)
    def edit_template(self, share: float, after: int) -> None:
        self.wish.image += 1
        self.stage.wire.witness = self._within_budget
        self._step(self.wish.body(), share, after, replaced=True)
        self.stage.wire.witness = lambda _: None

    def _within_budget(self, call: Call) -> None:
        """Note a pod that is up and is deleted while others are down, more than may be."""
        target = Target.of(call.path)
        pod = self.stage.memory.objects.get((target.kind, target.namespace, target.name))
        if call.method != "DELETE" or target.kind != PODS or pod is None or not _is_up(pod):
            return
        up = Counter(_clique_of(each) for each in self.stage.player.pods() if _is_up(each))
        down = [*self.wish.lacking(_clique_of(pod), up)]
        if down:
            # Raised here, it would be taken for a mishap and tried again.
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
        self._check_weak(_clique_of(pod))
        self.stage.player.cure(name)
        self._end()

    @precondition(lambda self: self.stage.player.pods())
    @rule(which=st.integers(0, 99))
    def neglect_pod(self, which: int) -> None:
        """A pod gets unready and nobody helps: what lacks its minimum is made anew, and no more."""
        pods = self.stage.player.pods()
        pod = pods[which % len(pods)]
        name = str(part(pod, "metadata")["name"])
        doomed = self.wish.made_anew(_clique_of(pod))
        self.stage.wire.calls.clear()
        self.stage.player.weaken(name)
        self.run(self._long_time())
        deleted = {target.name for target in self.stage.wire.writes("DELETE", "pods")}
        assert {name.rpartition("-")[0] for name in deleted} == doomed
        self.allowed += sum(_clique_of(each) in doomed for each in pods)
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
        (clique,) = _named(self.stage, "podcliques", name)
        assert part(clique, "status").get("readyReplicas", 0) == mine.pods - 1
        assert condition(clique, "MinAvailableBreached") == str(short)
        if mine.copy >= 0:
            copies = self.wish.groups()[mine.owner] - short
            (group,) = _named(self.stage, "podcliquescalinggroups", mine.owner)
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
            self.wish.counts.pop(name, None)
            self.allowed += sum(name == _clique_of(pod) for pod in self.stage.player.pods())
        if kind == GROUPS:
            members = [p.name for p in self.wish.parts() if p.owner == name]
            for member in (name, *members):
                self.wish.counts.pop(member, None)
            self.allowed += sum(_clique_of(pod) in members for pod in self.stage.player.pods())
        self.stage.player.delete(kind, name)
        self._step({}, share, after)

    @rule(after=instants)
    def restart(self, after: int) -> None:
        self._step({}, 0.0, after)

    def _step(self, edit: JsonObject, share: float, after: int, *, replaced: bool = False) -> None:
        """Make an edit while requests fail, kill whoever works on it after a while, and go on."""
        before = Counter(_clique_of(pod) for pod in self.stage.player.pods())
        if edit:
            self.stage.player.patch(SETS, self.wish.name, edit)
        wanted = Counter({p.name: p.pods for p in self.wish.parts()})
        surplus = before.total() if replaced else (before - wanted).total()
        self.allowed += surplus + len(self.victims)
        self.stage.wire.calls.clear()
        self.stage.trouble(share)
        self.run(self._interrupted(after, share))
        self._end()

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
        self.wish.settle()

    @invariant()
    def everything_is_as_it_should_be(self) -> None:
        self.sound = False
        check(self.stage, self.wish)
        self.sound = True

    @override
    def teardown(self) -> None:
        if self.sound:
            self.stage.player.delete(SETS, self.wish.name)
            self.run(self.stage.quiet())
            assert self.stage.memory.left() == []
        self.run(self.stage.kill())
        self.runner.close()


def check(stage: Stage, wish: Wish) -> None:
    """Hold what there is against what the oracle expects."""
    memory = stage.memory
    pods = Counter(_clique_of(pod) for pod in memory.of_kind("pods"))
    assert pods == Counter({p.name: p.pods for p in wish.parts() if p.pods})
    assert _names(stage, "podcliques") == {p.name for p in wish.parts()}
    assert _names(stage, "podcliquescalinggroups") == set(wish.groups())
    assert _names(stage, "podgangs") == set(wish.gangs())
    assert _names(stage, "services") == wish.services()
    for clique in memory.of_kind("podcliques"):
        _check_clique(stage, wish, clique)
    for group in memory.of_kind("podcliquescalinggroups"):
        _check_group(wish, group)
    for gang in memory.of_kind("podgangs"):
        _check_gang(stage, wish, gang)
    (owner,) = memory.of_kind("podcliquesets")
    status = part(owner, "status")
    generation = part(owner, "metadata")["generation"]
    assert status["observedGeneration"] == generation, (generation, status)
    assert status.get("replicas", 0) == wish.replicas
    assert status.get("availableReplicas", 0) == wish.replicas
    assert status.get("updatedReplicas", 0) == wish.replicas
    assert status.get("lastErrors", []) == []
    assert part(status, "lastOperation")["state"] == "Succeeded"


def _check_clique(stage: Stage, wish: Wish, clique: JsonObject) -> None:
    name = str(part(clique, "metadata")["name"])
    (wanted,) = (p for p in wish.parts() if p.name == name)
    assert _owner(clique) == wanted.owner
    pods = [pod for pod in stage.memory.of_kind("pods") if _clique_of(pod) == name]
    for pod in pods:
        assert _owner(pod) == name
        assert part(pod, "metadata")["labels"]["grove.io/podgang"] == wanted.gang  # type: ignore[call-overload, index]
        (container,) = listed(part(pod, "spec"), "containers")
        assert container["image"] == f"model:{wish.image}"
        assert part(pod, "status")["phase"] == "Running"
    hosts = {str(part(pod, "spec")["hostname"]) for pod in pods}
    assert len(hosts) == wanted.pods
    assert all(host.rpartition("-")[0] == name for host in hosts)
    status = part(clique, "status")
    for count in ("replicas", "readyReplicas", "scheduledReplicas", "updatedReplicas"):
        assert status.get(count, 0) == wanted.pods, count
    assert status.get("scheduleGatedReplicas", 0) == 0
    assert condition(clique, "MinAvailableBreached") == "False"
    assert said(clique, "PodCliqueScheduled")
    assert status["observedGeneration"] == part(clique, "metadata")["generation"]


def _check_group(wish: Wish, group: JsonObject) -> None:
    copies = wish.groups()[str(part(group, "metadata")["name"])]
    status = part(group, "status")
    for count in ("replicas", "availableReplicas", "scheduledReplicas", "updatedReplicas"):
        assert status.get(count, 0) == copies, count
    assert condition(group, "MinAvailableBreached") == "False"


def _check_gang(stage: Stage, wish: Wish, gang: JsonObject) -> None:
    wanted: list[Part] = wish.gangs()[str(part(gang, "metadata")["name"])]
    groups = {str(group["name"]): group for group in listed(part(gang, "spec"), "podgroups")}
    assert groups.keys() == {p.name for p in wanted}
    for each in wanted:
        referred = {str(ref["name"]) for ref in listed(groups[each.name], "podReferences")}
        there = {
            str(part(pod, "metadata")["name"])
            for pod in stage.memory.of_kind("pods")
            if _clique_of(pod) == each.name
        }
        assert referred == there
        assert groups[each.name]["minReplicas"] == min(each.minimum, each.pods)
    assert said(gang, "Initialized")


def _named(stage: Stage, plural: str, name: str) -> list[JsonObject]:
    return [o for o in stage.memory.of_kind(plural) if part(o, "metadata")["name"] == name]


def _names(stage: Stage, plural: str) -> set[str]:
    return {str(part(thing, "metadata")["name"]) for thing in stage.memory.of_kind(plural)}


def _owner(thing: JsonObject) -> str:
    (owner,) = listed(part(thing, "metadata"), "ownerReferences")
    return str(owner["name"])


def _is_up(pod: JsonObject) -> bool:
    return "deletionTimestamp" not in part(pod, "metadata") and said(pod, "ContainersReady")


def _clique_of(pod: JsonObject) -> str:
    return str(part(part(pod, "metadata"), "labels")["grove.io/podclique"])
