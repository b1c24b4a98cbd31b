"""A set as a tree of gangs, groups, cliques and pods, with the node and rack each pod has. Pure."""

from collections.abc import Iterable, Mapping, Sequence
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
from controller.workloads.expansion import expand
from controller.workloads.views import Clique, Group, SetView

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
    cliques: Mapping[str, Clique] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)

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


def draw(seen: SetSeen) -> Tree:
    """Draw the set."""
    available = f"{seen.status.available_replicas} of {seen.spec.replicas} replicas available"
    tree = Tree(
        Text.assemble(("PodCliqueSet ", "dim"), (seen.metadata.name, "bold"), f"  {available}")
    )
    for gang in sorted(seen.gangs, key=lambda gang: gang.metadata.name):
        branch = tree.add(_gang_line(gang))
        for group, cliques in groupby(_cliques(seen, gang), key=lambda clique: clique.group):
            below = branch.add(Text.assemble(("group ", "dim"), group)) if group else branch
            for clique in cliques:
                _add_clique(below, clique, seen)
    return tree


@dataclass(frozen=True)
class _Clique:
    group: str  # "" for a clique that stands by itself
    name: str
    minimum: int
    pods: tuple[str, ...]


def _cliques(seen: SetSeen, gang: Gang) -> Iterable[_Clique]:
    found = []
    for group in gang.spec.pod_groups:
        pods = tuple(ref.name for ref in group.pod_references)
        labels = next((p.metadata.labels for n in pods if (p := seen.pods.get(n))), {})
        scaled = labels.get(names.SCALING_GROUP_LABEL, "")
        copy = labels.get(names.SCALING_GROUP_REPLICA_LABEL, "")
        found.append(
            _Clique(f"{scaled}-{copy}" if scaled else "", group.name, group.min_replicas, pods)
        )
    return sorted(found, key=lambda clique: (clique.group, clique.name))


def _gang_line(gang: Gang) -> Text:
    status = gang.status
    scheduled = condition_of(status.conditions, names.SCHEDULED)
    line = Text.assemble(
        ("gang ", "dim"), gang.metadata.name, "  ", (status.phase.value, _STYLES[status.phase])
    )
    if status.placement_score is not None:
        line.append(f"  nearness {status.placement_score:.2f}")
    if scheduled is not None and scheduled.status != "True":
        line.append(f"  {scheduled.reason}", "yellow")
        line.append(f": {scheduled.message}" if scheduled.message else "")
    return line


def _add_clique(branch: Tree, clique: _Clique, seen: SetSeen) -> None:
    running = sum(_runs(seen.pods.get(name)) for name in clique.pods)
    below = branch.add(
        Text.assemble(
            ("clique ", "dim"), clique.name,
            f"  {running} of {len(clique.pods)} running, needs {clique.minimum}",
        )
    )  # fmt: skip
    for pod in sorted((p for n in clique.pods if (p := seen.pods.get(n))), key=_rank):
        below.add(_pod_line(pod, seen.nodes))


def _rank(pod: Pod) -> tuple[int, str]:
    label = pod.metadata.labels.get(names.POD_INDEX_LABEL, "")
    return (int(label) if label.isdigit() else 0), pod.metadata.name


def _pod_line(pod: Pod, nodes: Mapping[str, Node]) -> Text:
    node = nodes.get(pod.spec.node_name)
    if not pod.spec.node_name:
        where = "gated" if names.GATE in pod.gates else "not bound yet"
        blocked = (c for c in pod.status.conditions if c.type == names.STARTUP_BLOCKED)
        why = "".join(f", {c.message}" for c in blocked if c.status == "True")
        return Text.assemble(pod.metadata.name, "  ", (f"{where}{why}", "yellow"))
    labels = node.metadata.labels if node else {}
    # The narrowest level there is: its name usually tells the wider ones.
    narrow = next((labels[key] for key in reversed(LEVELS) if key in labels), "no rack label")
    phase = pod.status.phase
    style = "green" if phase == "Running" else "yellow"
    return Text.assemble(
        pod.metadata.name, "  ", (phase, style), f"  {pod.spec.node_name}  {narrow}"
    )


def _runs(pod: Pod | None) -> bool:
    return pod is not None and bool(pod.spec.node_name) and pod.status.phase == "Running"
