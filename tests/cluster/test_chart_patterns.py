"""Sets from the chart of patterns, all four by one `helm install`, run on a lab."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support import patterns
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl

pytestmark = [pytest.mark.cluster, pytest.mark.long]

NETWORK: Final = Path(__file__).parents[2] / "examples" / "network.yaml"
PODS: Final = {"chat": 2, "large": 8, "split": 8, "agents": 4}


@pytest.fixture
def network(kubectl: Kubectl) -> Iterator[None]:
    """The words in which the examples ask for closeness."""
    kubectl.apply_file(NETWORK)
    yield
    kubectl.run("delete", "-f", str(NETWORK), "--ignore-not-found")


async def test_all_four_patterns_run(
    cluster: Cluster, installed: Installed, network: None, tmp_path: Path
) -> None:
    def helm(*arguments: str | Path) -> None:
        access = ("--kubeconfig", installed.lab.kubeconfig, "--namespace", cluster.namespace)
        done = subprocess.run(
            [installed.helm, *arguments, *access],
            capture_output=True, text=True, check=False, env={"HOME": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    values = [part for path in patterns.EXAMPLES for part in ("-f", path)]
    helm("install", "models", patterns.CHART, *values)
    for name, pods in PODS.items():
        seen = await cluster.running(name)
        assert len(seen.pods) == pods, name
    seen = await cluster.running("split")
    (base,) = [gang for gang in seen.gangs if gang.metadata.name == "split-0"]
    assert base.status.placement_score is not None
    scaled = {gang.metadata.name for gang in seen.gangs} - {"split-0"}
    assert scaled == {"split-0-prefill-pool-0", "split-0-decode-pool-0"}
    helm("uninstall", "models")
    for name in PODS:
        await cluster.pods(name, 0)
