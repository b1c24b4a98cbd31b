"""Webhooks of a test's own at a real API server, one for each way a webhook can behave."""

import secrets
import ssl
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from api.jsons import Json, JsonObject
from certs.issue import Authority, Leaf, Names, issue_authority, issue_leaf
from kube.resources import (
    CONFIGMAPS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    VALIDATING_WEBHOOKS,
    Resource,
)
from tests.support.asking import DRY_RUN, Asker, Seen, asking
from tests.support.webhookstand import HOST, Script, Stand, standing

CASE_LABEL: Final = "contract-case"
POLICY_LABEL: Final = "contract-policy"
POLICIES: Final = ("Fail", "Ignore")
CALL_SECONDS: Final = 1
SETTLE_SECONDS: Final = 20.0


@dataclass(frozen=True)
class Outcome:
    """What the person sees: let in, or refused with a code, a reason and words (a pattern)."""

    code: int = 201
    reason: str = ""
    words: str = ""
    data: Mapping[str, str] | None = None
    """What the patch made of the object, where there is one."""


LET_IN: Final = Outcome()


@dataclass(frozen=True)
class Case:
    """One way for a webhook to behave, and what comes of it under each failure policy."""

    name: str
    script: Script
    fail: Outcome
    ignore: Outcome
    validating: bool = False
    operation: str = "CREATE"
    stand: str = "good"

    def outcome(self, policy: str) -> Outcome:
        return self.fail if policy == "Fail" else self.ignore

    def path(self, policy: str) -> str:
        return f"/{self.name}/{policy}"

    def webhook(self, policy: str) -> str:
        return f"{self.name}.{policy.lower()}.contract.test"


@dataclass(frozen=True)
class Contract:
    """The webhooks of all cases, registered, and somebody who asks."""

    asker: Asker
    space: str
    stands: Mapping[str, Stand]

    def attempt(self, case: Case, policy: str) -> Seen:
        """Create or delete a ConfigMap that this case's webhook is called for; a dry run."""
        labels: JsonObject = {CASE_LABEL: case.name, POLICY_LABEL: policy}
        path = CONFIGMAPS.path(self.space)
        name = f"{case.name}-{policy.lower()}"
        body: JsonObject = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": labels},
        }
        if case.operation == "CREATE":
            return self.asker.ask("POST", path + DRY_RUN, body)
        made = self.asker.ask("POST", path, body)
        assert made.done, made
        return self.asker.ask("DELETE", f"{path}/{name}{DRY_RUN}")

    def calls(self, case: Case, policy: str) -> int:
        """How often the case's script was asked."""
        return self.stands[case.stand].asked[case.path(policy)]

    def settled(self, proofs: Sequence[Case]) -> None:
        """Wait until the API server calls the webhooks; each proof is a case that refuses."""
        end = time.perf_counter() + SETTLE_SECONDS
        for proof in proofs:
            while self.attempt(proof, "Fail").done:
                assert time.perf_counter() < end, f"{proof.name} is not called"
                time.sleep(0.05)


@contextmanager
def contract(
    kubeconfig: Path, folder: Path, cases: Sequence[Case], more: Mapping[str, Script], now: datetime
) -> Iterator[Contract]:
    """Register a webhook for each case and policy; `more` are scripts at paths of their own."""
    scripts = {case.path(policy): case.script for case in cases for policy in POLICIES}
    authority = issue_authority(now)
    with ExitStack() as stack:
        asker = stack.enter_context(asking(kubeconfig))
        stands = {
            name: stack.enter_context(standing({**scripts, **more}, context))
            for name, context in _contexts(authority, folder, now).items()
        }
        made = Contract(asker, f"contract-{secrets.token_hex(4)}", stands)
        stack.enter_context(_existing(asker, NAMESPACES, _object(NAMESPACES, made.space)))
        for resource, validating in ((MUTATING_WEBHOOKS, False), (VALIDATING_WEBHOOKS, True)):
            webhooks: list[Json] = [
                _webhook(case, policy, made, authority)
                for case in cases
                for policy in POLICIES
                if case.validating is validating
            ]
            body = {**_object(resource, made.space), "webhooks": webhooks}
            stack.enter_context(_existing(asker, resource, body))
        yield made


def _contexts(authority: Authority, folder: Path, now: datetime) -> dict[str, ssl.SSLContext]:
    """The TLS of each stand by its name, where the API server trusts `authority`."""
    # A leaf lives for thirty days, its authority for two years.
    long_ago = now - timedelta(days=60)
    here = Names.of(HOST)
    leaves = {
        "good": issue_leaf(authority, here, now),
        "tls-1.2": issue_leaf(authority, here, now),
        "unknown-authority": issue_leaf(issue_authority(now), here, now),
        "expired": issue_leaf(authority, here, long_ago),
        "wrong-name": issue_leaf(authority, Names.of("webhook.example"), now),
    }
    contexts = {name: _context(leaf, folder) for name, leaf in leaves.items()}
    contexts["tls-1.2"].maximum_version = ssl.TLSVersion.TLSv1_2
    return contexts


def _context(leaf: Leaf, folder: Path) -> ssl.SSLContext:
    certificate, key = folder / "tls.crt", folder / "tls.key"
    certificate.write_bytes(leaf.certificate_pem)
    key.write_bytes(leaf.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def _webhook(case: Case, policy: str, made: Contract, authority: Authority) -> JsonObject:
    url = made.stands[case.stand].url + case.path(policy)
    bundle = b64encode(authority.certificate_pem).decode()
    return {
        "name": case.webhook(policy),
        "clientConfig": {"url": url, "caBundle": bundle},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": [case.operation],
                "resources": ["configmaps"],
            }
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": made.space}},
        "objectSelector": {"matchLabels": {CASE_LABEL: case.name, POLICY_LABEL: policy}},
        "failurePolicy": policy,
        "sideEffects": "None",
        "timeoutSeconds": CALL_SECONDS,
        "admissionReviewVersions": ["v1"],
    }


def _object(resource: Resource, name: str) -> JsonObject:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
    }


@contextmanager
def _existing(asker: Asker, resource: Resource, body: JsonObject) -> Iterator[None]:
    made = asker.ask("POST", resource.path(None), body)
    assert made.done, made
    try:
        yield
    finally:
        name = made.object["metadata"]["name"]  # type: ignore[index,call-overload]
        asker.ask("DELETE", resource.path(None, str(name)))
