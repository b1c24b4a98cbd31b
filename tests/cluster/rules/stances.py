"""Rules 12: what Grove's admission gets wrong and ours gets right."""

from typing import Final

from tests.cluster.rules.cases import Case, Stored, refused
from tests.cluster.rules.manifests import CLIQUES, created, scaling
from tests.support.edits import GONE

# Rule 12.12, about /scale, is asked of other objects; its cases are in managing.py.
ROWS: Final = ("12.2", "12.3", "12.14")

_SPEC: Final = f"{CLIQUES}[0].spec"
_POD: Final = f"{_SPEC}.podSpec"

CASES: Final[tuple[Case, ...]] = (
    created("12.2", "neither replicas nor minimum", {f"{_SPEC}.replicas": GONE},
            Stored({f"{_SPEC}.replicas": 1, f"{_SPEC}.minAvailable": 1})),
    created("12.2", "neither replicas nor minimum and an autoscaler",
            {f"{_SPEC}.replicas": GONE, f"{_SPEC}.autoScalingConfig": scaling(None, 4)},
            Stored({
                f"{_SPEC}.replicas": 1,
                f"{_SPEC}.minAvailable": 1,
                f"{_SPEC}.autoScalingConfig.minReplicas": 1,
            })),
    created("12.2", "a minimum above the default",
            {f"{_SPEC}.replicas": GONE, f"{_SPEC}.minAvailable": 2},
            refused(f"{_SPEC}.minAvailable", "2")),
    created("12.3", "a restart policy passes without a false warning",
            {f"{_POD}.restartPolicy": "Never"}, Stored()),
    created("12.3", "a restart policy that no pod has", {f"{_POD}.restartPolicy": "Once"},
            refused(f"{_POD}.restartPolicy", "Once")),
    created("12.14", "gates of others stay", {f"{_POD}.schedulingGates": [{"name": "a.example/x"}]},
            Stored()),
    created("12.14", "a gate twice",
            {f"{_POD}.schedulingGates": [{"name": "a.example/x"}, {"name": "a.example/x"}]},
            refused(f"{_POD}.schedulingGates")),
)  # fmt: skip
