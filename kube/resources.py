"""The kinds of object we speak about, and where the API server keeps them."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from api import names


@dataclass(frozen=True)
class Resource:
    """One served kind. `group` is empty for the core API."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """Return what objects of this kind carry as `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """Return the name people and CustomResourceDefinitions use: plural and group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(
        self,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
    ) -> str:
        """Return the URL path of a collection, an object or a subresource, already quoted.

        A namespaced kind without a namespace is the collection over all namespaces.
        """
        if namespace is not None and not self.namespaced:
            raise ValueError(f"{self.full_name} is cluster-wide, got namespace {namespace!r}")
        if name is not None and self.namespaced and namespace is None:
            raise ValueError(f"{self.full_name} {name!r} needs a namespace")
        if subresource is not None and name is None:
            raise ValueError(f"subresource {subresource!r} of {self.full_name} needs a name")
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part is not None]
        return "/" + "/".join(quote(part, safe="") for part in parts)


def _core(plural: str, kind: str, *, namespaced: bool) -> Resource:
    return Resource("", "v1", plural, kind, namespaced)


_ADMISSION = "admissionregistration.k8s.io"

PODS: Final = _core("pods", "Pod", namespaced=True)
NODES: Final = _core("nodes", "Node", namespaced=False)
SECRETS: Final = _core("secrets", "Secret", namespaced=True)
CONFIGMAPS: Final = _core("configmaps", "ConfigMap", namespaced=True)
NAMESPACES: Final = _core("namespaces", "Namespace", namespaced=False)
SERVICES: Final = _core("services", "Service", namespaced=True)
EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event", namespaced=True)
DAEMONSETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet", namespaced=True)
VOLUME_CLAIMS: Final = _core("persistentvolumeclaims", "PersistentVolumeClaim", namespaced=True)
VOLUMES: Final = _core("persistentvolumes", "PersistentVolume", namespaced=False)
STORAGE_CLASSES: Final = Resource(
    "storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False
)
PRIORITY_CLASSES: Final = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)
AUTOSCALERS: Final = Resource(
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", namespaced=True
)
ROLES: Final = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role", namespaced=True)
ROLE_BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", namespaced=True
)
RESOURCE_CLAIMS: Final = Resource(
    "resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", namespaced=True
)
CLAIM_TEMPLATES: Final = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", namespaced=True
)
DEVICE_CLASSES: Final = Resource(
    "resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False
)
DEVICE_SLICES: Final = Resource(
    "resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False
)
COMPUTE_DOMAINS: Final = Resource(
    "resource.nvidia.com", "v1beta1", "computedomains", "ComputeDomain", namespaced=True
)
SERVICEACCOUNTS: Final = _core("serviceaccounts", "ServiceAccount", namespaced=True)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
ENDPOINTSLICES: Final = Resource(
    "discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", namespaced=True
)
PODCLIQUESETS: Final = Resource(
    names.GROVE_GROUP, names.GROVE_VERSION, "podcliquesets", "PodCliqueSet", namespaced=True
)
TOPOLOGY_BINDINGS: Final = Resource(
    names.GROVE_GROUP,
    names.GROVE_VERSION,
    "clustertopologybindings",
    "ClusterTopologyBinding",
    namespaced=False,
)
PODCLIQUES: Final = Resource(
    names.GROVE_GROUP, names.GROVE_VERSION, "podcliques", "PodClique", namespaced=True
)
SCALING_GROUPS: Final = Resource(
    names.GROVE_GROUP,
    names.GROVE_VERSION,
    "podcliquescalinggroups",
    "PodCliqueScalingGroup",
    namespaced=True,
)
PODGANGS: Final = Resource(
    names.GROVE_GANG_GROUP, names.GROVE_VERSION, "podgangs", "PodGang", namespaced=True
)
RESERVATIONS: Final = Resource(
    names.GROUP, names.VERSION, "reservations", "Reservation", namespaced=True
)
POLICY_REPORTS: Final = Resource(
    "wgpolicyk8s.io", "v1alpha2", "policyreports", "PolicyReport", namespaced=True
)
OPEN_REPORTS: Final = Resource("openreports.io", "v1alpha1", "reports", "Report", namespaced=True)
API_SERVICES: Final = Resource(
    "apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False
)
VALIDATING_WEBHOOKS: Final = Resource(
    _ADMISSION,
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
GUARD_BINDINGS: Final = Resource(
    _ADMISSION,
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
MUTATING_WEBHOOKS: Final = Resource(
    _ADMISSION,
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
