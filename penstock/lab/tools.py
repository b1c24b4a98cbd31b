"""The programs a lab is made of: where each comes from and how it is built. Values only."""

import platform
import re
import sys
from dataclasses import dataclass
from typing import Final

from penstock.lab import defaults
from penstock.lab.errors import BadFlagError

KUBERNETES: Final = defaults.KUBERNETES
ETCD: Final = "v3.6.8"
KWOK: Final = "v0.8.0"
HELM: Final = "v3.22.0"
CNI: Final = "v1.9.1"

GO_MINIMUM: Final = (1, 26)

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


@dataclass(frozen=True, order=True)
class Version:
    """A release number; what follows the third number is not looked at."""

    major: int
    minor: int
    patch: int

    @property
    def tag(self) -> str:
        """Return it as releases are tagged: v1.37.1."""
        return f"v{self.major}.{self.minor}.{self.patch}"


def parse_version(text: str) -> Version | None:
    """Find the first release number in a text, such as what a program says of itself."""
    found = _VERSION.search(text)
    return Version(*(int(part or 0) for part in found.groups())) if found else None


@dataclass(frozen=True)
class Download:
    """A published file, and where its SHA-256 is published (see `downloading.find_checksum`)."""

    url: str
    checksums: str
    member: str | None = None
    """The file to take out, where the download is a tarball."""


@dataclass(frozen=True)
class Tool:
    """One program, at one version."""

    name: str
    version: str
    module: str
    package: str
    release: str
    """What it is released with; tools of a release share a directory in the cache."""
    download: Download
    seconds: float
    """How long a cold build takes on two cores: the estimate before there is a better one."""
    staging: bool = False
    """Whether the module is Kubernetes itself, whose staging modules must be replaced."""
    ldflags: tuple[str, ...] = ("-s", "-w")
    ask_version: tuple[str, ...] = ("--version",)
    same_minor: bool = True
    """Whether a binary that was found must match in its minor version, or in the major only."""

    def accepts(self, found: Version) -> bool:
        """Tell whether a binary of that version can stand in for this tool."""
        wanted = parse_version(self.version)
        if wanted is None or found.major != wanted.major:
            return False
        return found.minor == wanted.minor if self.same_minor else True


def toolset(kubernetes: str) -> tuple[Tool, ...]:
    """Return every tool a lab needs, cheapest to build first, for one Kubernetes version."""
    version = parse_version(kubernetes)
    if version is None or version.tag != kubernetes:
        raise BadFlagError(f"--kubernetes {kubernetes}: give a full version such as {KUBERNETES}")
    return (
        _etcd(),
        _kwok("kwokctl"),
        _kwok("kwok"),
        _kubernetes("kubectl", version, 40),
        _kubernetes("kube-apiserver", version, 300),
        _kubernetes("kube-controller-manager", version, 120),
        _kubernetes("kube-scheduler", version, 30),
        _helm(),
    )


def node_toolset(kubernetes: str) -> tuple[Tool, ...]:
    """Return what a lab's real node needs besides, cheapest to build first.

    None of it is wanted by other labs, and the kubelet takes longer to build than all of theirs.
    """
    version = parse_version(kubernetes)
    if version is None:
        raise BadFlagError(f"--kubernetes {kubernetes}: give a full version such as {KUBERNETES}")
    return (
        _plugin("loopback", "main"),
        _plugin("ptp", "main"),
        _plugin("host-local", "ipam"),
        _kubernetes("kube-proxy", version, 60),
        _kubernetes("kubelet", version, 840),
    )


def _system() -> str:
    return "darwin" if sys.platform == "darwin" else "linux"


def machine() -> str:
    """Return this machine's architecture as Go and images call it."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def _kubernetes(name: str, version: Version, seconds: float) -> Tool:
    variables = {
        "gitVersion": version.tag,
        "gitMajor": str(version.major),
        "gitMinor": str(version.minor),
        "gitTreeState": "clean",
    }
    stamped = tuple(
        f"-X k8s.io/component-base/version.{key}={value}" for key, value in variables.items()
    )
    url = f"https://dl.k8s.io/release/{version.tag}/bin/{_system()}/{machine()}/{name}"
    return Tool(
        name=name,
        version=version.tag,
        module="k8s.io/kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        release=f"kubernetes-{version.tag}",
        download=Download(url, f"{url}.sha256"),
        seconds=seconds,
        staging=True,
        ldflags=("-s", "-w", *stamped),
        ask_version=("version", "--client") if name == "kubectl" else ("--version",),
    )


def _etcd() -> Tool:
    folder = f"etcd-{ETCD}-{_system()}-{machine()}"
    base = f"https://github.com/etcd-io/etcd/releases/download/{ETCD}"
    return Tool(
        name="etcd",
        version=ETCD,
        module="go.etcd.io/etcd/server/v3",
        package="go.etcd.io/etcd/server/v3",
        release=f"etcd-{ETCD}",
        download=Download(f"{base}/{folder}.tar.gz", f"{base}/SHA256SUMS", f"{folder}/etcd"),
        seconds=30,
        same_minor=False,
    )


def _kwok(name: str) -> Tool:
    repository = "kubernetes-sigs/kwok"
    asset = f"{name}-{_system()}-{machine()}"
    return Tool(
        name=name,
        version=KWOK,
        module="sigs.k8s.io/kwok",
        package=f"sigs.k8s.io/kwok/cmd/{name}",
        release=f"kwok-{KWOK}",
        download=Download(
            f"https://github.com/{repository}/releases/download/{KWOK}/{asset}",
            f"https://api.github.com/repos/{repository}/releases/tags/{KWOK}",
        ),
        seconds=60,
    )


def _helm() -> Tool:
    folder = f"{_system()}-{machine()}"
    url = f"https://get.helm.sh/helm-{HELM}-{folder}.tar.gz"
    return Tool(
        name="helm",
        version=HELM,
        module="helm.sh/helm/v3",
        package="helm.sh/helm/v3/cmd/helm",
        release=f"helm-{HELM}",
        download=Download(url, f"{url}.sha256sum", f"{folder}/helm"),
        seconds=60,
        ldflags=("-s", "-w", f"-X helm.sh/helm/v3/internal/version.version={HELM}"),
        ask_version=("version", "--short"),
        same_minor=False,
    )


def _plugin(name: str, family: str) -> Tool:
    module = "github.com/containernetworking/plugins"
    asset = f"cni-plugins-{_system()}-{machine()}-{CNI}.tgz"
    url = f"https://{module}/releases/download/{CNI}/{asset}"
    return Tool(
        name=name,
        version=CNI,
        module=module,
        package=f"{module}/plugins/{family}/{name}",
        release=f"cni-plugins-{CNI}",
        download=Download(url, f"{url}.sha256", f"./{name}"),
        seconds=10,
        ldflags=("-s", "-w", f"-X {module}/pkg/utils/buildversion.BuildVersion={CNI}"),
    )
