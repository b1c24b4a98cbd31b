"""What a lab is asked to be."""

import dataclasses
import re
from dataclasses import dataclass
from typing import Final

from penstock.lab import defaults
from penstock.lab.errors import BadFlagError
from penstock.lab.tools import KUBERNETES
from penstock.lab.topology import parse_topology

DEFAULT_NAME: Final = defaults.NAME
DEFAULT_TOPOLOGY: Final = defaults.TOPOLOGY
RUNTIMES: Final = ("binary", "kind")
COMPONENTS: Final = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok-controller",
)

_NAME = re.compile(r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$")
_QUANTITY = re.compile(r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$")
_GATE = re.compile(r"^[A-Za-z0-9]+=(true|false)$")
_RUNTIME_CONFIG = re.compile(r"^[a-z0-9./]+=(true|false)$")
_FLAG = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")


@dataclass(frozen=True)
class Setting:
    """A flag for one component of the control plane."""

    component: str
    flag: str
    value: str

    @property
    def argument(self) -> str:
        """Return it as it stands on the component's command line."""
        return f"--{self.flag}={self.value}"


@dataclass(frozen=True)
class LabSpec:
    """Everything that can be chosen about a lab; two labs with equal specs are alike."""

    name: str = DEFAULT_NAME
    nodes: int = 40
    gpus: int = 8
    cpu: str = "96"
    memory: str = "768Gi"
    pods: int = 110
    topology: str = DEFAULT_TOPOLOGY
    kubernetes: str = KUBERNETES
    scheduler_qps: int | None = None
    feature_gates: str = ""
    runtime_config: str = ""
    audit: bool = False
    settings: tuple[Setting, ...] = ()
    runtime: str = "binary"
    real_node: bool = False

    def check(self) -> None:
        """Raise BadFlagError for the first thing that cannot be."""
        if not _NAME.match(self.name):
            raise BadFlagError(
                f"--name {self.name!r}: use at most 40 small letters, digits and dashes, "
                "with a letter or digit at both ends"
            )
        if self.runtime not in RUNTIMES:
            raise BadFlagError(f"--runtime {self.runtime!r}: choose one of {', '.join(RUNTIMES)}")
        if self.real_node and self.runtime != "binary":
            raise BadFlagError("--real-node: goes with --runtime binary only")
        self._check_nodes()
        _check_list("--feature-gates", self.feature_gates, _GATE, "NAME=true")
        _check_list("--runtime-config", self.runtime_config, _RUNTIME_CONFIG, "api/all=true")
        if self.scheduler_qps is not None and self.scheduler_qps < 1:
            raise BadFlagError(f"--scheduler-qps {self.scheduler_qps}: must be at least 1")
        seen: set[tuple[str, str]] = set()
        for setting in self.settings:
            if (setting.component, setting.flag) in seen:
                raise BadFlagError(f"--set {setting.component}.{setting.flag} is given twice")
            seen.add((setting.component, setting.flag))

    def _check_nodes(self) -> None:
        for flag, number in (("--nodes", self.nodes), ("--gpus", self.gpus)):
            if number < 0:
                raise BadFlagError(f"{flag} {number}: must not be negative")
        if self.pods < 1:
            raise BadFlagError(f"--pods {self.pods}: must be at least 1")
        for flag, quantity in (("--cpu", self.cpu), ("--memory", self.memory)):
            if not _QUANTITY.match(quantity):
                raise BadFlagError(f"{flag} {quantity!r}: not a quantity such as 96 or 768Gi")
        parse_topology(self.topology)


def parse_setting(text: str) -> Setting:
    """Read `COMPONENT.FLAG=VALUE`; raises BadFlagError."""
    name, equals, value = text.partition("=")
    component, _, flag = name.partition(".")
    flag = flag.removeprefix("--")
    if not equals or not _FLAG.match(flag):
        raise BadFlagError(f"--set {text!r}: give COMPONENT.FLAG=VALUE, such as kube-apiserver.v=4")
    if component not in COMPONENTS:
        raise BadFlagError(f"--set {text!r}: {component!r} is none of {', '.join(COMPONENTS)}")
    return Setting(component, flag, value)


def differences(have: LabSpec, want: LabSpec) -> list[str]:
    """Say in which settings two labs differ: `--nodes is 40, not 80`."""
    told = []
    for field in dataclasses.fields(LabSpec):
        old, new = _shown(getattr(have, field.name)), _shown(getattr(want, field.name))
        if old != new:
            flag = "set" if field.name == "settings" else field.name.replace("_", "-")
            told.append(f"--{flag} is {old}, not {new}")
    return told


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        settings = [f"{item.component}.{item.flag}={item.value}" for item in value]
        return " ".join(sorted(settings)) or "unset"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "unset" if value is None or value == "" else str(value)


def _check_list(flag: str, text: str, pattern: re.Pattern[str], example: str) -> None:
    for part in filter(None, text.split(",")):
        if not pattern.match(part):
            raise BadFlagError(f"{flag}: {part!r} is not like {example}")
