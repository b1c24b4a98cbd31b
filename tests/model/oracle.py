"""What a set's author may expect to find, worked out from the words of the specification alone.

Nothing here comes from the code under test: names are put together anew, and so are all counts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from api.jsons import Json, JsonObject


@dataclass
class Role:
    """A clique of the set's template."""

    name: str
    replicas: int
    minimum: int
    after: tuple[str, ...] = ()


@dataclass
class Team:
    """A scaling group of the set's template."""

    name: str
    roles: tuple[str, ...]
    replicas: int
    minimum: int


@dataclass(frozen=True)
class Strategy:
    """How a change of the templates is to reach pods; a share is a count or a percentage."""

    by_hand: bool = False
    paused: bool = False
    unavailable: int | str | None = None
    surge: int | str | None = None

    def body(self) -> JsonObject:
        """Write it so that a merge patch takes out what is not in it."""
        rolling: JsonObject = {"maxUnavailable": self.unavailable, "maxSurge": self.surge}
        kind = "OnDelete" if self.by_hand else "RollingRecreate"
        return {"type": kind, "paused": self.paused, "rollingUpdate": rolling}

    def missing(self, pods: int) -> int:
        """Say how many pods of a clique that stands alone may be down in an update."""
        surge = -(-_share(self.surge, pods) // 100) if self.surge is not None else 0
        if self.unavailable is None:
            return 0 if surge else 1
        down = _share(self.unavailable, pods) // 100
        return down if down or surge else 1

    def missing_copies(self, copies: int) -> int:
        """Say how many copies of a group may be down in an update."""
        return 1 if self.unavailable is None else max(1, _share(self.unavailable, copies) // 100)


def _share(share: int | str, whole: int) -> int:
    """Give hundredths."""
    return 100 * share if isinstance(share, int) else int(share.rstrip("%")) * whole


@dataclass(frozen=True)
class Part:
    """One clique that there must be: its gang, whose it is, and how many pods it has."""

    name: str
    role: str
    gang: str
    owner: str
    pods: int
    minimum: int
    replica: int
    copy: int = -1  # of its group; alone it is in none

    @property
    def unit(self) -> str:
        """What an update takes some of at a time: pods of a clique, or copies of a group."""
        return self.name if self.copy < 0 else self.owner


@dataclass
class Wish:
    """A set as its author last wrote it, and what was scaled since.

    Its live objects keep the count they were made with, until somebody scales them. `given` says
    which image each PodClique was last given. While `left` is true, old pods are for people to
    delete: the last change was made under OnDelete.
    """

    name: str
    roles: list[Role]
    teams: list[Team]
    replicas: int = 1
    image: int = 1
    startup: str = "AnyOrder"
    strategy: Strategy = Strategy()
    counts: dict[str, int] = field(default_factory=dict)
    given: dict[str, int] = field(default_factory=dict)
    left: bool = False

    def body(self) -> JsonObject:
        """Write the manifest."""
        cliques: list[Json] = [
            {
                "name": role.name,
                "spec": {
                    "roleName": role.name,
                    "replicas": role.replicas,
                    "minAvailable": role.minimum,
                    "startsAfter": [*role.after] if self.startup == "Explicit" else [],
                    "podSpec": {
                        # No scheduler finds a node for it: the test does.
                        "nodeSelector": {"nobody": "here"},
                        "containers": [{"name": "main", "image": f"model:{self.image}"}],
                    },
                },
            }
            for role in self.roles
        ]
        groups: list[Json] = [
            {
                "name": team.name,
                "cliqueNames": list(team.roles),
                "replicas": team.replicas,
                "minAvailable": team.minimum,
            }
            for team in self.teams
        ]
        return {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodCliqueSet",
            "metadata": {"name": self.name},
            "spec": {
                "replicas": self.replicas,
                "updateStrategy": self.strategy.body(),
                "template": {
                    "cliqueStartupType": f"CliqueStartupType{self.startup}",
                    "cliques": cliques,
                    "podCliqueScalingGroups": groups,
                    "terminationDelay": "4h",
                },
            },
        }

    def settle(self) -> None:
        """Note that all is made: from now on each object has a count of its own."""
        if self.rolls:
            self.left = False
        elif self.strategy.by_hand:
            self.left = True
        parts = self.parts()
        self.given = {part.name: self.image_of(part.name) for part in parts}
        self.counts = {part.name: part.pods for part in parts} | self.groups()

    def edit_template(self) -> None:
        """Have all pods be of another image."""
        self.image += 1
        self.left = self.strategy.by_hand

    @property
    def rolls(self) -> bool:
        """Whether pods are made to follow the newest template.

        Another strategy alone begins nothing, but goes on with what a pause had kept back.
        """
        if self.strategy.paused or self.strategy.by_hand:
            return False
        kept_back = any(
            self.given.get(part.name, self.image) != self.image for part in self.parts()
        )
        return kept_back or not self.left

    def image_of(self, clique: str) -> int:
        """Say which image a clique's next pod has; one that is new has the newest."""
        return self.given.get(clique, self.image) if self.strategy.paused else self.image

    def waits_for(self, part: Part) -> list[str]:
        """Name the cliques that one waits for, in full."""
        roles = [role.name for role in self.roles]
        mine = self.roles[roles.index(part.role)]
        chosen: list[str] = []
        if self.startup == "InOrder":
            before = [
                name for name in self.roles[: roles.index(part.role)] if self._beside(part, name)
            ]
            chosen = [role.name for role in before[-1:]]
        elif self.startup == "Explicit":
            chosen = [
                name for name in mine.after if self._beside(part, self.roles[roles.index(name)])
            ]
        base = f"{self.name}-{part.replica}"
        found: list[str] = []
        for name in chosen:
            team = next((team for team in self.teams if name in team.roles), None)
            if team is None:
                found.append(f"{base}-{name}")
            else:
                copies = range(team.minimum) if part.copy < 0 else [part.copy]
                found += [f"{base}-{team.name}-{copy}-{name}" for copy in copies]
        return found

    def _beside(self, part: Part, role: Role) -> bool:
        """Tell whether a role is in the gang of this part."""
        teamed = any(role.name in team.roles for team in self.teams)
        return teamed if part.gang != f"{self.name}-{part.replica}" else True

    def stuck(self) -> bool:
        """Tell whether some pod waits for pods that there will never be."""
        parts = self.parts()
        sizes = {part.name: part.pods for part in parts}
        minima = {part.name: part.minimum for part in parts}
        return any(
            parent not in sizes or sizes[parent] < minima[parent]
            for part in parts
            if part.pods
            for parent in self.waits_for(part)
        )

    def groups(self) -> dict[str, int]:
        """Say how many copies each scaling group has."""
        return {
            (name := f"{self.name}-{i}-{team.name}"): self.counts.get(name, team.replicas)
            for i in range(self.replicas)
            for team in self.teams
        }

    def parts(self) -> list[Part]:
        """List all cliques."""
        return [part for i in range(self.replicas) for part in self._of_replica(i)]

    def gangs(self) -> dict[str, list[Part]]:
        """Say which cliques each gang has; a replica has its first gang even if that is empty."""
        found: dict[str, list[Part]] = {f"{self.name}-{i}": [] for i in range(self.replicas)}
        for part in self.parts():
            found.setdefault(part.gang, []).append(part)
        return found

    def services(self) -> set[str]:
        """Name the services that give pods their host names."""
        return {f"{self.name}-{i}" for i in range(self.replicas)}

    def lacking(self, clique: str, up: Mapping[str, int]) -> Iterator[str]:
        """Name what must be up before an update may take a pod of this clique, and is not.

        That is as many pods of a clique that stands alone, or other copies of its group, as the
        budget asks for; and the minima of the set's other replicas.
        """
        parts = self.parts()
        mine = next((part for part in parts if part.name == clique), None)
        if mine is None:
            return  # the set was scaled in
        enough = {part.name: up.get(part.name, 0) >= min(part.minimum, part.pods) for part in parts}
        if mine.copy < 0:
            if up.get(clique, 0) <= mine.pods - self.strategy.missing(mine.pods):
                yield clique
        else:
            beside = {p.copy for p in parts if p.owner == mine.owner and not enough[p.name]}
            if len(beside | {mine.copy}) > self.strategy.missing_copies(self.groups()[mine.owner]):
                yield from sorted(f"copy {copy} of {mine.owner}" for copy in beside)
        for part in parts:
            if part.replica != mine.replica and part.copy < 0 and not enough[part.name]:
                yield part.name
        for group, copies in self.groups().items():
            (team,) = self.teams
            there = [p for p in parts if p.owner == group]
            if there and there[0].replica != mine.replica:
                down = len({p.copy for p in there if not enough[p.name]})
                if copies - down < min(team.minimum, copies):
                    yield group

    def made_anew(self, clique: str) -> set[str]:
        """Name the cliques whose pods go when one pod of this clique is unready for too long."""
        parts = self.parts()
        (mine,) = (part for part in parts if part.name == clique)
        if mine.pods - 1 >= mine.minimum:
            return set()
        scope = [part for part in parts if part.replica == mine.replica]
        if mine.copy >= 0 and self.groups()[mine.owner] - 1 >= self.teams[0].minimum:
            scope = [part for part in scope if (part.unit, part.copy) == (mine.unit, mine.copy)]
        return {part.name for part in scope if part.pods}

    def _of_replica(self, i: int) -> Iterator[Part]:
        base = f"{self.name}-{i}"
        teamed = {name for team in self.teams for name in team.roles}
        for role in self.roles:
            if role.name not in teamed:
                yield self._part(f"{base}-{role.name}", role, base, (self.name, i, -1))
        for team in self.teams:
            group = f"{base}-{team.name}"
            for j in range(self.groups()[group]):
                gang = base if j < team.minimum else f"{group}-{j - team.minimum}"
                for role in self.roles:
                    if role.name in team.roles:
                        yield self._part(f"{group}-{j}-{role.name}", role, gang, (group, i, j))

    def _part(self, name: str, role: Role, gang: str, place: tuple[str, int, int]) -> Part:
        owner, replica, copy = place
        count = self.counts.get(name, role.replicas)
        return Part(name, role.name, gang, owner, count, role.minimum, replica, copy)
