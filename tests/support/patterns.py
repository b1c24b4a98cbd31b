"""The chart of patterns as helm renders it, with its own examples."""

import subprocess
from pathlib import Path
from typing import Final

import yaml

from api.jsons import JsonObject

CHART: Final = Path(__file__).parents[2] / "charts" / "penstock-patterns"
EXAMPLES: Final = sorted((CHART / "examples").glob("*.yaml"))


def rendered(helm: Path, home: Path, *arguments: str | Path) -> list[JsonObject]:
    """Render it; ValueError with helm's words if it does not."""
    done = subprocess.run(
        [helm, "template", "models", CHART, "--kube-version", "1.37.1", *arguments],
        capture_output=True, text=True, check=False, env={"HOME": str(home)},
    )  # fmt: skip
    if done.returncode:
        raise ValueError(done.stderr)
    return [each for each in yaml.safe_load_all(done.stdout) if each]
