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


@dataclass
class Team:
    """A scaling group of the set's template."""

    name: str
    roles: tuple[str, ...]
    replicas: int
    minimum: int


@dataclass(frozen=True)
class Part:
    """One clique that there must be: its gang, whose it is, and how many pods it has."""

    name: str
    gang: str
    owner: str
    pods: int
    minimum: int
    replica: int
    copy: int = -1  # of its group; alone it is in none

    @property
    def unit(self) -> str:
        """What an update takes one of at a time: pods of a clique, or copies of a group."""
        return self.name if self.copy < 0 else self.owner


@dataclass
class Wish:
    """A set as its author last wrote it, and what was scaled since.

    Its live objects keep the count they were made with, until somebody scales them.
    """

    name: str
    roles: list[Role]
    teams: list[Team]
    replicas: int = 1
    image: int = 1
    counts: dict[str, int] = field(default_factory=dict)

    def body(self) -> JsonObject:
        """Write the manifest."""
        cliques: list[Json] = [
            {
                "name": role.name,
                "spec": {
                    "roleName": role.name,
                    "replicas": role.replicas,
                    "minAvailable": role.minimum,
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
                "template": {
                    "cliques": cliques,
                    "podCliqueScalingGroups": groups,
                    "terminationDelay": "4h",
                },
            },
        }

    def settle(self) -> None:
        """Note that all is made: from now on each object has a count of its own."""
        counts = {part.name: part.pods for part in self.parts()} | self.groups()
        self.counts = counts

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

        That is all of a clique that stands alone, or the minima of its group's other copies; and
        the minima of the set's other replicas.
        """
        parts = self.parts()
        (mine,) = (part for part in parts if part.name == clique)
        enough = {part.name: up.get(part.name, 0) >= min(part.minimum, part.pods) for part in parts}
        if mine.copy < 0 and up.get(clique, 0) < mine.pods:
            yield clique
        for part in parts:
            beside = part.unit == mine.unit and part.copy != mine.copy
            elsewhere = part.replica != mine.replica and part.copy < 0
            if (beside or elsewhere) and not enough[part.name]:
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
        return Part(name, gang, owner, count, role.minimum, replica, copy)
