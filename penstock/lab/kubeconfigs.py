"""Kubeconfigs for our accounts: the lab's cluster, one token file, and no other credential."""

import base64
import os
from pathlib import Path

import yaml

from kube import kubeconfig as choosing
from kube.errors import BadCredentials
from penstock.lab.errors import LabError


def cluster_of(kubeconfig: Path) -> dict[str, object]:
    """Return the cluster of the current context: its address and CA, and nobody's credentials.

    The CA is carried inside, so that the result does not depend on where the file lies.
    """
    try:
        cluster = dict(choosing.choose([kubeconfig], None).cluster)
        authority = cluster.pop("certificate-authority", None)
        if isinstance(authority, str):
            content = Path(authority).read_bytes()
            cluster["certificate-authority-data"] = base64.b64encode(content).decode()
    except (BadCredentials, OSError) as error:
        raise LabError(f"the lab's kubeconfig is of no use: {error}") from error
    return cluster


def render(cluster: dict[str, object], account: str, token_file: Path) -> str:
    """Return a kubeconfig in which an account speaks to the cluster by its token file."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": account, "user": {"tokenFile": str(token_file)}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": account}}],
        "current-context": "lab",
    }
    text: str = yaml.safe_dump(document, sort_keys=False)
    return text


def write_private(path: Path, text: str) -> None:
    """Write a file only its owner can read, in one step."""
    temporary = path.with_name(f"{path.name}.new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)
