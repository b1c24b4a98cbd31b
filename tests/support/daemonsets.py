"""DaemonSets as the API server would stream them."""

from collections.abc import Mapping

import msgspec

from api.daemonsets import DaemonSet
from api.jsons import Json


def daemonset(name: str, **spec: Json) -> DaemonSet:
    """One whose pods take a processor and a disk, in the namespace system."""
    asked: Mapping[str, Json] = {"requests": {"cpu": "1", "example.com/disk": "1"}}
    container: Mapping[str, Json] = {"name": "main", "resources": dict(asked)}
    raw = {
        "metadata": {"name": name, "namespace": "system", "uid": f"uid-{name}"},
        "spec": {
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container], **spec},
            }
        },
    }
    return msgspec.convert(raw, DaemonSet)
