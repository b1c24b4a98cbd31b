"""A gang means the same in the older spelling of its fields as in today's."""

import json

import pytest
from pydantic import ValidationError

from api.jsons import Json, JsonObject
from api.podgang import PodGangSpec

GROUPS: Json = [
    {
        "name": "demo-0-leader",
        "minReplicas": 1,
        "podReferences": [{"namespace": "default", "name": "demo-0-leader-x"}],
    },
    {"name": "demo-0-worker", "minReplicas": 3, "podReferences": []},
]
SPREAD: Json = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]


def test_pods_under_the_older_name_are_the_gangs_pods() -> None:
    today = PodGangSpec.model_validate({"podgroups": GROUPS})
    assert PodGangSpec.model_validate({"podGroups": GROUPS}) == today
    assert [group.min_replicas for group in today.pod_groups] == [1, 3]


def test_the_bytes_of_an_older_object_read_the_same() -> None:
    body = json.dumps({"podGroups": GROUPS, "spreadConstraints": SPREAD}).encode()
    spec = PodGangSpec.model_validate_json(body)
    assert [group.name for group in spec.pod_groups] == ["demo-0-leader", "demo-0-worker"]
    assert spec.spread_constraints == SPREAD


def test_cliques_to_be_packed_are_preferably_on_one_node() -> None:
    packs: Json = [{"podGroupNames": ["demo-0-leader", "demo-0-worker"]}]
    spec = PodGangSpec.model_validate({"podgroups": GROUPS, "networkPackGroupConfigs": packs})
    (near,) = spec.topology_constraint_group_configs
    assert near.name == "network-pack-0"
    assert near.pod_group_names == ["demo-0-leader", "demo-0-worker"]
    assert near.topology_constraint is not None
    assert near.topology_constraint.pack_constraint is not None
    assert near.topology_constraint.pack_constraint.preferred == "kubernetes.io/hostname"
    assert near.topology_constraint.pack_constraint.required is None


def test_cliques_to_be_packed_keep_the_constraint_they_have() -> None:
    rack: JsonObject = {"packConstraint": {"required": "example.com/rack"}}
    pack: JsonObject = {
        "name": "both", "podGroupNames": ["demo-0-worker"], "topologyConstraint": rack,
    }  # fmt: skip
    older = PodGangSpec.model_validate({"podGroups": GROUPS, "networkPackGroupConfigs": [pack]})
    today = {"podgroups": GROUPS, "topologyConstraintGroupConfigs": [pack]}
    assert older == PodGangSpec.model_validate(today)


def test_todays_spelling_wins_over_the_older_one() -> None:
    spec = PodGangSpec.model_validate({"podgroups": GROUPS, "podGroups": []})
    assert len(spec.pod_groups) == 2


@pytest.mark.parametrize(
    "spec",
    [{}, {"podGroups": 1}, {"podgroups": [], "networkPackGroupConfigs": [7]}, [], "podGroups"],
)
def test_what_is_no_gang_is_refused_and_never_crashes(spec: Json) -> None:
    with pytest.raises(ValidationError):
        PodGangSpec.model_validate(spec)
