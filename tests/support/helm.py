"""Where tests get helm from: the places in which the lab looks, without making anything."""

import os
from pathlib import Path

from penstock.lab.folders import Cache
from penstock.lab.tools import KUBERNETES, toolset


def find_helm() -> Path | None:
    """Return the helm binary, or None where there is none."""
    given = (os.environ.get(name) for name in ("PENSTOCK_BIN_DIR", "KUBEBUILDER_ASSETS"))
    (tool,) = (tool for tool in toolset(KUBERNETES) if tool.name == "helm")
    places = [Path(folder) / "helm" for folder in given if folder]
    places.append(Cache.of(os.environ).binary(tool.release, tool.name))
    return next((place for place in places if os.access(place, os.X_OK)), None)
