"""The generated definitions are current and in the dialect the API server takes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
import yaml

from api import crds
from api.jsons import Json, JsonObject
from api.keep import KeepSpec, KeepStatus
from api.kinds import KINDS, Kind
from api.reservation import ReservationSpec, ReservationStatus
from api.reservations_served import ServedReservationSpec, ServedReservationStatus

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "api", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_checked_in_definitions_are_what_the_models_say() -> None:
    done = run("crds", "--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stale_definition_is_named_with_the_way_to_mend_it(tmp_path: Path) -> None:
    assert run("crds", str(tmp_path)).returncode == 0
    (tmp_path / "grove.io_podcliquesets.yaml").write_text("old")
    done = run("crds", str(tmp_path), "--check")
    assert done.returncode == 1
    assert "podcliquesets.grove.io is not what the models say: run `make crds`" in done.stderr
    assert (tmp_path / "grove.io_podcliquesets.yaml").read_text() == "old"


def nodes_of(schema: Json) -> Iterator[JsonObject]:
    if isinstance(schema, dict):
        yield schema
        properties = schema.get("properties")
        children = list(properties.values()) if isinstance(properties, dict) else []
        for child in [*children, schema.get("items"), schema.get("additionalProperties")]:
            yield from nodes_of(child)
    elif isinstance(schema, list):
        for each in schema:
            yield from nodes_of(each)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_every_schema_is_structural_and_bounded(kind: Kind) -> None:
    for model in (kind.spec, kind.status):
        for node in nodes_of(crds.structural(model)):
            assert "type" in node or node["x-kubernetes-int-or-string"], node
            assert not {"$ref", "anyOf", "allOf", "title", "const"} & node.keys(), node
            if node.get("type") == "array":
                assert "maxItems" in node, node
            if node.get("type") == "string":
                assert {"maxLength", "enum"} & node.keys(), node
            if "additionalProperties" in node:
                assert "maxProperties" in node, node


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_kubernetes_own_types_are_bounded_as_well(kind: Kind) -> None:
    (version,) = cast(
        "list[JsonObject]", cast("JsonObject", definition_of(kind)["spec"])["versions"]
    )
    schema = cast("JsonObject", cast("JsonObject", version["schema"])["openAPIV3Schema"])
    properties = cast("JsonObject", schema["properties"])
    for node in nodes_of([properties["spec"], properties.get("status")]):
        assert node.get("type") != "array" or "maxItems" in node, node
        assert node.get("type") != "string" or {"maxLength", "enum"} & node.keys(), node
        assert "additionalProperties" not in node or "maxProperties" in node, node


def properties_of(schema: JsonObject, path: str) -> Iterator[tuple[str, JsonObject]]:
    for name, child in cast("dict[str, JsonObject]", schema.get("properties", {})).items():
        yield f"{path}.{name}", child
        yield from properties_of(child, f"{path}.{name}")
        items = child.get("items")
        if isinstance(items, dict):
            yield from properties_of(items, f"{path}.{name}[]")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_every_field_is_described_in_a_sentence(kind: Kind) -> None:
    silent = [
        path
        for part, model in (("spec", kind.spec), ("status", kind.status))
        for path, field in properties_of(crds.structural(model), part)
        if not str(field.get("description", "")).endswith(".")
    ]
    assert silent == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_no_definition_outgrows_client_side_apply(kind: Kind) -> None:
    written = definition_of(kind)
    # kubectl keeps a copy of what was applied in an annotation, and those are limited.
    assert len(json.dumps(written, separators=(",", ":"))) < 262_144 - 1_000


def definition_of(kind: Kind, directory: Path = ROOT / "charts/penstock/files/crds") -> JsonObject:
    text = (directory / crds.file_name(kind)).read_text()
    return cast("JsonObject", yaml.load(text, yaml.CSafeLoader))


def version_of(definition: JsonObject) -> JsonObject:
    spec = cast("JsonObject", definition["spec"])
    (version,) = cast("list[JsonObject]", spec["versions"])
    return version


def field_of(definition: JsonObject, path: str) -> JsonObject:
    """Find a field's schema; `[]` steps into a list."""
    schema = cast("JsonObject", version_of(definition)["schema"])
    node = cast("JsonObject", schema["openAPIV3Schema"])
    for step in path.split("."):
        properties = cast("JsonObject", node["properties"])
        node = cast("JsonObject", properties[step.removesuffix("[]")])
        if step.endswith("[]"):
            node = cast("JsonObject", node["items"])
    return node


POD_SPECS = {
    "PodCliqueSet": "spec.template.cliques[].spec.podSpec",
    "PodClique": "spec.podSpec",
}


@pytest.mark.parametrize("name", POD_SPECS)
def test_a_pod_spec_is_described_down_to_its_last_field(name: str) -> None:
    (kind,) = [kind for kind in KINDS if kind.kind == name]
    container = f"{POD_SPECS[name]}.containers[]"
    written = definition_of(kind)
    assert field_of(written, container)["required"] == ["name"]
    probe = field_of(written, f"{container}.livenessProbe.httpGet.port")
    assert probe == {"x-kubernetes-int-or-string": True}
    assert field_of(written, f"{container}.ports[].protocol")["default"] == "TCP"


def test_an_opaque_pod_spec_is_a_choice_of_who_builds(tmp_path: Path) -> None:
    assert run("crds", str(tmp_path), "--pod-spec", "opaque").returncode == 0
    for kind in KINDS:
        if kind.kind in POD_SPECS:
            opaque = field_of(definition_of(kind, tmp_path), POD_SPECS[kind.kind])
            assert opaque.pop("description")
            assert opaque == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert "--pod-spec {full,opaque}" in run("crds", "--help").stdout


COLUMNS = {
    "PodCliqueSet": "Replicas Available Updated PCLQs-Updated PCLQs-Total PCSGs-Updated"
    " PCSGs-Total State Message* Age",
    "PodClique": "MinAvail Replicas Ready Scheduled Updated Gated* MinBreached* State Message* Age",
    "PodCliqueScalingGroup": "MinAvail Replicas Available Scheduled Updated PCLQs-Updated"
    " PCLQs-Total MinBreached* State Message* Age",
    "ClusterTopologyBinding": "Domains Age",
    "PodGang": "Phase Scheduled Score* Message* Age",
    "Reservation": "Gang State Users Expires* Score* Fragmentation* Domain* Deadline* Age",
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_the_columns_are_those_people_know(kind: Kind) -> None:
    columns = cast("list[JsonObject]", version_of(definition_of(kind))["additionalPrinterColumns"])
    shown = " ".join(f"{c['name']}{'*' if c.get('priority') else ''}" for c in columns)
    assert shown == COLUMNS[kind.kind]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_every_column_shows_a_field_there_is(kind: Kind) -> None:
    definition = definition_of(kind)
    for column in cast("list[JsonObject]", version_of(definition)["additionalPrinterColumns"]):
        path = str(column["jsonPath"]).partition("[?")[0].replace("[*]", "[]").removeprefix(".")
        if not path.startswith("metadata."):
            assert field_of(definition, path)["type"] in (column["type"], "array", "string")


@pytest.mark.parametrize(
    ("name", "selector"),
    [
        ("PodCliqueSet", ".status.hpaPodSelector"),
        ("PodClique", ".status.hpaPodSelector"),
        ("PodCliqueScalingGroup", ".status.selector"),
    ],
)
def test_sets_cliques_and_groups_can_be_scaled(name: str, selector: str) -> None:
    (kind,) = [kind for kind in KINDS if kind.kind == name]
    assert version_of(definition_of(kind))["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": selector,
        },
    }


def test_all_that_the_ledger_says_is_served() -> None:
    """The API server drops what its definition does not name."""
    for whole, part in (
        (ServedReservationSpec, ReservationSpec),
        (ServedReservationStatus, ReservationStatus),
        (ServedReservationSpec, KeepSpec),
        (ServedReservationStatus, KeepStatus),
    ):
        assert part.model_fields.keys() <= whole.model_fields.keys()
