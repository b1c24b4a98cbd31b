"""What containerd, the kubelet, kube-proxy and the network plugins of a real node are told. Pure.

Some of it makes up for what machines that labs run on lack; each such line says for what.
"""

import json
from pathlib import Path
from typing import Final

import yaml

from api.jsons import JsonObject
from penstock.lab.realnode import addresses
from penstock.lab.realnode.places import SOCKET, Places

PAUSE_IMAGE: Final = "localhost/penstock-lab/busybox:1"
"""Keeps a pod's namespaces; it carries busybox, so that tests have small programs to run."""

KERNEL_SETTINGS: Final = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""What the kubelet wants of the kernel, below /proc/sys. It is shown these in place of the
machine's own, which it would otherwise change for everybody."""


def containerd(places: Places, snapshotter: str) -> str:
    """Return the configuration of containerd 1.6 or newer."""
    return f"""\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "{SOCKET}"

[plugins."io.containerd.internal.v1.opt"]
path = "/var/lib/containerd/opt"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
# Where we may not lower the odds of being killed for want of memory, as in many virtual machines,
# no container would start.
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{places.plugins}"
conf_dir = "{places.network}"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "{snapshotter}"
default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def network() -> str:
    """Return the chain of network plugins: a cable to each pod, and an address from our range."""
    cable: JsonObject = {
        "type": "ptp",
        "ipMasq": False,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": addresses.PODS}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return json.dumps({"cniVersion": "1.0.0", "name": "lab", "plugins": [cable]}, indent=2) + "\n"


def kubelet(places: Places, authority: Path, cgroup: str) -> str:
    """Return the kubelet's configuration; it asks the API server who may do what on it."""
    return _yaml(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{cgroup}",
            # Else it does not start on machines with control groups of the first version.
            "failCgroupV1": False,
            "failSwapOn": False,
            "protectKernelDefaults": True,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(authority)},
            },
            "authorization": {"mode": "Webhook"},
            "resolvConf": str(places.resolver),
            "nodeStatusUpdateFrequency": "5s",
            # How soon a changed Secret or ConfigMap is in its volume: else only after a minute.
            "syncFrequency": "5s",
            # There is no registry from which an image that was thrown away could be had again.
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            # Disk and memory are the whole machine's, and others use them as well.
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1%",
                "nodefs.inodesFree": "1%",
                "imagefs.available": "1%",
            },
            "registerWithTaints": [
                {"key": addresses.KIND_LABEL, "value": addresses.REAL, "effect": "NoSchedule"}
            ],
        }
    )


def proxy(places: Places) -> str:
    """Return kube-proxy's configuration."""
    return _yaml(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "clusterCIDR": addresses.PODS,
            "hostnameOverride": addresses.NODE_NAME,
            "clientConnection": {"kubeconfig": str(places.kubeconfig("kube-proxy"))},
            # A changed Service shows at once rather than after a second.
            "iptables": {"minSyncPeriod": "0s", "syncPeriod": "30s"},
            # These settings are the machine's, not the network namespace's: leave them alone.
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
        }
    )


def kubeconfig(user: str, server: str, authority: str, certificate: str, key: str) -> str:
    """Return a kubeconfig that depends on no other file; the last three are in base64."""
    return _yaml(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "lab",
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": user}}],
            "clusters": [
                {
                    "name": "lab",
                    "cluster": {"server": server, "certificate-authority-data": authority},
                }
            ],
            "users": [
                {
                    "name": user,
                    "user": {"client-certificate-data": certificate, "client-key-data": key},
                }
            ],
        }
    )


def _yaml(document: JsonObject) -> str:
    return yaml.safe_dump(document, sort_keys=False)
