from pathlib import Path
from typing import cast

import orjson
import pytest
import yaml

from api import names
from api.jsons import JsonObject
from api.objects import api_version
from api.podcliqueset import PodCliqueSetSpec
from policies import podcliqueset_admission
from policies.admission import Operation, Request
from policies.answers import Allow, Code, Refuse
from policies.known import NOTHING
from policies.policy import BUILT_IN
from tests.repo import checkout

EXAMPLES = sorted((checkout.ROOT / "examples").glob("*.yaml"))
REFUSED = {"cycle.yaml": "prefill → router → prefill"}


def manifests(path: Path) -> list[JsonObject]:
    return cast("list[JsonObject]", list(yaml.safe_load_all(path.read_text())))


def spec_of(manifest: JsonObject) -> PodCliqueSetSpec:
    return PodCliqueSetSpec.model_validate_json(orjson.dumps(manifest["spec"]), strict=True)


def judged(manifest: JsonObject) -> Allow | Refuse:
    request = Request(Operation.CREATE, "PodCliqueSet", manifest)
    return podcliqueset_admission.judge(BUILT_IN, NOTHING, request)


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
