"""A manifest as people write them for Grove, that uses every field a set has."""

from typing import Final

from api.jsons import Json, JsonObject
from tests.cluster.rules.manifests import (
    BROAD,
    CLIQUES,
    GROUPS,
    TEMPLATE,
    container,
    device_request,
    packed,
    scaling,
)
from tests.support.edits import Edits

_MEMORY: Final[JsonObject] = {"limits": {"cpu": "500m", "memory": "1Gi"}}


def whole(name: str = "chat") -> JsonObject:
    """A router that scales by itself, and an engine of leader and workers that scales as one."""
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {
            "name": name,
            "labels": {"team": "assistants"},
            "annotations": {"grove.io/mnnvl-group": "none", "example.com/owner": "Zoë"},
        },
        "spec": {
            "replicas": 1,
            "updateStrategy": {
                "type": "OnDelete",
                "paused": False,
                "rollingUpdate": {
                    "maxUnavailable": 2,
                    "maxSurge": 1,
                    "progressDeadlineSeconds": 600,
                },
            },
            "template": {
                "cliqueStartupType": "CliqueStartupTypeExplicit",
                "terminationDelay": "30m",
                "priorityClassName": "",
                "headlessServiceConfig": {"publishNotReadyAddresses": False},
                "topologyConstraint": packed("zone", "block", BROAD),
                "resourceClaimTemplates": [
                    {"name": "link", "templateSpec": device_request("link")},
                ],
                "resourceSharing": [
                    {
                        "name": "link",
                        "scope": "AllReplicas",
                        "filter": {
                            "childCliqueNames": ["router"],
                            "childScalingGroupNames": ["engine"],
                        },
                    },
                    {"name": "weights", "namespace": "models", "scope": "PerReplica"},
                ],
                "cliques": [_router(), _leader(), _worker()],
                "podCliqueScalingGroups": [_engine()],
            },
        },
    }


def _router() -> JsonObject:
    metrics: JsonObject = {
        "name": "router",
        "labels": {"role": "front"},
        "annotations": {"example.com/scrape": "true"},
        "spec": {
            "roleName": "router",
            "replicas": 2,
            "minAvailable": 1,
            "autoScalingConfig": scaling(1, 6),
            "podSpec": {
                "containers": [
                    container(
                        "router",
                        args=["--listen", ":8000"],
                        env=[{"name": "MODE", "value": "front"}],
                        ports=[{"containerPort": 8000, "name": "http"}],
                        readinessProbe={"httpGet": {"path": "/ready", "port": "http"}},
                        resources=_MEMORY,
                    )
                ],
                "tolerations": [{"operator": "Exists"}],
            },
        },
    }
    return metrics


def _leader() -> JsonObject:
    return {
        "name": "leader",
        "spec": {
            "roleName": "engine-leader",
            "replicas": 1,
            "startsAfter": ["router"],
            "podSpec": {
                "restartPolicy": "OnFailure",
                "terminationGracePeriodSeconds": 5,
                "schedulerName": "kai-scheduler",
                "containers": [container("engine", resources=_MEMORY)],
            },
        },
    }


def _worker() -> JsonObject:
    return {
        "name": "worker",
        "topologyConstraint": packed("rack"),
        "resourceSharing": [{"name": "link", "scope": "PerReplica"}],
        "spec": {
            "roleName": "engine-worker",
            "replicas": 3,
            "minAvailable": 2,
            "startsAfter": ["leader"],
            "podSpec": {
                "initContainers": [container("prepare", command=["true"])],
                "containers": [container("engine", resources=_MEMORY)],
                "volumes": [{"name": "scratch", "emptyDir": {}}],
            },
        },
    }


def _engine() -> JsonObject:
    return {
        "name": "engine",
        "cliqueNames": ["leader", "worker"],
        "annotations": {"grove.io/mnnvl-group": "none"},
        "replicas": 3,
        "minAvailable": 1,
        "scaleConfig": scaling(None, 5),
        "topologyConstraint": packed("block", "rack"),
        "resourceSharing": [
            {"name": "link", "scope": "AllReplicas", "filter": {"childCliqueNames": ["worker"]}}
        ],
    }


_AS_ALWAYS: Final[Json] = "Always"

# What is there afterwards beside what was written.
FILLED_IN: Final[Edits] = {
    f"{CLIQUES}[0].spec.podSpec.restartPolicy": _AS_ALWAYS,
    f"{CLIQUES}[0].spec.podSpec.terminationGracePeriodSeconds": 30,
    f"{CLIQUES}[0].spec.podSpec.containers[0].ports[0].protocol": "TCP",
    f"{CLIQUES}[1].spec.minAvailable": 1,
    f"{CLIQUES}[2].spec.podSpec.restartPolicy": _AS_ALWAYS,
    f"{CLIQUES}[2].spec.podSpec.terminationGracePeriodSeconds": 30,
    f"{GROUPS}[0].scaleConfig.minReplicas": 3,
}

# Every field of a set, so that none is forgotten above.
FIELDS: Final = (
    "spec.replicas", "spec.updateStrategy.type", "spec.updateStrategy.paused",
    *(f"spec.updateStrategy.rollingUpdate.{field}" for field in (
        "maxUnavailable", "maxSurge", "progressDeadlineSeconds",
    )),
    *(f"{TEMPLATE}.{field}" for field in (
        "cliqueStartupType", "terminationDelay", "priorityClassName",
        "headlessServiceConfig.publishNotReadyAddresses",
        "topologyConstraint.topologyName", "topologyConstraint.pack.required",
        "topologyConstraint.pack.preferred",
        "resourceClaimTemplates[0].name", "resourceClaimTemplates[0].templateSpec.spec.devices",
        "resourceSharing[0].name", "resourceSharing[0].scope", "resourceSharing[1].namespace",
        "resourceSharing[0].filter.childCliqueNames",
        "resourceSharing[0].filter.childScalingGroupNames",
    )),
    *(f"{CLIQUES}[0].{field}" for field in (
        "name", "labels.role", "annotations", "spec.roleName", "spec.replicas",
        "spec.minAvailable", "spec.autoScalingConfig.minReplicas",
        "spec.autoScalingConfig.maxReplicas", "spec.autoScalingConfig.metrics[0].type",
        "spec.podSpec.containers[0].name",
    )),
    *(f"{CLIQUES}[2].{field}" for field in (
        "topologyConstraint.pack.required", "resourceSharing[0].name",
        "resourceSharing[0].scope", "spec.startsAfter[0]",
    )),
    *(f"{GROUPS}[0].{field}" for field in (
        "name", "cliqueNames[0]", "annotations", "replicas", "minAvailable",
        "scaleConfig.maxReplicas", "topologyConstraint.pack.preferred", "resourceSharing[0].name",
        "resourceSharing[0].filter.childCliqueNames[0]",
    )),
)  # fmt: skip
