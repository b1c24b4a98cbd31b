"""How close together a set's pods are to be, in node labels, and if the cluster can tell. Pure.

A set speaks of levels of the network, such as rack. The topology binding it names says which node
label tells the domains of a level apart; gangs speak of these labels alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from api import names
from api.jsons import JsonObject
from api.podcliqueset import PodCliqueSetSpec
from api.podgang import GangConstraint
from api.topology import TopologyConstraint
from controller.workloads.views import SetView

_NO_LEVELS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True)
class Nearness:
    """Of which node labels pods must, and should, share one value; empty for none."""

    required: str = ""
    preferred: str = ""

    def __bool__(self) -> bool:
        """Whether it says anything."""
        return bool(self.required or self.preferred)

    def written(self) -> JsonObject:
        """Give it as a gang carries it."""
        both = {"required": self.required, "preferred": self.preferred}
        return {"packConstraint": {how: key for how, key in both.items() if key}}


ANYWHERE: Final = Nearness()


@dataclass(frozen=True)
class TopologyState:
    """What the condition TopologyLevelsUnavailable of a set is to say."""

    status: str
    reason: str
    message: str


def read(constraint: GangConstraint | None) -> Nearness:
    """Give what a gang's constraint says."""
    pack = constraint.pack_constraint if constraint else None
    return Nearness(pack.required or "", pack.preferred or "") if pack else ANYWHERE


def nearness(constraint: TopologyConstraint | None, levels: Mapping[str, str]) -> Nearness:
    """Say a set's constraint in node labels; a level that the cluster does not have is left out."""
    if constraint is None:
        return ANYWHERE
    return Nearness(
        levels.get(constraint.required or "", ""), levels.get(constraint.preferred or "", "")
    )


def binding_name(spec: PodCliqueSetSpec) -> str:
    """Name the topology binding that the set means; all its constraints mean the same one."""
    return next((c.topology_name for c in constraints(spec) if c.topology_name), "")


def levels_of(view: SetView) -> Mapping[str, str]:
    """Give the node label of each level that the set may speak of."""
    return view.levels.get(binding_name(view.spec), _NO_LEVELS)


def constraints(spec: PodCliqueSetSpec) -> Iterator[TopologyConstraint]:
    """List all constraints of a set: its own, then its groups', then its cliques'."""
    template = spec.template
    asked = (
        template.topology_constraint,
        *(group.topology_constraint for group in template.pod_clique_scaling_groups),
        *(clique.topology_constraint for clique in template.cliques),
    )
    return (constraint for constraint in asked if constraint is not None)


def topology_state(view: SetView) -> TopologyState | None:
    """Say whether the cluster has all levels that the set asks for; None if it asks for none."""
    asked = tuple(constraints(view.spec))
    if not asked:
        return None
    name = binding_name(view.spec)
    if not name:
        return TopologyState(
            "Unknown",
            names.TOPOLOGY_NAME_MISSING,
            "no topologyConstraint of the set has a topologyName, so its levels mean nothing and "
            "its pods may go anywhere",
        )
    levels = view.levels.get(name)
    if levels is None:
        return TopologyState(
            "Unknown",
            names.TOPOLOGY_NOT_FOUND,
            f"there is no ClusterTopologyBinding {name!r}; until it is back, gangs made or changed "
            "may go anywhere",
        )
    wanted = {domain for c in asked for domain in (c.required, c.preferred) if domain}
    missing = sorted(wanted - levels.keys())
    if missing:
        return TopologyState(
            "True",
            names.TOPOLOGY_LEVELS_MISSING,
            f"ClusterTopologyBinding {name!r} has no level {', '.join(missing)}; what asks for it "
            f"is not heeded. Its levels are {', '.join(levels)}",
        )
    return TopologyState(
        "False",
        names.TOPOLOGY_LEVELS_PRESENT,
        f"ClusterTopologyBinding {name!r} has every level that the set asks for",
    )
