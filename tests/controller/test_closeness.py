from dataclasses import replace

import pytest

from api.jsons import Json
from api.podcliqueset import PodCliqueSetSpec
from api.topology import TopologyConstraint
from controller.workloads.making.closeness import ANYWHERE, Nearness, nearness, topology_state
from tests.support.sets import clique
from tests.support.setviews import made

LEVELS = {"zone": "example.com/zone", "rack": "example.com/rack"}


def constraint(**given: Json) -> TopologyConstraint:
    return TopologyConstraint.model_validate(given)


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        (None, ANYWHERE),
        (constraint(pack={"required": "zone"}), Nearness(required="example.com/zone")),
        (constraint(packDomain="rack"), Nearness(required="example.com/rack")),
        (
            constraint(pack={"required": "zone", "preferred": "rack"}),
            Nearness("example.com/zone", "example.com/rack"),
        ),
        (
            constraint(pack={"required": "block", "preferred": "rack"}),
            Nearness(preferred="example.com/rack"),
        ),
        (constraint(pack={"required": "block"}), ANYWHERE),
    ],
)
def test_levels_are_said_in_node_labels(asked: TopologyConstraint | None, near: Nearness) -> None:
    assert nearness(asked, LEVELS) == near
    assert bool(near) is (near != ANYWHERE)


def spec(*, name: str | None = "net", of_set: str = "", of_group: str = "") -> PodCliqueSetSpec:
    topology: dict[str, Json] = {"topologyName": name} if name else {}
    whole: Json = {**topology, "pack": {"required": of_set}} if of_set else None
    part: Json = {**topology, "pack": {"preferred": of_group}} if of_group else None
    return PodCliqueSetSpec.model_validate(
        {
            "replicas": 1,
            "template": {
                "cliques": [clique("a", 1)],
                "topologyConstraint": whole,
                "podCliqueScalingGroups": [
                    {"name": "g", "cliqueNames": ["a"], "topologyConstraint": part}
                ],
            },
        }
    )


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (spec(of_set="zone", of_group="rack"), ("False", "AllClusterTopologyLevelsAvailable")),
        (spec(of_set="zone", of_group="row"), ("True", "ClusterTopologyLevelsUnavailable")),
        (spec(name="other", of_group="rack"), ("Unknown", "ClusterTopologyNotFound")),
        (spec(name=None, of_set="rack"), ("Unknown", "TopologyNameMissing")),
    ],
)
def test_it_is_told_whether_the_cluster_has_the_levels(
    asked: PodCliqueSetSpec, told: tuple[str, str]
) -> None:
    state = topology_state(replace(made(asked), levels={"net": LEVELS}))
    assert state is not None
    assert (state.status, state.reason) == told


def test_a_missing_level_is_named_with_those_there_are() -> None:
    state = topology_state(replace(made(spec(of_group="row")), levels={"net": LEVELS}))
    assert state is not None
    assert "no level row" in state.message
    assert "zone, rack" in state.message


def test_nothing_is_told_of_a_set_that_asks_for_nothing() -> None:
    assert topology_state(replace(made(spec()), levels={"net": LEVELS})) is None
