"""Where a lab's real node keeps its things."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

SOCKET: Final = "/run/containerd/containerd.sock"
"""Of containerd; /run is the node's own, so that every lab may use this path."""

HIDDEN: Final = ("/run", "/var/lib", "/var/log")
"""What the node sees of its own in place of the machine's: a lab may not lie below these."""


@dataclass(frozen=True)
class Places:
    """Paths below `node/` in one lab's directory."""

    root: Path

    @classmethod
    def of(cls, lab: Path) -> "Places":
        """Return the places in a lab's directory; nothing is made."""
        return cls(lab / "node")

    @property
    def plan(self) -> Path:
        """What the node's processes are told."""
        return self.root / "plan.json"

    @property
    def warden(self) -> Path:
        """The record of the process that stands outside and passes connections in."""
        return self.root / "warden.json"

    @property
    def holder(self) -> Path:
        """The record of the process whose end is the end of everything inside."""
        return self.root / "holder.json"

    @property
    def ready(self) -> Path:
        """There once the node's namespaces are furnished."""
        return self.root / "ready"

    @property
    def lib(self) -> Path:
        """What the node sees as /var/lib: images, containers and volumes."""
        return self.root / "lib"

    @property
    def log(self) -> Path:
        """What the node sees as /var/log."""
        return self.root / "log"

    @property
    def busybox(self) -> Path:
        """The image that every pod needs, which is made here."""
        return self.root / "busybox.tar"

    @property
    def kernel(self) -> Path:
        """What the kubelet reads in place of the machine's own kernel settings."""
        return self.root / "kernel"

    @property
    def plugins(self) -> Path:
        """The network plugins, in one directory."""
        return self.root / "plugins"

    @property
    def network(self) -> Path:
        """The directory with the network's configuration."""
        return self.root / "network"

    @property
    def containerd(self) -> Path:
        """The configuration of containerd."""
        return self.root / "containerd.toml"

    @property
    def kubelet(self) -> Path:
        """The configuration of the kubelet."""
        return self.root / "kubelet.yaml"

    @property
    def proxy(self) -> Path:
        """The configuration of kube-proxy."""
        return self.root / "kube-proxy.yaml"

    def kubeconfig(self, user: str) -> Path:
        """The kubeconfig of the kubelet or of kube-proxy."""
        return self.root / f"{user}.kubeconfig"

    @property
    def resolver(self) -> Path:
        """The resolv.conf of pods: there is no name server."""
        return self.root / "resolv.conf"

    def daemon_log(self, name: str) -> Path:
        """Where a daemon of the node writes."""
        return self.root / "logs" / f"{name}.log"
