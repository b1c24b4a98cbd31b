"""What helm itself has to say of the charts."""

import subprocess
from pathlib import Path

import pytest

from tests.support import patterns
from tests.support.charts import CHART

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without


@pytest.mark.parametrize("chart", [CHART, patterns.CHART], ids=lambda chart: chart.name)
def test_helm_finds_nothing_wrong(helm: Path, chart: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [helm, "lint", "--strict", "--kube-version", "1.37.1", chart],
        capture_output=True, text=True, check=False, env={"HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout
