"""A webhook that wants to know its clients, and an API server that shows it a certificate."""

import asyncio
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from api import names
from api.jsons import JsonObject
from certs.issue import issue_authority
from kube.clock import SystemClock
from kube.resources import MUTATING_WEBHOOKS, PODS
from penstock.lab import cluster as labs
from penstock.lab.progress import Screen
from penstock.lab.spec import LabSpec, Setting
from tests.support.asking import DRY_RUN, Asker, Seen, asking
from tests.support.clientpair import client_pair, showing
from tests.support.leftovers import fresh_name
from tests.webhook.running import HOST, Running, files_in, serving, until

pytestmark = [pytest.mark.cluster, pytest.mark.long]

CLIENT: Final = "kube-apiserver"
GATED: Final = {names.GANG_LABEL: "asked", names.GANG_SIZE_LABEL: "1"}
POD: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "asked", "labels": {**GATED}},
    "spec": {"containers": [{"name": "main", "image": "none"}]},
}


@contextmanager
def called(asker: Asker, webhook: Running) -> Iterator[None]:
    """Have the API server ask this webhook about pods for as long as the context lasts."""
    name = f"asked-{secrets.token_hex(3)}"
    bundle = webhook.files.client_bundle()
    body: JsonObject = {
        "apiVersion": MUTATING_WEBHOOKS.api_version,
        "kind": MUTATING_WEBHOOKS.kind,
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": f"{name}.{names.GROUP}",
                "clientConfig": {
                    "url": f"https://{HOST}:{webhook.port}/mutate/pods",
                    "caBundle": bundle,
                },
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
    assert asker.ask("POST", MUTATING_WEBHOOKS.path(), body).done
    try:
        yield
    finally:
        asker.ask("DELETE", MUTATING_WEBHOOKS.path(name=name))


def ask(asker: Asker) -> Seen:
    return asker.ask("POST", PODS.path("default") + DRY_RUN, POD)


def gated(seen: Seen) -> bool:
    return seen.done and names.GATE in str(seen.object["spec"])


def test_an_api_server_that_shows_its_certificate_is_answered_and_another_is_not(
    tmp_path: Path,
) -> None:
    clients = issue_authority(SystemClock().now())
    (tmp_path / "client-ca.crt").write_bytes(clients.certificate_pem)
    files = files_in(tmp_path / "tls")
    files.issue()
    shown = showing(client_pair(clients, CLIENT, tmp_path), tmp_path, "*")
    setting = Setting("kube-apiserver", "admission-control-config-file", str(shown))
    spec = LabSpec(fresh_name(), nodes=1, settings=(setting,))
    screen = Screen(sys.stderr, SystemClock(), live=False)
    trust = ("--client-ca", str(tmp_path / "client-ca.crt"), "--client-name")
    try:
        lab = asyncio.run(labs.up(spec, screen))
        with asking(lab.kubeconfig) as asker:
            with (
                serving(files, tmp_path / "log", *trust, CLIENT) as webhook,
                called(asker, webhook),
            ):
                until(lambda: gated(ask(asker)), "a pod is given its gate")
            with (
                serving(files, tmp_path / "other-log", *trust, "another") as webhook,
                called(asker, webhook),
            ):
                until(lambda: not ask(asker).done, "a pod is refused")
                assert "show the client certificate" in ask(asker).message
    finally:
        asyncio.run(labs.down(spec.name, screen))
