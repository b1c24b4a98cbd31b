"""What is remembered of a lab between commands, in one file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from penstock.lab.errors import LabError
from penstock.lab.folders import Folder, write_whole
from penstock.lab.processes import Record
from penstock.lab.spec import LabSpec


class Daemon(BaseModel):
    """One process of the control plane."""

    model_config = ConfigDict(frozen=True)

    pid: int
    created: float

    @property
    def record(self) -> Record:
        """Return it as `processes` knows it."""
        return Record(self.pid, self.created)


class LabState(BaseModel):
    """A lab as it was last left."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    spec: LabSpec
    complete: bool
    """False while it is being made: whatever is there then is only good for removal."""
    ports: dict[str, int]
    binaries: dict[str, Path]
    daemons: dict[str, Daemon] = {}

    @property
    def records(self) -> dict[str, Record]:
        """Return the daemons' records by component."""
        return {name: daemon.record for name, daemon in self.daemons.items()}

    def with_daemons(self, records: Mapping[str, Record], *, complete: bool) -> "LabState":
        """Return the state with these daemons."""
        daemons = {
            name: Daemon(pid=record.pid, created=record.created) for name, record in records.items()
        }
        return self.model_copy(update={"daemons": daemons, "complete": complete})


@dataclass(frozen=True)
class Lab:
    """A lab that runs."""

    name: str
    directory: Path
    kubeconfig: Path
    binaries: Mapping[str, Path]
    ports: Mapping[str, int]
    spec: LabSpec


def read_state(folder: Folder) -> LabState | None:
    """Return what is remembered, None if nothing is; raises LabError if it makes no sense."""
    try:
        return LabState.model_validate_json(folder.state.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise LabError(
            f"{folder.state} cannot be read ({error.error_count()} faults); "
            f"remove the lab with `penstock lab down --name {folder.name}`"
        ) from error


def write_state(folder: Folder, state: LabState) -> None:
    """Remember a lab."""
    write_whole(folder.state, state.model_dump_json(indent=2) + "\n")


def as_lab(folder: Folder, state: LabState) -> Lab:
    """Return the lab of a state."""
    return Lab(
        name=folder.name,
        directory=folder.root,
        kubeconfig=folder.kubeconfig,
        binaries=state.binaries,
        ports=state.ports,
        spec=state.spec,
    )
