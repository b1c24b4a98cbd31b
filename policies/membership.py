"""Labels and annotations that say what a pod is to gangs and kubelets: no template may write them.

A set's pods are made by an account that guards let write all of these.
"""

from typing import Final

from api import names
from policies.pod_claims import MIRROR_ANNOTATION

OURS: Final = f"{names.GROUP}/"
FREE_LABELS: Final = frozenset((names.QUEUE_LABEL,))
MEMBERSHIP_LABELS: Final = frozenset(
    (
        names.PODGANG_LABEL,
        names.BASE_PODGANG_LABEL,
        names.PODCLIQUE_LABEL,
        names.POD_INDEX_LABEL,
        names.SET_REPLICA_LABEL,
        names.SCALING_GROUP_LABEL,
        names.SCALING_GROUP_REPLICA_LABEL,
    )
)
ANNOTATIONS: Final = frozenset((MIRROR_ANNOTATION,))


def is_forbidden_label(key: str) -> bool:
    """Tell whether the label says which gang a pod belongs to, or will once we read it."""
    return key in MEMBERSHIP_LABELS or (key.startswith(OURS) and key not in FREE_LABELS)


def is_forbidden_annotation(key: str) -> bool:
    """Tell whether the annotation makes the pod something that no gang can have."""
    return key in ANNOTATIONS
