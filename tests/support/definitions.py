"""The definitions in a control plane without Penstock, where nothing but the API server judges."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import yaml

from api.jsons import JsonObject
from tests.support.living import Kubectl

DEFINITIONS = Path(__file__).parents[2] / "charts" / "penstock" / "files" / "crds"


@contextmanager
def served(kubectl: Kubectl) -> Iterator[None]:
    """Apply every definition as a person would, and take all of them away at the end."""
    kubectl.run("apply", "-f", str(DEFINITIONS), check=True)
    try:
        kubectl.run(
            "wait", "--for=condition=Established", "-f", str(DEFINITIONS), "--timeout=30s",
            check=True,
        )  # fmt: skip
        yield
    finally:
        # Other tests count on a control plane that does not know our kinds.
        kubectl.run("delete", "-f", str(DEFINITIONS), "--timeout=55s", check=True)


def read(kubectl: Kubectl, *what: str) -> JsonObject:
    """Get one object as the API server has it."""
    done = kubectl.run("get", *what, "-o", "json", check=True)
    return cast("JsonObject", json.loads(done.stdout))


def refusal(kubectl: Kubectl, body: JsonObject, *arguments: str) -> str:
    """Say why an object is not taken, or "" when it is; nothing is stored."""
    done = kubectl.run(
        "create", "--dry-run=server", *arguments, "-f", "-", text=yaml.safe_dump(body)
    )
    return done.stderr if done.returncode else ""
