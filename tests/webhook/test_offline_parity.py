"""What is judged offline is judged in the very same words by the webhook."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, cast

import orjson
import pytest

from api.jsons import JsonObject
from penstock.policy import files
from policies import policy_source, trying, verdicts
from policies.admission import User
from policies.policy import Policy
from policies.trying import Submitter, Tried
from policies.verdicts import Decision
from tests.repo import checkout
from webhook import review
from webhook.answering import Answering, Span
from webhook.metrics import Metrics
from webhook.routes import PATHS

NOW: Final = datetime(2026, 11, 1, tzinfo=UTC)
EXAMPLES: Final = checkout.ROOT / "examples"
MANIFESTS: Final = files.manifests(sorted(EXAMPLES.glob("*.yaml")))
KNOWN: Final = trying.known_from(each.raw for each in MANIFESTS)
STRICT: Final = """
unmatchedNamespaces: deny
queues:
- name: q
  namespaces: ["chat-*"]
  default: true
  submitters: {users: [anna]}
  limits: {gangs: 1, podsPerGang: {max: 2}, priorityClasses: []}
rules:
- {id: digests, images: {requireDigest: true}, mode: warn}
- {id: hardened, podSecurity: restricted, mode: audit}
"""
SUBMITTERS: Final = [
    Submitter(),
    Submitter(User("anna", ("system:authenticated",)), "chat-a"),
    Submitter(User("berta", ("system:authenticated",)), "chat-a"),
    Submitter(User("berta", ("system:authenticated",)), "elsewhere"),
]
PATH_OF: Final = {
    "PodCliqueSet": "/validate/podcliquesets",
    "ClusterTopologyBinding": "/validate/clustertopologybindings",
    "Pod": "/mutate/pods",
}


def policies() -> Iterator[tuple[str, Policy]]:
    yield "strict", policy_source.read("strict", STRICT).policy
    for path in [Path("/dev/null"), *sorted((EXAMPLES / "policies").glob("*.yaml"))]:
        yield path.stem, files.policy(path).policy


POLICIES: Final = dict(policies())


def by_webhook(policy: Policy, tried: Tried) -> JsonObject:
    """Ask the webhook as the API server does."""
    asked = tried.request
    request: JsonObject = {
        "uid": "u",
        "operation": "CREATE",
        "kind": {"kind": asked.kind},
        "namespace": asked.namespace,
        "name": asked.name,
        "userInfo": {"username": asked.user.name, "groups": [*asked.user.groups]},
        "object": asked.object,
    }
    body = {"apiVersion": review.API_VERSION, "kind": review.KIND, "request": request}
    answering = Answering(lambda: policy, KNOWN, Metrics(PATHS), lambda: 0.0, lambda: NOW)
    reply = answering.answer(PATHS[PATH_OF[asked.kind]], orjson.dumps(body), Span(0, 1e9))
    return cast("JsonObject", orjson.loads(reply.body)["response"])


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("submitter", SUBMITTERS, ids=lambda each: each.user.name or "nobody")
def test_an_example_is_judged_alike_offline_and_by_the_webhook(
    name: str, submitter: Submitter
) -> None:
    policy = POLICIES[name]
    compared = 0
    for each in MANIFESTS:
        tried = trying.asked(each.raw, submitter, NOW)
        if tried is None:
            continue
        found = verdicts.verdict(trying.judged(policy, KNOWN, tried))
        said = by_webhook(policy, tried)
        status = cast("JsonObject", said.get("status", {}))
        assert said["allowed"] is (found.decision is not Decision.REFUSE), tried.title
        assert status.get("message", "") == found.message
        assert bool(said.get("warnings")) is bool(found.warnings)
        compared += 1
    assert compared >= 8


def test_these_examples_come_to_every_decision() -> None:
    """Else the comparison would show little."""
    strict = POLICIES["strict"]
    decisions = {
        verdicts.verdict(trying.judged(strict, KNOWN, tried)).decision
        for each in MANIFESTS
        for submitter in SUBMITTERS
        if (tried := trying.asked(each.raw, submitter, NOW)) is not None
    }
    assert decisions == {*Decision}
