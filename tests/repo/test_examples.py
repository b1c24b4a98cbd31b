from pathlib import Path
from typing import cast

import msgspec
import orjson
import pytest
import yaml

from api import names
from api.jsons import JsonObject
from api.keep import KeepSpec, KeepStatus
from api.objects import api_version
from api.podcliqueset import PodCliqueSetSpec
from api.reservations_served import ServedReservationSpec
from api.streams import Meta
from api.topology import ClusterTopologyBindingSpec
from controller.gangs import topologies
from controller.gangs.keeps import asking
from controller.gangs.keeps.views import Keep, KeepView
from policies import gating, podcliqueset_admission
from policies.admission import Operation, Request
from policies.answers import Allow, Code, Refuse
from policies.known import Snapshot
from policies.policy import BUILT_IN
from scheduler import cycle
from scheduler.filters.claims import Claims
from scheduler.snapshot import build
from tests.repo import checkout
from tests.support.clusters import racks
from tests.support.gangpods import admitted, part

LABELLED = checkout.ROOT / "examples" / "labelled-job.yaml"
NETWORK = checkout.ROOT / "examples" / "network.yaml"
KEPT = checkout.ROOT / "examples" / "reservation.yaml"
EXAMPLES = sorted(set((checkout.ROOT / "examples").glob("*.yaml")) - {LABELLED, NETWORK, KEPT})
REFUSED = {"cycle.yaml": "prefill → router → prefill"}


def manifests(path: Path) -> list[JsonObject]:
    return cast("list[JsonObject]", list(yaml.safe_load_all(path.read_text())))


def spec_of(manifest: JsonObject) -> PodCliqueSetSpec:
    return PodCliqueSetSpec.model_validate_json(orjson.dumps(manifest["spec"]), strict=True)


def levels() -> ClusterTopologyBindingSpec:
    """What the example of a network says of itself."""
    (manifest,) = manifests(NETWORK)
    return ClusterTopologyBindingSpec.model_validate(manifest["spec"])


def judged(manifest: JsonObject) -> Allow | Refuse:
    known = Snapshot(topologies={"network": levels()})
    request = Request(Operation.CREATE, "PodCliqueSet", manifest)
    return podcliqueset_admission.judge(BUILT_IN, known, request)


def test_there_are_examples_of_both_kinds() -> None:
    present = {path.name for path in EXAMPLES}
    assert set(REFUSED) < present


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_says_nothing_that_is_ignored(path: Path) -> None:
    for manifest in manifests(path):
        assert manifest["apiVersion"] == api_version(names.GROVE_GROUP, names.GROVE_VERSION)
        assert manifest["kind"] == "PodCliqueSet"
        read = spec_of(manifest).model_dump(mode="json", by_alias=True, exclude_unset=True)
        assert read == manifest["spec"]


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if path.name not in REFUSED], ids=lambda path: path.name
)
def test_an_example_is_let_in(path: Path) -> None:
    for manifest in manifests(path):
        answer = judged(manifest)
        assert isinstance(answer, Allow)
        assert answer.warnings == ()


@pytest.mark.parametrize("name", REFUSED)
def test_an_example_of_a_cycle_is_refused_with_its_path(name: str) -> None:
    (manifest,) = manifests(checkout.ROOT / "examples" / name)
    answer = judged(manifest)
    assert isinstance(answer, Refuse)
    assert answer.code is Code.INVALID
    assert REFUSED[name] in answer.message
    assert "spec.template.cliques[0].spec.startsAfter" in answer.message


def test_the_example_of_a_network_names_the_levels_of_a_lab_from_wide_to_narrow() -> None:
    assert [(level.domain, level.key) for level in levels().levels] == [
        ("zone", names.ZONE_KEY),
        ("block", names.BLOCK_KEY),
        ("rack", names.RACK_KEY),
        ("host", names.HOSTNAME_KEY),
    ]


def test_the_example_of_labelled_pods_is_let_in_and_gated() -> None:
    (job,) = manifests(LABELLED)
    template = {"metadata": {}, **cast("JsonObject", cast("JsonObject", job["spec"])["template"])}
    made = admitted(template)
    assert gating.is_gated(part(made, "spec", "schedulingGates"))
    labels = cast("JsonObject", part(template, "metadata", "labels"))
    spec = cast("JsonObject", job["spec"])
    assert spec["parallelism"] == spec["completions"] == int(str(labels[names.GANG_SIZE_LABEL]))


def test_the_example_of_reservations_says_nothing_that_is_ignored() -> None:
    for manifest in manifests(KEPT):
        assert manifest["kind"] == "Reservation"
        read = ServedReservationSpec.model_validate_json(
            orjson.dumps(manifest["spec"]), strict=True
        )
        assert read.model_dump(mode="json", by_alias=True, exclude_unset=True) == manifest["spec"]


def test_the_example_of_reservations_is_placed_on_a_cluster_that_has_the_room() -> None:
    nodes = [
        msgspec.structs.replace(
            each,
            metadata=msgspec.structs.replace(
                each.metadata, labels={**each.metadata.labels, "kubernetes.io/arch": "amd64"}
            ),
        )
        for each in racks(1, 1, 1, 5)
    ]
    for manifest in manifests(KEPT):
        meta = Meta(name=str(part(manifest, "metadata", "name")), namespace="team")
        kept = Keep(meta, KeepSpec.model_validate(manifest["spec"]), KeepStatus())
        view = KeepView(kept)
        asked = asking.request(view, view.missing(), [topologies.BUILT_IN], Claims())
        made = cycle.plan(build(nodes, (), [topologies.BUILT_IN.levels]), [asked])
        assert len(made.placements) == 1
