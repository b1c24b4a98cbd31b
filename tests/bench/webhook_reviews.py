"""Reviews as an API server sends them: whole sets and pods, with everything it adds to them."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from api import names
from api.jsons import Json, JsonObject

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
USER: JsonObject = {
    "username": "alice@example.com",
    "uid": "3f4c8b1e-8f6b-4b53-9f1e-0d6c3d7f2c11",
    "groups": ["ml-serving", "ml-platform", "system:authenticated"],
    "extra": {"example.com/tenant": ["serving"]},
}
WORKLOADS: JsonObject = {
    "username": f"system:serviceaccount:{names.NAMESPACE}:{names.WORKLOADS_ACCOUNT}",
    "groups": ["system:serviceaccounts", "system:authenticated"],
}
ROLES = ("router", "prefill", "decode-leader", "decode-worker", "planner")


@dataclass(frozen=True)
class Kind:
    """What a review says of the kind of its object."""

    group: str
    version: str
    kind: str
    plural: str


SETS = Kind(names.GROVE_GROUP, names.GROVE_VERSION, "PodCliqueSet", "podcliquesets")
CLIQUES = Kind(names.GROVE_GROUP, names.GROVE_VERSION, "PodClique", "podcliques")
BINDINGS = Kind(
    names.GROVE_GROUP, names.GROVE_VERSION, "ClusterTopologyBinding", "clustertopologybindings"
)
PODS = Kind("", "v1", "Pod", "pods")
CONFIGS = Kind("", "v1", "ConfigMap", "configmaps")


def pod_spec(role: str) -> JsonObject:
    """A pod template of an inference engine, as long as they are."""
    return {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 60,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 1000},
        "initContainers": [
            {
                "name": "fetch",
                "image": "registry.example/fetch:3.1",
                "args": ["--model", "example/large-70b", "--into", "/models"],
                "resources": {"requests": {"cpu": "1", "memory": "2Gi"}},
                "volumeMounts": [{"name": "models", "mountPath": "/models"}],
            }
        ],
        "containers": [_engine(role), _sidecar()],
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "dedicated", "operator": "Equal", "value": "inference", "effect": "NoExecute"},
        ],
        "nodeSelector": {"node.example.com/pool": "gpu"},
        "volumes": [
            {"name": "models", "persistentVolumeClaim": {"claimName": "models"}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
            {"name": "config", "configMap": {"name": f"{role}-config", "defaultMode": 420}},
        ],
    }


def _engine(role: str) -> JsonObject:
    probe: JsonObject = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 10}
    env: list[Json] = [
        {"name": f"ENGINE_{name}", "value": f"value-of-{name.lower()}"}
        for name in ("MODE", "TENSOR_PARALLEL", "PIPELINE", "KV_CACHE", "DTYPE", "LOG", "PORT")
    ]
    env.append({"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}})
    return {
        "name": "engine",
        "image": "registry.example/engine@sha256:" + "0123456789abcdef" * 4,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "engine.serve"],
        "args": [f"--role={role}", "--model=/models/large-70b", "--max-batch=256", "--port=8000"],
        "env": env,
        "ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": "16", "memory": "128Gi", "nvidia.com/gpu": "8"},
            "limits": {"memory": "128Gi", "nvidia.com/gpu": "8"},
        },
        "livenessProbe": probe,
        "readinessProbe": probe,
        "startupProbe": {**probe, "failureThreshold": 180},
        "volumeMounts": [
            {"name": "models", "mountPath": "/models", "readOnly": True},
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - a path in a container
            {"name": "config", "mountPath": "/etc/engine"},
        ],
    }


def _sidecar() -> JsonObject:
    return {
        "name": "metrics",
        "image": "registry.example/metrics:0.9",
        "args": ["--scrape", "http://localhost:8000/metrics"],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "ports": [{"name": "metrics", "containerPort": 9090, "protocol": "TCP"}],
    }


def pod_clique_set(cliques: int) -> JsonObject:
    """A set of so many cliques in a chain; the last two are a scaling group."""
    clique_names = [f"{ROLES[i % len(ROLES)]}-{i}" for i in range(cliques)]
    spec: JsonObject = {
        "replicas": 2,
        "template": {
            "cliqueStartupType": "CliqueStartupTypeExplicit",
            "terminationDelay": "4h",
            "headlessServiceConfig": {"publishNotReadyAddresses": True},
            "cliques": [
                {
                    "name": name,
                    "labels": {"example.com/role": name},
                    "spec": {
                        "roleName": name,
                        "replicas": 4,
                        "minAvailable": 2,
                        "startsAfter": [*clique_names[max(0, i - 2) : i]],
                        "podSpec": pod_spec(name),
                    },
                }
                for i, name in enumerate(clique_names)
            ],
            "podCliqueScalingGroups": [
                {
                    "name": "decode",
                    "cliqueNames": [*clique_names[-2:]],
                    "replicas": 3,
                    "minAvailable": 1,
                }
            ],
        },
    }
    return _stored(SETS, "chat", spec)


def gang_pod() -> JsonObject:
    """A pod of a gang as our own controller makes it."""
    spec = pod_spec("prefill")
    spec["schedulingGates"] = [{"name": names.GATE}]
    made = _stored(PODS, "chat-0-prefill-abcde", spec)
    metadata = made["metadata"]
    assert isinstance(metadata, dict)
    metadata["labels"] = {
        names.PODGANG_LABEL: "chat-0",
        names.PART_OF_LABEL: "chat",
        "app.kubernetes.io/managed-by": "grove-operator",
    }
    return made


def plain_pod() -> JsonObject:
    """A pod of a Deployment that its labels make a gang's; the gate is still to be put on."""
    made = _stored(PODS, "chat-7d4b9-abcde", pod_spec("decode"))
    metadata = made["metadata"]
    assert isinstance(metadata, dict)
    metadata["labels"] = {"app": "chat", names.GANG_LABEL: "chat", names.GANG_SIZE_LABEL: "8"}
    return made


def topology_binding() -> JsonObject:
    levels: list[Json] = [
        {"domain": domain, "key": key}
        for domain, key in (
            ("zone", names.ZONE_KEY),
            ("block", names.BLOCK_KEY),
            ("rack", names.RACK_KEY),
        )
    ]
    return _stored(BINDINGS, "network", {"levels": levels})


def clique() -> JsonObject:
    """A PodClique, which only its controller may change."""
    spec: JsonObject = {"roleName": "prefill", "replicas": 4, "podSpec": pod_spec("prefill")}
    made = _stored(CLIQUES, "chat-0-prefill", spec)
    metadata = made["metadata"]
    assert isinstance(metadata, dict)
    metadata["labels"] = {"app.kubernetes.io/managed-by": "grove-operator"}
    return made


def _stored(kind: Kind, name: str, spec: JsonObject) -> JsonObject:
    """Add what the API server has added by the time it asks."""
    version = f"{kind.group}/{kind.version}" if kind.group else kind.version
    return {
        "apiVersion": version,
        "kind": kind.kind,
        "metadata": {
            "name": name,
            "namespace": "serving",
            "uid": "0f6e2f0c-7f1d-4b84-a1a8-5a5d5c2b9e10",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "generation": 1,
            "managedFields": [
                {
                    "manager": "kubectl",
                    "operation": "Apply",
                    "apiVersion": version,
                    "time": "2026-01-02T03:04:05Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:spec": _fields(spec)},
                }
            ],
        },
        "spec": spec,
    }


def _fields(value: Json) -> JsonObject:
    """Say who owns which field, as the API server does in every object."""
    if isinstance(value, dict):
        return {f"f:{key}": _fields(inner) for key, inner in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {f'k:{{"name":"{i}"}}': {".": {}, **_fields(v)} for i, v in enumerate(value)}
    return {}


def review(
    kind: Kind,
    new: JsonObject,
    *,
    operation: str = "CREATE",
    old: JsonObject | None = None,
    user: JsonObject = USER,
) -> bytes:
    """The body of a call."""
    gvk: JsonObject = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    gvr: JsonObject = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    metadata = new["metadata"]
    assert isinstance(metadata, dict)
    request: JsonObject = {
        "uid": UID,
        "kind": gvk,
        "resource": gvr,
        "requestKind": gvk,
        "requestResource": gvr,
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "operation": operation,
        "userInfo": user,
        "object": new,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return orjson.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    )


def policy_config() -> JsonObject:
    """The policy as a ConfigMap, with a queue."""
    text = "queues:\n- name: chat\n  namespaces: [chat-*]\n  limits: {gangs: 20}\n"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names.POLICY_CONFIG, "namespace": names.NAMESPACE},
        "data": {names.POLICY_KEY: text},
    }


SET_OF_FIVE = review(SETS, pod_clique_set(5))
SET_OF_TWENTY = review(SETS, pod_clique_set(20))
POD = review(PODS, gang_pod(), user=WORKLOADS)
PLAIN_POD = review(PODS, plain_pod())

BY_ROUTE: dict[str, bytes] = {
    "/default/podcliquesets": SET_OF_FIVE,
    "/validate/podcliquesets": SET_OF_FIVE,
    "/validate/clustertopologybindings": review(BINDINGS, topology_binding()),
    "/mutate/pods": POD,
    "/authorize/managed": review(
        CLIQUES, clique(), operation="UPDATE", old=clique(), user=WORKLOADS
    ),
    "/validate/policy": review(CONFIGS, policy_config()),
}


def mix() -> Sequence[tuple[str, bytes]]:
    """Paths and bodies of one round: eight pods, two of them without a gate, and a set at both of
    its webhooks.
    """
    pods = [*[("/mutate/pods", POD)] * 3, ("/mutate/pods", PLAIN_POD)]
    return [
        *pods,
        ("/default/podcliquesets", SET_OF_FIVE),
        *pods,
        ("/validate/podcliquesets", SET_OF_FIVE),
    ]
