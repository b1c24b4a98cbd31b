"""What an upstream Grove makes of a set beside cliques, gangs and pods, written from its behaviour.

Every set has an account, a Role and a token for init containers that wait, whether any waits or
not; every replica a headless service; and each clique or group that asks for one an autoscaler.
"""

from collections.abc import Iterator, Mapping

from api.cliques import AutoScalingConfig
from api.jsons import Json, JsonObject
from kube.resources import (
    AUTOSCALERS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    Resource,
)
from tests.support.upstream import Upstream

OF_WAITERS = (SERVICEACCOUNTS, ROLES, ROLE_BINDINGS, SECRETS)


def beside(grove: Upstream) -> Iterator[tuple[Resource, JsonObject]]:
    """All of it, in an order in which it can be made."""
    yield from _for_waiters(grove)
    template = grove.spec.template
    shown = template.headless_service_config
    for replica in range(grove.spec.replicas):
        name = f"{grove.name}-{replica}"
        selector: JsonObject = {
            "app.kubernetes.io/managed-by": "grove-operator",
            "app.kubernetes.io/part-of": grove.name,
            "grove.io/podcliqueset-replica-index": str(replica),
        }
        spec: JsonObject = {
            "clusterIP": "None",
            "selector": selector,
            "publishNotReadyAddresses": shown is None or bool(shown.publish_not_ready_addresses),
        }
        labels = grove.labels(name, "pcs-headless-service", replica)
        yield SERVICES, _body(grove, SERVICES, name, labels, {"spec": spec})
        grouped = {n for group in template.pod_clique_scaling_groups for n in group.clique_names}
        for clique in template.cliques:
            limits = clique.spec.auto_scaling_config
            if limits and clique.name not in grouped:
                target = (f"{name}-{clique.name}", "PodClique")
                yield AUTOSCALERS, _autoscaler(grove, target, limits, clique.spec.replicas)
        for group in template.pod_clique_scaling_groups:
            if group.scale_config:
                target = (f"{name}-{group.name}", "PodCliqueScalingGroup")
                yield AUTOSCALERS, _autoscaler(grove, target, group.scale_config, group.replicas)


def _for_waiters(grove: Upstream) -> Iterator[tuple[Resource, JsonObject]]:
    account, role, token = grove.name, f"grove.io:pcs:{grove.name}", f"{grove.name}-ic-sat"
    rbac = "rbac.authorization.k8s.io"
    rule: JsonObject = {
        "apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"],
    }  # fmt: skip
    subject: JsonObject = {"kind": "ServiceAccount", "name": account, "namespace": grove.namespace}
    parts: tuple[tuple[Resource, str, str, JsonObject], ...] = (
        (SERVICEACCOUNTS, account, "pod-service-account", {"automountServiceAccountToken": True}),
        (ROLES, role, "pod-role", {"rules": [rule]}),
        (
            ROLE_BINDINGS, role, "pod-role-binding",
            {"roleRef": {"apiGroup": rbac, "kind": "Role", "name": role}, "subjects": [subject]},
        ),
        (
            SECRETS, token, "pod-sa-token-secret",
            {"type": "kubernetes.io/service-account-token"},
        ),
    )  # fmt: skip
    for resource, name, component, content in parts:
        body = _body(grove, resource, name, grove.labels(name, component), content)
        if resource is SECRETS:
            metadata = body["metadata"]
            assert isinstance(metadata, dict)
            metadata["annotations"] = {"kubernetes.io/service-account.name": account}
        yield resource, body


def _autoscaler(
    grove: Upstream, target: tuple[str, str], limits: AutoScalingConfig, replicas: int
) -> JsonObject:
    name, kind = target
    metrics: list[Json] = [*limits.metrics]
    reference: JsonObject = {"apiVersion": "grove.io/v1alpha1", "kind": kind, "name": name}
    spec: JsonObject = {
        "scaleTargetRef": reference,
        "minReplicas": limits.min_replicas or replicas,
        "maxReplicas": limits.max_replicas,
    }
    if metrics:
        spec["metrics"] = metrics
    return _body(grove, AUTOSCALERS, name, grove.labels(name, "pcs-hpa"), {"spec": spec})


def _body(
    grove: Upstream,
    resource: Resource,
    name: str,
    labels: Mapping[str, str],
    content: JsonObject,
) -> JsonObject:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": grove.metadata(name, labels),
        **content,
    }
