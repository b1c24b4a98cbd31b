"""Rules 2.2: what is filled in where the author of a set left something out."""

from typing import Final

from tests.cluster.rules.cases import Case, Stored
from tests.cluster.rules.manifests import (
    CLIQUES,
    GROUPS,
    PLAIN,
    SPACE,
    TEMPLATE,
    created,
    scaling,
    updated,
)
from tests.support.edits import GONE, edited

_SPEC: Final = f"{CLIQUES}[0].spec"
_POD: Final = f"{_SPEC}.podSpec"
_SCALING: Final = f"{_SPEC}.autoScalingConfig"
_SCALE: Final = f"{GROUPS}[0].scaleConfig"
_SERVICE: Final = f"{TEMPLATE}.headlessServiceConfig"
_DELAY: Final = f"{TEMPLATE}.terminationDelay"

ROWS: Final = tuple(f"2.2.{row}" for row in range(1, 12))

CASES: Final[tuple[Case, ...]] = (
    created("2.2.1", "no namespace", {}, Stored({"metadata.namespace": SPACE})),
    created("2.2.2", "no restart policy", {}, Stored({f"{_POD}.restartPolicy": "Always"})),
    created("2.2.2", "a restart policy stays", {f"{_POD}.restartPolicy": "Never"}, Stored()),
    created("2.2.3", "no grace period", {}, Stored({f"{_POD}.terminationGracePeriodSeconds": 30})),
    created(
        "2.2.3", "no grace at all stays", {f"{_POD}.terminationGracePeriodSeconds": 0}, Stored()
    ),
    created(
        "2.2.4",
        "replicas of 0",
        {f"{_SPEC}.replicas": 0},
        Stored({f"{_SPEC}.replicas": 1, f"{_SPEC}.minAvailable": 1}),
    ),
    created(
        "2.2.5",
        "no minimum",
        {},
        Stored({f"{_SPEC}.minAvailable": 2, f"{CLIQUES}[2].spec.minAvailable": 4}),
    ),
    created("2.2.5", "a minimum stays", {f"{_SPEC}.minAvailable": 1}, Stored()),
    created(
        "2.2.6",
        "no lower limit of a clique",
        {_SCALING: scaling(None, 5)},
        Stored({f"{_SCALING}.minReplicas": 2}),
    ),
    created(
        "2.2.6",
        "a lower limit of a clique stays",
        {f"{_SPEC}.minAvailable": 1, _SCALING: scaling(1, 5)},
        Stored(),
    ),
    created(
        "2.2.7",
        "no lower limit of a group",
        {_SCALE: scaling(None, 5)},
        Stored({f"{_SCALE}.minReplicas": 3}),
    ),
    created("2.2.7", "a lower limit of a group stays", {_SCALE: scaling(2, 5)}, Stored()),
    created("2.2.8", "no termination delay", {}, Stored({_DELAY: "4h"})),
    created("2.2.8", "a termination delay stays", {_DELAY: "90s"}, Stored()),
    created("2.2.9", "no service", {}, Stored({f"{_SERVICE}.publishNotReadyAddresses": True})),
    created("2.2.9", "a service stays", {_SERVICE: {"publishNotReadyAddresses": False}}, Stored()),
    created("2.2.10", "no replicas", {"spec.replicas": GONE}, Stored({"spec.replicas": 0})),
    created(
        "2.2.10",
        "no startup type",
        {},
        Stored({f"{TEMPLATE}.cliqueStartupType": "CliqueStartupTypeAnyOrder"}),
    ),
    created(
        "2.2.10",
        "no counts of a group",
        {f"{GROUPS}[0].replicas": GONE},
        Stored({f"{GROUPS}[0].replicas": 1, f"{GROUPS}[0].minAvailable": 1}),
    ),
    created(
        "2.2.10",
        "an update strategy without type",
        {"spec.updateStrategy": {}},
        Stored({"spec.updateStrategy.type": "RollingRecreate"}),
    ),
    created("2.2.10", "no update strategy", {}, Stored({"spec.updateStrategy": GONE})),
    updated(
        "2.2.11",
        "a delay taken out of a stored set",
        {_DELAY: GONE},
        Stored({_DELAY: "4h"}),
        before=edited(PLAIN, {_DELAY: "90s"}),
    ),
    updated(
        "2.2.11",
        "a service taken out of a stored set",
        {_SERVICE: GONE},
        Stored({f"{_SERVICE}.publishNotReadyAddresses": True}),
        before=edited(PLAIN, {_SERVICE: {"publishNotReadyAddresses": False}}),
    ),
)
