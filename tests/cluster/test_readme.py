"""What the README has people type first, in the session's lab. `make story` types all of it."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.repo import checkout
from tests.story import walking
from tests.story.script import QUICK, Step, Typed
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl

pytestmark = pytest.mark.cluster

EXAMPLE = checkout.ROOT / "examples" / "disaggregated.yaml"
# In this lab others may run gangs at the same time, which these numbers count.
OF_ALL = ("1 Pending, 2 Running", "272 needed, 256 free, 16 short", "add 2 nodes like node-00")


def here(space: str, kubeconfig: Path) -> tuple[Step, ...]:
    """Give the first steps for somebody who has a lab, and a namespace in it."""
    return tuple(replace(step, acts=tuple(_acts(step, space, kubeconfig))) for step in QUICK)


def _acts(step: Step, space: str, kubeconfig: Path) -> list[Typed]:
    found = []
    for act in step.acts:
        assert isinstance(act, Typed)
        if act.command == "make demo":  # which tests/cluster/test_demo.py runs
            continue
        command = act.command
        if command.startswith("export KUBECONFIG="):
            command = f'export KUBECONFIG="{kubeconfig}"'
        says = tuple(
            words.replace("default/", f"{space}/") for words in act.says if words not in OF_ALL
        )
        found.append(replace(act, command=command, says=says))
    return found


async def test_a_stranger_learns_why_a_gang_waits(
    cluster: Cluster, kubectl: Kubectl, installed: Installed, tmp_path: Path
) -> None:
    own = tmp_path / "kubeconfig"
    own.write_bytes(installed.lab.kubeconfig.read_bytes())
    own.chmod(0o600)
    Kubectl(installed.lab.binaries["kubectl"], own, cluster.namespace).run(
        "config", "set-context", "--current", f"--namespace={cluster.namespace}", check=True
    )
    kubectl.apply_file(EXAMPLE)
    await cluster.running("chat", gangs=2)
    path = os.pathsep.join([os.environ["PATH"], str(installed.lab.binaries["kubectl"].parent)])
    desk = walking.Desk({**os.environ, "PATH": path, "COLUMNS": "100"}, tmp_path, tmp_path)
    shown = walking.walk(here(cluster.namespace, own), desk, print)
    told = " ".join(shown["kubectl penstock explain wide-0"].split())
    assert re.search(r"272 needed, \d+ free, \d+ short", told)
    assert re.search(r"add \d+ nodes? like node-", told)
