"""A PodGang as it is read: by who makes it, by who places it, and by who shows it."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

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
        for group in self.spec.pod_groups:
            for reference in group.pod_references:
                if reference.namespace == self.metadata.namespace:
                    yield group, (reference.namespace, reference.name)


def read_gang(found: Custom) -> Gang | None:
    """Read a gang, or say in the log why it cannot be read."""
    try:
        return Gang(
            found.metadata,
            PodGangSpec.model_validate_json(bytes(found.spec)),
            PodGangStatus.model_validate_json(bytes(found.status)),
        )
    except ValidationError as error:
        meta = found.metadata
        _log.error("PodGang %s/%s cannot be read: %s", meta.namespace, meta.name, error)
        return None
