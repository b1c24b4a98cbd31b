"""A set as a tree of gangs, groups, cliques and pods: where they are, who waits for whom. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from rich.text import Text
from rich.tree import Tree

from api import names
from api.objects import condition_of
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from api.podgang import Phase
from api.streams import Meta, Node, Pod
from controller.podgang import Gang
from controller.workloads import views
from controller.workloads.expansion import expand
from controller.workloads.views import SetView

LEVELS = (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY)
_STYLES = {Phase.RUNNING: "green", Phase.STARTING: "yellow", Phase.PENDING: "yellow"}


@dataclass(frozen=True)
class SetSeen:
    """A set with all that is shown of it."""

    metadata: Meta
    spec: PodCliqueSetSpec
    status: PodCliqueSetStatus
    gangs: Sequence[Gang]
    pods: Mapping[str, Pod]
    nodes: Mapping[str, Node]
    cliques: Mapping[str, views.Clique] = field(default_factory=dict)
    groups: Mapping[str, views.Group] = field(default_factory=dict)

    @property
    def running(self) -> bool:
        """Whether every pod that the set asks for is in its gang, bound, and runs."""
        wanted = {name for gang in self.gangs for _, (_, name) in gang.references()}
        view = SetView(self.metadata, self.spec, self.status, self.cliques, self.groups)
        asked = sum(clique.replicas for clique in expand(view).cliques.values())
        return len(wanted) == asked > 0 and all(_runs(self.pods.get(name)) for name in wanted)

    @property
    def reported(self) -> bool:
        """Whether the status of set and gangs says so too; it follows a moment later."""
        available = self.status.available_replicas >= self.spec.replicas
        return available and all(gang.status.phase is Phase.RUNNING for gang in self.gangs)


@dataclass(frozen=True)
class Clique:
    """A clique of a gang, by its full name; `group` is "" for one that stands by itself."""

    group: str
    name: str
    minimum: int
    pods: tuple[str, ...]


@dataclass(frozen=True)
class Parent:
    """A clique that must be up before another starts, and how far it is."""

    name: str
    up: int
    minimum: int

    @property
    def is_up(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.up >= self.minimum


def draw(seen: SetSeen, *, wide: bool = False) -> Tree:
    """Draw the set; wide with whole paths in place of racks, and with who comes after whom."""
    available = f"{seen.status.available_replicas} of {seen.spec.replicas} replicas available"
    tree = Tree(
        Text.assemble(("PodCliqueSet ", "dim"), (seen.metadata.name, "bold"), f"  {available}")
    )
    for gang in sorted(seen.gangs, key=lambda gang: gang.metadata.name):
        branch = tree.add(_gang_line(gang))
        for group, within in groupby(cliques(seen, gang), key=lambda clique: clique.group):
            below = branch.add(Text.assemble(("group ", "dim"), group)) if group else branch
            for clique in within:
                _add_clique(below, clique, seen, wide=wide)
    return tree


def cliques(seen: SetSeen, gang: Gang) -> Iterable[Clique]:
    """List a gang's cliques, by groups."""
    found = []
    for group in gang.spec.pod_groups:
        pods = tuple(ref.name for ref in group.pod_references)
        labels = next((p.metadata.labels for n in pods if (p := seen.pods.get(n))), {})
        scaled = labels.get(names.SCALING_GROUP_LABEL, "")
        copy = labels.get(names.SCALING_GROUP_REPLICA_LABEL, "")
        found.append(
            Clique(f"{scaled}-{copy}" if scaled else "", group.name, group.min_replicas, pods)
        )
    return sorted(found, key=lambda clique: (clique.group, clique.name))


def parents(seen: SetSeen, clique: Clique) -> Iterator[Parent]:
    """List the cliques that must be up before this one starts."""
    there = seen.cliques.get(clique.name)
    for name in there.spec.starts_after if there is not None else ():
        parent = seen.cliques.get(name)
        if parent is not None:
            uid = parent.metadata.uid
            pods = [pod for pod in seen.pods.values() if pod.metadata.controller_uid == uid]
            up = sum(pod.containers_ready or pod.finished for pod in pods)
            yield Parent(name, up, parent.spec.minimum)


def reasons(gang: Gang) -> Iterator[str]:
    """Say why the gang is not scheduled, if it is not."""
    scheduled = condition_of(gang.status.conditions, names.SCHEDULED)
    if scheduled is not None and scheduled.status != "True":
        yield scheduled.reason
        if scheduled.message:
            yield scheduled.message


def _gang_line(gang: Gang) -> Text:
    status = gang.status
    line = Text.assemble(
        ("gang ", "dim"), gang.metadata.name, "  ", (status.phase.value, _STYLES[status.phase])
    )
    if status.placement_score is not None:
        line.append(f"  nearness {status.placement_score:.2f}")
    why = list(reasons(gang))
    if why:
        line.append(f"  {why[0]}", "yellow")
        line.append(f": {why[1]}" if len(why) > 1 else "")
    if gang.base is not None and status.phase is Phase.PENDING:
        line.append(f"  after {gang.base[1]}", "dim")
    return line


def _add_clique(branch: Tree, clique: Clique, seen: SetSeen, *, wide: bool) -> None:
    running = sum(_runs(seen.pods.get(name)) for name in clique.pods)
    line = Text.assemble(
        ("clique ", "dim"), clique.name,
        f"  {running} of {len(clique.pods)} running, needs {clique.minimum}",
    )  # fmt: skip
    for parent in parents(seen, clique):
        if not parent.is_up:
            line.append(f"  waits for {parent.name}, {parent.up} of {parent.minimum} up", "yellow")
        elif wide:
            line.append(f"  after {parent.name}", "dim")
    below = branch.add(line)
    for pod in sorted((p for n in clique.pods if (p := seen.pods.get(n))), key=_rank):
        below.add(_pod_line(pod, seen.nodes, wide=wide))


def _rank(pod: Pod) -> tuple[int, str]:
    label = pod.metadata.labels.get(names.POD_INDEX_LABEL, "")
    return (int(label) if label.isdigit() else 0), pod.metadata.name


def domain(pod: Pod, nodes: Mapping[str, Node]) -> tuple[str, ...]:
    """Name the pod's domain of each level that its node is labelled with, the widest first."""
    node = nodes.get(pod.spec.node_name)
    labels = node.metadata.labels if node else {}
    return tuple(labels[key] for key in LEVELS if key in labels)


def _pod_line(pod: Pod, nodes: Mapping[str, Node], *, wide: bool) -> Text:
    if not pod.spec.node_name:
        where = "gated" if names.GATE in pod.gates else "not bound yet"
        blocked = (c for c in pod.status.conditions if c.type == names.STARTUP_BLOCKED)
        why = "".join(f", {c.message}" for c in blocked if c.status == "True")
        return Text.assemble(pod.metadata.name, "  ", (f"{where}{why}", "yellow"))
    path = domain(pod, nodes)
    # The narrowest level there is: its name usually tells the wider ones.
    place = "/".join(path) if wide else next(reversed(path), "")
    phase = pod.status.phase
    style = "green" if phase == "Running" else "yellow"
    return Text.assemble(
        pod.metadata.name, "  ", (phase, style), f"  {pod.spec.node_name}",
        f"  {place}" if place else "  no rack label" if nodes else "",
    )  # fmt: skip


def _runs(pod: Pod | None) -> bool:
    return pod is not None and bool(pod.spec.node_name) and pod.status.phase == "Running"
