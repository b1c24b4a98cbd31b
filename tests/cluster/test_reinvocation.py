"""Another's webhook changes a gang's pod after ours: the API server asks ours once more."""

import secrets
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from api import names
from api.jsons import Json, JsonObject
from certs.issue import Names, issue_authority, issue_leaf
from kube.clock import SystemClock
from kube.resources import MUTATING_WEBHOOKS, PODS
from policies.answers import Allow
from tests.support.asking import DRY_RUN, Asker, asking
from tests.support.counting import counted
from tests.support.gangpods import PLAIN, part
from tests.support.installed import Installed
from tests.support.living import Cluster
from tests.support.tenants import a_pod
from tests.support.webhookstand import HOST, Reply, Script, Stand, standing
from webhook import review

pytestmark = pytest.mark.cluster

REVIEWS: Final = "penstock_webhook_requests_total"
PATH: Final = "/add"
NOTE: Final = "zz.example/seen"
QUOTA: Final[Json] = {"name": "example.com/quota"}
GATE: Final[Json] = {"name": names.GATE}
OTHERS: Final[Json] = {"name": "sidecar", "image": "none"}
ADDED: Final[tuple[JsonObject, ...]] = (
    {"op": "add", "path": "/spec/containers/-", "value": OTHERS},
    {"op": "add", "path": "/metadata/annotations", "value": {NOTE: "yes"}},
)
ADD: Final[Script] = lambda uid: Reply(review.write(uid, Allow(ADDED)))  # noqa: E731


@contextmanager
def another(asker: Asker, space: str, folder: Path) -> Iterator[Stand]:
    """Register a webhook that is asked after ours, for pods of one namespace."""
    now = SystemClock().now()
    authority = issue_authority(now)
    leaf = issue_leaf(authority, Names.of(HOST), now)
    certificate, key = folder / "tls.crt", folder / "tls.key"
    certificate.write_bytes(leaf.certificate_pem)
    key.write_bytes(leaf.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with standing({PATH: ADD}, context) as stand:
        # Webhooks are asked in the order of their configurations' names.
        name = f"zz-{secrets.token_hex(4)}"
        assert name > names.WEBHOOK_CONFIGURATION
        bundle = b64encode(authority.certificate_pem).decode()
        webhook: JsonObject = {
            "name": "pods.zz.example",
            "clientConfig": {"url": stand.url + PATH, "caBundle": bundle},
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["pods"],
                }
            ],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        body: JsonObject = {"metadata": {"name": name}, "webhooks": [webhook]}
        made = asker.ask("POST", MUTATING_WEBHOOKS.path(), body)
        assert made.done, made
        try:
            yield stand
        finally:
            asker.ask("DELETE", MUTATING_WEBHOOKS.path(None, name))


def gang_pod(name: str) -> JsonObject:
    body = a_pod(name, schedulingGates=[QUOTA])
    return {**body, "metadata": {"name": name, "labels": {**PLAIN}}}


async def test_our_gate_is_there_once_when_we_are_asked_twice(
    installed: Installed, cluster: Cluster, tmp_path: Path
) -> None:
    pods = PODS.path(cluster.namespace)
    with (
        asking(installed.lab.kubeconfig) as asker,
        another(asker, cluster.namespace, tmp_path) as stand,
    ):

        async def called() -> bool | None:
            seen = asker.ask("POST", pods + DRY_RUN, gang_pod("called"))
            return True if seen.done and stand.asked[PATH] else None

        await cluster.until(called, "the other webhook called")
        grown: list[float] = []
        for i in range(5):
            before = counted(installed.installation, REVIEWS, path="/mutate/pods")
            asked = stand.asked[PATH]
            made = asker.ask("POST", pods, gang_pod(f"p{i}"))
            assert made.done, made.message
            grown.append(counted(installed.installation, REVIEWS, path="/mutate/pods") - before)
            assert stand.asked[PATH] == asked + 1
        # Somebody else's pods can only add to what was counted meanwhile.
        assert min(grown) == 2, grown
        stored = asker.ask("GET", f"{pods}/p0").object
    assert part(stored, "spec", "schedulingGates") == [QUOTA, GATE]
    assert part(stored, "metadata", "annotations") == {NOTE: "yes"}
    containers = part(stored, "spec", "containers")
    assert isinstance(containers, list)
    assert [part({"it": each}, "it", "name") for each in containers] == ["main", "sidecar"]
