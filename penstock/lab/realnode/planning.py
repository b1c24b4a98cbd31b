"""What the processes of a real node do, step by step, as values. Pure."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from penstock.lab.realnode import addresses
from penstock.lab.realnode.configuring import KERNEL_SETTINGS
from penstock.lab.realnode.places import Places


class Daemon(msgspec.Struct, frozen=True):
    """A program of the node that runs as long as the node does."""

    name: str
    command: list[str]
    log: str
    waits_for: str
    """It is started once this file is there."""


class Plan(msgspec.Struct, frozen=True):
    """All that warden and holder need to know."""

    root: str
    cgroup: str
    api_port: int
    """Where the API server listens inside, and where connections to it are taken outside."""
    furnish: list[list[str]]
    """Commands that make the new namespaces a node, in this order."""
    daemons: list[Daemon]


def make_plan(places: Places, cgroup: str, api_port: int, binaries: Mapping[str, Path]) -> Plan:
    """Return the plan of one lab's node."""
    return Plan(
        root=str(places.root),
        cgroup=cgroup,
        api_port=api_port,
        furnish=[*mounts(places), *network()],
        daemons=daemons(places, binaries),
    )


def mounts(places: Places) -> list[list[str]]:
    """Return the commands that give the node directories of its own; nothing of them shows outside.

    They are run in a namespace of mounts of their own.
    """
    shown = [
        ["mount", "--bind", str(places.kernel / setting.replace("/", ".")), f"/proc/sys/{setting}"]
        for setting in KERNEL_SETTINGS
    ]
    return [
        ["mount", "--make-rprivate", "/"],
        ["mount", "-t", "proc", "proc", "/proc"],
        *shown,
        ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"],
        ["mkdir", "-p", "/run/lock", "/run/netns"],
        ["mount", "--bind", str(places.lib), "/var/lib"],
        ["mount", "--bind", str(places.log), "/var/log"],
        # Volumes that containers mount must show in others, but only in here.
        ["mount", "--make-rshared", "/"],
    ]


def network() -> list[list[str]]:
    """Return the commands that give the node its address, on a cable that leads nowhere.

    The default route lets packets for Services leave the sender, which kube-proxy's rules then
    send to a pod.
    """
    return [
        ["ip", "link", "set", "lo", "up"],
        ["ip", "link", "add", "node0", "type", "veth", "peer", "name", "nowhere"],
        ["ip", "address", "add", f"{addresses.NODE_ADDRESS}/24", "dev", "node0"],
        ["ip", "link", "set", "nowhere", "up"],
        ["ip", "link", "set", "node0", "up"],
        ["ip", "route", "add", "default", "dev", "node0"],
    ]


def daemons(places: Places, binaries: Mapping[str, Path]) -> list[Daemon]:
    """Return the node's programs; kubelet and proxy wait for their credentials."""
    kubelet, proxy = places.kubeconfig("kubelet"), places.kubeconfig("kube-proxy")
    labels = f"{addresses.KIND_LABEL}={addresses.REAL}"
    return [
        Daemon(
            name="containerd",
            command=["containerd", "--config", str(places.containerd)],
            log=str(places.daemon_log("containerd")),
            waits_for=str(places.containerd),
        ),
        Daemon(
            name="kubelet",
            command=[
                str(binaries["kubelet"]),
                f"--config={places.kubelet}",
                f"--kubeconfig={kubelet}",
                f"--hostname-override={addresses.NODE_NAME}",
                f"--node-ip={addresses.NODE_ADDRESS}",
                f"--node-labels={labels}",
                "--v=1",
            ],
            log=str(places.daemon_log("kubelet")),
            waits_for=str(kubelet),
        ),
        Daemon(
            name="kube-proxy",
            command=[str(binaries["kube-proxy"]), f"--config={places.proxy}", "--v=1"],
            log=str(places.daemon_log("kube-proxy")),
            waits_for=str(proxy),
        ),
    ]
