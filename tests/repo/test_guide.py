"""The guide has an example for each feature, and each example is let in by the webhook's judges."""

import re
from pathlib import Path

import orjson
import pytest

from api.jsons import JsonObject
from api.reservations_served import ServedReservationSpec
from penstock.policy import files
from policies import policy_source, trying
from policies.answers import Allow
from policies.policy import BUILT_IN, Policy
from tests.repo import checkout, prose
from tests.repo.test_examples import spec_of
from webhook.routes import ROUTES

GUIDE = checkout.ROOT / "docs" / "guide.md"
EXAMPLES = checkout.ROOT / "examples"
KEPT = EXAMPLES / "features" / "kept-room.yaml"  # no webhook is asked about it
FEATURES = sorted(set((EXAMPLES / "features").glob("*.yaml")) - {KEPT})
QUEUES = EXAMPLES / "policies" / "queues.yaml"
# What is let in only where a policy says so, and in whose namespace.
SWITCHED_ON = Policy.model_validate({"mnnvl": {"enabled": True}})
POLICIES = {
    "nvlink": (SWITCHED_ON, ""),
    "queued": (policy_source.read(QUEUES.name, QUEUES.read_text()).policy, "lab-vision"),
}


def parts() -> dict[str, str]:
    text = prose.read(GUIDE)
    headings = re.findall(r"^## .+$", text, re.MULTILINE)
    return {heading: prose.section(text, heading) for heading in headings}


def examples_in(text: str) -> set[Path]:
    targets = {(GUIDE.parent / link.partition("#")[0]).resolve() for link in prose.links(text)}
    return {target for target in targets if target.is_relative_to(EXAMPLES)}


def manifests(path: Path) -> list[JsonObject]:
    return [each.raw for each in files.manifests([path])]


def test_there_are_features() -> None:
    assert len(parts()) > 15
    assert len(FEATURES) > 20


@pytest.mark.parametrize("heading", list(parts()))
def test_each_part_has_an_example(heading: str) -> None:
    found = examples_in(parts()[heading])
    assert found
    assert all(path.is_file() for path in found)


def test_every_example_is_named_in_the_guide() -> None:
    there = {path for path in EXAMPLES.rglob("*") if path.is_file()}
    named = examples_in(prose.read(GUIDE))
    assert {checkout.shown(path) for path in there - named} == set(), "name it in docs/guide.md"


@pytest.mark.parametrize("path", FEATURES, ids=lambda path: path.stem)
def test_an_example_is_let_in_without_a_word(path: Path) -> None:
    policy, namespace = POLICIES.get(path.stem, (BUILT_IN, ""))
    known = trying.known_from(manifests(EXAMPLES / "network.yaml"))
    submitter = trying.Submitter(namespace=namespace)
    asked = [trying.asked(each, submitter, None) for each in manifests(path)]
    tried = [each for each in asked if each is not None]
    assert tried, "nobody would be asked about it"
    for each in tried:
        answer = trying.judged(policy, known, each)
        assert isinstance(answer, Allow), answer
        assert answer.warnings == ()
        assert answer.patch, "it is given nothing, as if it were no gang's"


@pytest.mark.parametrize("path", FEATURES, ids=lambda path: path.stem)
def test_a_set_among_them_says_nothing_that_is_ignored(path: Path) -> None:
    for manifest in manifests(path):
        if manifest["kind"] == "PodCliqueSet":
            read = spec_of(manifest).model_dump(mode="json", by_alias=True, exclude_unset=True)
            assert read == manifest["spec"]


def test_the_kept_room_says_nothing_that_is_ignored() -> None:
    (manifest,) = manifests(KEPT)
    read = ServedReservationSpec.model_validate_json(orjson.dumps(manifest["spec"]), strict=True)
    assert read.model_dump(mode="json", by_alias=True, exclude_unset=True) == manifest["spec"]


def test_who_judges_here_judges_in_the_webhook() -> None:
    assert set(trying.JUDGES.values()) <= {route.judge for route in ROUTES}


def test_an_nvlink_group_is_refused_where_no_policy_switches_them_on() -> None:
    (manifest,) = manifests(EXAMPLES / "features" / "nvlink.yaml")
    tried = trying.asked(manifest, trying.Submitter(), None)
    assert tried is not None
    answer = trying.judged(BUILT_IN, trying.known_from([]), tried)
    assert not isinstance(answer, Allow)
    assert "mnnvl.enabled" in answer.message
