"""What a template's pods will take is told before the API server has filled anything in."""

import json
from collections.abc import Iterator
from itertools import product
from typing import Final

import msgspec
import pytest

from api import needs
from api.jsons import Json, JsonObject
from api.streams import Pod
from tests.support.living import Kubectl

pytestmark = pytest.mark.cluster

PAGES: Final[Json] = "4Mi"
CONTAINERS: Final[tuple[JsonObject, ...]] = (
    {},
    {"requests": {"cpu": "1"}},
    {"limits": {"cpu": "2", "memory": "1Gi"}},
    {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "example.com/nic": "1"}},
    {"limits": {"cpu": "1", "hugepages-2Mi": PAGES}},
)
WHOLE: Final[tuple[JsonObject, ...]] = (
    {},
    {"requests": {"cpu": "5"}},
    {"limits": {"cpu": "8", "memory": "8Gi"}},
    {"requests": {"memory": "6Gi"}, "limits": {"cpu": "8"}},
    {"limits": {"cpu": "8", "hugepages-2Mi": "16Mi"}},
    {"requests": {"cpu": "6"}, "limits": {"memory": "8Gi"}},
)
LEAST_TAKEN: Final = 100


def specs() -> Iterator[JsonObject]:
    for first, second, starting, whole in product(CONTAINERS, CONTAINERS, CONTAINERS[:2], WHOLE):
        yield {
            "containers": [
                {"name": "a", "image": "model", "resources": first},
                {"name": "b", "image": "model", "resources": second},
            ],
            "initContainers": [
                {"name": "c", "image": "model", "resources": starting, "restartPolicy": "Always"}
            ],
            **({"resources": whole} if whole else {}),
        }


def read(answers: str) -> Iterator[JsonObject]:
    """Read the objects that kubectl prints one after the other."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(answers.rstrip()):
        found, at = decoder.raw_decode(answers, at)
        yield from found["items"] if found["kind"] == "List" else (found,)
        at += len(answers[at:]) - len(answers[at:].lstrip())


def test_a_spec_takes_what_the_pod_takes_that_is_stored(kubectl: Kubectl) -> None:
    drawn = {f"p{number}": spec for number, spec in enumerate(specs())}
    pods: list[Json] = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        for name, spec in drawn.items()
    ]
    everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
    done = kubectl.run("create", "--dry-run=server", "-o", "json", "-f", "-", text=everything)
    stored = [msgspec.convert(each, Pod) for each in read(done.stdout)]
    # Some break a rule of pods, such as asking for less as a whole than in containers.
    assert len(stored) >= LEAST_TAKEN, done.stderr[:2000]
    for pod in stored:
        written = msgspec.convert(
            {"metadata": {"name": "p"}, "spec": drawn[pod.metadata.name]}, Pod
        )
        assert needs.of_spec(written.spec) == needs.of_pod(pod), drawn[pod.metadata.name]
