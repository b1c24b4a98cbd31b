"""Pods with real containers, and kubectl for looking at them."""

from collections.abc import Sequence

from api.jsons import JsonObject
from penstock.lab.realnode.addresses import KIND_LABEL, REAL
from penstock.lab.realnode.configuring import PAUSE_IMAGE
from penstock.lab.state import Lab
from tests.support.living import Kubectl

ON_THE_REAL_NODE: JsonObject = {
    "nodeSelector": {KIND_LABEL: REAL},
    "tolerations": [{"key": KIND_LABEL, "operator": "Exists"}],
}

RESTRICTED: JsonObject = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def busybox(name: str, command: Sequence[str], **further: object) -> JsonObject:
    """A pod on the real node with one container of busybox, as restricted as a pod can be."""
    container: JsonObject = {
        "name": "main",
        "image": PAUSE_IMAGE,
        "command": list(command),
        "securityContext": RESTRICTED,
        **further,  # type: ignore[dict-item]
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            **ON_THE_REAL_NODE,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    }


def kubectl_of(lab: Lab, namespace: str = "default") -> Kubectl:
    """What a person would use in a namespace of the lab."""
    return Kubectl(lab.binaries["kubectl"], lab.kubeconfig, namespace)


def real_clique(
    name: str, *after: str, replicas: int = 1, slow: float = 0, notes: JsonObject | None = None
) -> JsonObject:
    """A clique of real containers, which are ready once they have slept so many seconds."""
    work = f"sleep {slow}; touch /tmp/ready; echo {name} is up; exec sleep 1000"
    container: JsonObject = {
        "name": "main",
        "image": PAUSE_IMAGE,
        "command": ["sh", "-c", work],
        "securityContext": RESTRICTED,
        "readinessProbe": {"exec": {"command": ["cat", "/tmp/ready"]}, "periodSeconds": 1},  # noqa: S108
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
    }
    spec: JsonObject = {
        "roleName": name,
        "replicas": replicas,
        "minAvailable": replicas,
        "startsAfter": list(after),
        "podSpec": {
            **ON_THE_REAL_NODE,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
        },
    }
    return {"name": name, "annotations": notes or {}, "spec": spec}
