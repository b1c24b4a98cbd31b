"""How people ask: which cluster, and in which form they want the answer. Light, for `--help`."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Where:
    """Which cluster, as kubectl chooses one; empty for kubectl's own choice."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    companion: bool | None = None
    """Whether another makes the gangs; None to find out."""
    system: str = "penstock-system"
    """Where Penstock's own objects are, such as the policy."""


@dataclass(frozen=True)
class Form:
    """How the answer is written, and whether again whenever it changes."""

    command: str
    output: str = ""
    watch: bool = False
    interval: float = 2.0


@dataclass(frozen=True)
class Nodes:
    """Nodes that there might be."""

    like: str
    count: int
    labels: Mapping[str, str]
