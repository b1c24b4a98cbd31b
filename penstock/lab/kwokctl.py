"""What kwokctl is told: its configuration and its command lines. Pure.

The configuration has every port chosen by us, KWOK's stages replaced by ours, and one list of
patches for the flags of the control plane.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from api.jsons import Json, JsonObject
from penstock.lab.commands import Command
from penstock.lab.folders import Folder
from penstock.lab.realnode import addresses
from penstock.lab.spec import LabSpec, Setting
from penstock.lab.stages import stages

PORTS: Final = (
    "kubeApiserverPort",
    "etcdPort",
    "etcdPeerPort",
    "kubeControllerManagerPort",
    "kubeSchedulerPort",
    "kwokControllerPort",
)
"""The ports of a lab, by kwokctl's names for them."""

BINARY_FLAGS: Final[Mapping[str, str]] = {
    "etcd": "--etcd-binary",
    "kube-apiserver": "--kube-apiserver-binary",
    "kube-controller-manager": "--kube-controller-manager-binary",
    "kube-scheduler": "--kube-scheduler-binary",
    "kwok": "--kwok-controller-binary",
}

_SECURE_PORT: Final = frozenset(
    {"kubeconfig", "authorization-always-allow-paths", "bind-address", "secure-port"}
)

# The flags that kwokctl itself puts on command lines. One of these must be overridden, since given
# twice it might be merged; any other must be added, since overriding an absent flag does nothing.
_OWN_FLAGS: Final[Mapping[str, frozenset[str]]] = {
    "etcd": frozenset(
        {
            "name",
            "auto-compaction-retention",
            "quota-backend-bytes",
            "data-dir",
            "initial-advertise-peer-urls",
            "listen-peer-urls",
            "advertise-client-urls",
            "listen-client-urls",
            "initial-cluster",
        }
    ),
    "kube-apiserver": frozenset(
        {
            "etcd-prefix",
            "allow-privileged",
            "etcd-servers",
            "authorization-mode",
            "bind-address",
            "secure-port",
            "tls-cert-file",
            "tls-private-key-file",
            "client-ca-file",
            "service-account-key-file",
            "service-account-signing-key-file",
            "service-account-issuer",
            "proxy-client-key-file",
            "proxy-client-cert-file",
        }
    ),
    "kube-controller-manager": _SECURE_PORT
    | {
        "node-monitor-period",
        "node-monitor-grace-period",
        "root-ca-file",
        "service-account-private-key-file",
    },
    "kube-scheduler": _SECURE_PORT,
    "kwok-controller": frozenset(
        {
            "manage-all-nodes",
            "kubeconfig",
            "config",
            "tls-cert-file",
            "tls-private-key-file",
            "node-ip",
            "node-name",
            "node-port",
            "server-address",
            "node-lease-duration-seconds",
        }
    ),
}
_GATED: Final = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")

AUDIT_POLICY: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
# They are half of every object, and nobody reads them there.
omitManagedFields: true
rules:
# What carries secrets is recorded without its content.
- level: Metadata
  resources:
  - group: ""
    resources: [secrets, configmaps, serviceaccounts/token]
  - group: authentication.k8s.io
# From the answers can be told what was true at each instant.
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - group: ""
    resources: [pods, pods/status, pods/binding, nodes, nodes/status]
  - group: penstock.dev
  - group: scheduler.grove.io
- level: RequestResponse
  verbs: [create, update, patch, delete]
  namespaces: [penstock-system]
  resources:
  - group: coordination.k8s.io
    resources: [leases]
- level: Metadata
  resources:
  - group: coordination.k8s.io
    resources: [leases]
- level: Request
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
"""


@dataclass(frozen=True)
class Plan:
    """One lab as kwokctl is to make it."""

    spec: LabSpec
    folder: Folder
    ports: Mapping[str, int]
    binaries: Mapping[str, Path]
    enter: tuple[str, ...] = ()
    """What is put before kwokctl so that it and its daemons run in a real node's network."""


def lab_settings(plan: Plan) -> tuple[Setting, ...]:
    """Return every flag to set: the lab's own, then what was asked for, which wins."""
    spec = plan.spec
    manager = "kube-controller-manager"
    own = [
        # Without this every controller would act as system:masters, and rights could not be tested.
        Setting(manager, "use-service-account-credentials", "true"),
        # With it, at the stock rate, its forty controllers need four seconds to get their tokens.
        Setting(manager, "kube-api-qps", "200"),
        Setting(manager, "kube-api-burst", "400"),
    ]
    if not _is_kind(plan):
        # By itself it would be the person, whom webhooks judge otherwise than they would judge it.
        own.append(Setting(manager, "kubeconfig", str(plan.folder.manager_kubeconfig)))
    if spec.scheduler_qps is not None:
        qps = spec.scheduler_qps
        own.append(Setting("kube-scheduler", "kube-api-qps", str(qps)))
        own.append(Setting("kube-scheduler", "kube-api-burst", str(2 * qps)))
    if spec.real_node:
        own += real_node_settings(plan.folder)
    asked = {(setting.component, setting.flag) for setting in spec.settings}
    kept = [setting for setting in own if (setting.component, setting.flag) not in asked]
    return (*kept, *spec.settings)


def real_node_settings(folder: Folder) -> list[Setting]:
    """Return what a control plane with a real node needs besides."""
    keys = folder.cluster / "pki"
    server, kwok = "kube-apiserver", "kwok-controller"
    return [
        # Pods and the node find the API server under this address, and Services by these.
        Setting(server, "advertise-address", addresses.NODE_ADDRESS),
        Setting(server, "service-cluster-ip-range", addresses.SERVICES),
        # For logs, exec and port-forward: the kubelet wants to know who asks.
        Setting(server, "kubelet-client-certificate", str(keys / "admin.crt")),
        Setting(server, "kubelet-client-key", str(keys / "admin.key")),
        Setting(server, "kubelet-preferred-address-types", "InternalIP"),
        # Else KWOK would play the kubelet of the real node too.
        Setting(kwok, "manage-all-nodes", "false"),
        Setting(kwok, "manage-nodes-with-annotation-selector", "kwok.x-k8s.io/node=fake"),
    ]


def manager_kubeconfig(plan: Plan) -> str:
    """Have kube-controller-manager be who it is in a cluster, though its key is the person's."""
    keys = plan.folder.cluster / "pki"
    address = f"https://127.0.0.1:{plan.ports['kubeApiserverPort']}"
    account = {
        "client-certificate": str(keys / "admin.crt"),
        "client-key": str(keys / "admin.key"),
        "as": "system:kube-controller-manager",
    }
    cluster = {"server": address, "certificate-authority": str(keys / "ca.crt")}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": "manager", "user": account}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "manager"}}],
        "current-context": "lab",
    }
    return yaml.safe_dump(document, sort_keys=False)


def has_flag(spec: LabSpec, component: str, flag: str) -> bool:
    """Tell whether kwokctl gives the component this flag of its own accord."""
    if flag == "feature-gates" and component in _GATED:
        return bool(spec.feature_gates)
    if component == "kube-apiserver" and flag == "runtime-config":
        return bool(spec.runtime_config)
    if component == "kube-apiserver" and flag in {"audit-policy-file", "audit-log-path"}:
        return spec.audit
    return flag in _OWN_FLAGS[component]


def configuration(plan: Plan) -> list[JsonObject]:
    """Return the documents of kwokctl's configuration file."""
    spec = plan.spec
    options: JsonObject = {"runtime": spec.runtime, "heartbeatFactor": 1}
    if spec.runtime == "binary":
        # A real node's network is the lab's own: nobody else hears what listens there.
        address = "0.0.0.0" if spec.real_node else "127.0.0.1"  # noqa: S104 - see above
        options |= {"bindAddress": address, **plan.ports}
        options["kubectlBinary"] = str(plan.binaries["kubectl"])
    if spec.real_node:
        options["kubeApiserverCertSANs"] = [addresses.NODE_ADDRESS, addresses.API_SERVICE]
    if spec.feature_gates:
        options["kubeFeatureGates"] = spec.feature_gates
    if spec.runtime_config:
        options["kubeRuntimeConfig"] = spec.runtime_config
    if spec.audit:
        options["kubeAuditPolicy"] = str(plan.folder.audit_policy)
    return [
        {
            "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
            "kind": "KwokctlConfiguration",
            "metadata": {"name": "lab"},
            "options": options,
            "componentsPatches": _patches(plan),
        },
        {
            "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
            "kind": "KwokConfiguration",
            "metadata": {"name": "lab"},
            "options": {
                "cidr": addresses.PRETEND_PODS if spec.real_node else "10.0.0.0/8",
                "nodePlayStageParallelism": 16,
                "podPlayStageParallelism": 16,
                "nodeLeaseParallelism": 16,
            },
        },
        *stages(),
    ]


def _patches(plan: Plan) -> list[Json]:
    by_component: dict[str, list[Json]] = {}
    for setting in lab_settings(plan):
        argument: JsonObject = {
            "key": setting.flag,
            "value": setting.value,
            "override": has_flag(plan.spec, setting.component, setting.flag),
        }
        by_component.setdefault(setting.component, []).append(argument)
    return [{"name": name, "extraArgs": arguments} for name, arguments in by_component.items()]


def render(documents: list[JsonObject]) -> str:
    """Return YAML with long texts as blocks, so that people can read the stages in it."""
    return yaml.dump_all(documents, Dumper=_Readable, sort_keys=False, width=1000)


class _Readable(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Readable.add_representer(str, _block)


def create_command(plan: Plan) -> Command:
    """Return the command that makes and starts the cluster."""
    arguments = [
        *_kwokctl(plan),
        *("--config", str(plan.folder.kwok_config)),
        *("create", "cluster"),
        # An empty one keeps kwokctl's hands off the person's own kubeconfig.
        *("--kubeconfig", str(plan.folder.kwok_home / "kubeconfig") if _is_kind(plan) else ""),
    ]
    if not _is_kind(plan):
        for tool, flag in BINARY_FLAGS.items():
            arguments += [flag, str(plan.binaries[tool])]
    return Command(arguments, _environment(plan))


def start_command(plan: Plan) -> Command:
    """Return the command that starts an existing cluster again."""
    return Command([*_kwokctl(plan), "start", "cluster"], _environment(plan))


def delete_command(plan: Plan) -> Command:
    """Return the command that stops the cluster and removes what kwokctl made."""
    kubeconfig = str(plan.folder.kwok_home / "kubeconfig")
    arguments = [*_kwokctl(plan), "delete", "cluster", "--kubeconfig", kubeconfig]
    return Command(arguments, _environment(plan))


def _kwokctl(plan: Plan) -> list[str]:
    return [*plan.enter, str(plan.binaries["kwokctl"]), "--name", plan.spec.name]


def _environment(plan: Plan) -> dict[str, str]:
    environment = {
        "KWOK_WORKDIR": str(plan.folder.kwok_home),
        "KWOK_KUBE_VERSION": plan.spec.kubernetes,
        "KUBECONFIG": "",
    }
    if not _is_kind(plan):
        # kwokctl prefers a kubectl on the PATH to the one it is told of.
        path = plan.binaries["kubectl"].parent
        environment["PATH"] = f"{path}:/usr/local/bin:/usr/bin:/bin"
    return environment


def _is_kind(plan: Plan) -> bool:
    return plan.spec.runtime == "kind"


def complaint(output: str) -> str:
    """Return the last thing kwokctl complained of, without its log's wrapping."""
    last = ""
    for line in output.splitlines():
        try:
            entry: object = json.loads(line)
        except ValueError:
            last = line.strip() or last
            continue
        if isinstance(entry, dict) and entry.get("level") in {"ERROR", "WARN"}:
            detail = entry.get("err")
            last = str(entry.get("msg", "")) + (f": {detail}" if detail else "")
    return " ".join(last.split()) or "it did not say why"
