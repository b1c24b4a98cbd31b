"""A PodGang as it is read: by who makes it, by who places it, and by who shows it."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
from pydantic import ValidationError

from api import names
from api.objects import condition_of
from api.podgang import PodGangSpec, PodGangStatus, PodGroup
from api.streams import Custom, Meta
from kube.objects import Key

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Gang:
    """A PodGang there is."""

    metadata: Meta
    spec: PodGangSpec
    status: PodGangStatus
    base_name: str = ""
    """The gang that comes first as its pods have it, where it does not say so itself."""

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name

    @property
    def origin(self) -> str:
        """The UID of the set it is part of, or its own: what its trace goes by."""
        return self.metadata.controller_uid or self.metadata.uid

    @property
    def base(self) -> Key | None:
        """The gang that must have started first, if there is one."""
        name = self.metadata.labels.get(names.BASE_PODGANG_LABEL) or self.base_name
        return (self.metadata.namespace, name) if name else None

    @property
    def initialized(self) -> bool:
        """Whether whoever makes its pods says that they were all made."""
        condition = condition_of(self.status.conditions, names.INITIALIZED)
        return condition is not None and condition.status == "True"

    def cliques(self) -> Iterator[Key]:
        """List its cliques, by namespace and full name."""
        return ((self.metadata.namespace, group.name) for group in self.spec.pod_groups)

    def references(self) -> Iterator[tuple[PodGroup, Key]]:
        """List the pods it refers to, with their cliques; those of another namespace are none."""
        ours = self.metadata.namespace  # one text for all of them, as thousands are remembered
        for group in self.spec.pod_groups:
            for reference in group.pod_references:
                if reference.namespace == ours:
                    yield group, (ours, reference.name)


def read_gang(found: Custom) -> Gang | None:
    """Read a gang, or say in the log why it cannot be read.

    What others write into its status, as a newer version does, is left out where it cannot be read.
    """
    meta = found.metadata
    try:
        spec = PodGangSpec.model_validate_json(bytes(found.spec))
    except ValidationError as error:
        _log.error("PodGang %s/%s cannot be read: %s", meta.namespace, meta.name, error)
        return None
    try:
        status = PodGangStatus.model_validate_json(bytes(found.status))
    except ValidationError as error:
        _log.info("status of PodGang %s/%s: %s", meta.namespace, meta.name, error)
        status = _readable(msgspec.json.decode(found.status))
    return Gang(meta, spec, status)


def _readable(raw: object) -> PodGangStatus:
    """Read of a status what can be read, each field and each condition by itself."""
    said = raw if isinstance(raw, dict) else {}
    listed = said.pop("conditions", None)
    kept = {key: value for key, value in said.items() if _read({key: value})}
    found = [_read({"conditions": [each]}) for each in (listed if isinstance(listed, list) else ())]
    conditions = [condition for status in found if status for condition in status.conditions]
    return PodGangStatus.model_validate({**kept, "conditions": conditions})


def _read(raw: object) -> PodGangStatus | None:
    try:
        return PodGangStatus.model_validate(raw)
    except ValidationError:
        return None
