"""What the audit log keeps of an object: the shape of a gang, without what people wrote into it.

It is taken by a list of what is kept. Fields that are not on it are left out; of those that are,
text is kept where it is a word of the program or of the policy, and is a tag everywhere else.
"""

from dataclasses import dataclass
from typing import Final

import orjson

from api import names
from api.jsons import Json, JsonObject
from policies import gang_sizes, podcliqueset_view, reading, standing
from policies.audit_records import Size
from policies.audit_words import Redacting
from policies.policy import Policy

LARGEST: Final = 20 * 1024
MOST_LISTED: Final = 256

SETS: Final = frozenset(
    (
        *("spec", "replicas", "template", "cliques", "name", "roleName", "minAvailable"),
        *("startsAfter", "cliqueStartupType", "podSpec", "podCliqueScalingGroups", "cliqueNames"),
        *(
            "autoScalingConfig",
            "scaleConfig",
            "minReplicas",
            "maxReplicas",
            "topologyConstraint",
            "topologyName",
        ),
        *("packDomain", "pack", "required", "preferred", "priorityClassName"),
        *("terminationDelay", "levels", "domain", "key", "updateStrategy", "type"),
    )
)
PODS: Final = frozenset(
    (
        *("containers", "initContainers", "ephemeralContainers", "image", "resources", "limits"),
        *("requests", "restartPolicy", "schedulerName", "hostNetwork", "hostPID", "hostIPC"),
        *("securityContext", "privileged", "allowPrivilegeEscalation", "runAsNonRoot"),
        *("runAsUser", "capabilities", "add", "drop", "seccompProfile", "procMount", "sysctls"),
        *("ports", "containerPort", "hostPort", "schedulingGates", "priority", "volumes"),
        *("reference", "nodeName", "hostProcess", "windowsOptions", "seLinuxOptions", "os"),
        *("appArmorProfile", "hostPath", "emptyDir", "configMap", "secret", "projected", "csi"),
        *("downwardAPI", "ephemeral", "persistentVolumeClaim", "nfs", "iscsi", "hostUsers"),
    )
)
KEPT: Final = SETS | PODS
AMOUNTS: Final = ("limits", "requests")
# Kept with nothing inside: that a volume is of this sort is all that is asked of it.
BARE: Final = frozenset(
    (
        *("hostPath", "emptyDir", "configMap", "secret", "projected", "csi", "downwardAPI"),
        *("ephemeral", "persistentVolumeClaim", "nfs", "iscsi"),
    )
)
LABELS: Final = frozenset(
    (
        *names.QUEUE_LABELS,
        *(names.GANG_LABEL, names.GANG_SIZE_LABEL, names.GANG_MINIMUM_LABEL, names.PODGANG_LABEL),
        *(names.TOPOLOGY_LABEL, names.TOPOLOGY_LEVEL_LABEL),
    )
)
_COUNTS: Final = (names.GANG_SIZE_LABEL, names.GANG_MINIMUM_LABEL)
# A Secret in a record would be one too many, were it ever sent here by mistake.
NEVER: Final = ("Secret", "ConfigMap")


@dataclass(frozen=True)
class Excerpt:
    """What is kept of an object: its shape as JSON, its size and queue, and a digest of it."""

    text: bytes = b""
    cut: bool = False
    digest: str = ""
    size: Size | None = None
    queue: str = ""


def of(kind: str, namespace: str, raw: JsonObject, policy: Policy, told: Redacting) -> Excerpt:
    """Take an excerpt; `cut` says that it would have been too large."""
    labels = reading.mapping(reading.mapping(raw.get("metadata")).get("labels"))
    queue = standing.of(policy, namespace, labels).name
    digest = f"hmac:{told.digest(_canonical(raw))[:32]}"
    if kind in NEVER:
        return Excerpt(digest=digest)
    kept: JsonObject = {"spec": _kept(raw.get("spec"), told)}
    if found := _labels(labels, told):
        kept["metadata"] = {"labels": found}
    text = orjson.dumps(kept)
    cut = len(text) > LARGEST
    size = _size(raw) if kind == "PodCliqueSet" else None
    return Excerpt(
        b"" if cut else text,
        cut,
        digest,
        size,
        told.value(queue) if queue else "",
    )


def _canonical(raw: JsonObject) -> bytes:
    try:
        return orjson.dumps(raw.get("spec"), option=orjson.OPT_SORT_KEYS)
    except TypeError:  # text that is not Unicode, or nested without end
        return b""


def _size(raw: JsonObject) -> Size:
    seen = podcliqueset_view.view(raw)
    sizes = gang_sizes.of_set(seen)
    return Size(sizes.gangs, len(sizes.cliques), sizes.pods, sizes.gpus)


def _labels(labels: JsonObject, told: Redacting) -> JsonObject:
    return {
        key: told.quantity(value) if key in _COUNTS else told.value(value)
        for key, value in labels.items()
        if key in LABELS and isinstance(value, str)
    }


def _kept(value: Json, told: Redacting) -> Json:
    if isinstance(value, dict):
        return {key: _inside(key, inside, told) for key, inside in value.items() if key in KEPT}
    if isinstance(value, list):
        return [_kept(each, told) for each in value[:MOST_LISTED]]
    return told.value(value) if isinstance(value, str) else value


def _inside(key: str, value: Json, told: Redacting) -> Json:
    if key in BARE:
        return {}
    if key in AMOUNTS and isinstance(value, dict):
        return {_amount_name(name, told): _amount(each, told) for name, each in value.items()}
    return _kept(value, told)


def _amount_name(name: str, told: Redacting) -> str:
    if name in told.known or name in ("cpu", "memory", "ephemeral-storage", "nvidia.com/gpu"):
        return name
    # Whether these are GPUs is asked by limits on them.
    return told.tag(name) + (gang_sizes.GPU_SUFFIX if name.endswith(gang_sizes.GPU_SUFFIX) else "")


def _amount(value: Json, told: Redacting) -> Json:
    return told.quantity(value) if isinstance(value, str) else _kept(value, told)
