"""Rules 1.6 and 2.8: what a ClusterTopologyBinding must satisfy."""

from typing import Final

from api.jsons import Json, JsonObject
from tests.cluster.rules.cases import Case, Fault, Refused, Stored, refused
from tests.cluster.rules.manifests import binding, created
from tests.support.edits import edited

ROWS: Final = ("1.6", *(f"2.8.{row}" for row in range(1, 5)))

_LEVELS: Final = "spec.levels"
_WRITTEN: Final = "spec.schedulerTopologyBindings"
# Grove's messages name this list as it was called earlier, and tests of its users look for it.
_NAMED: Final = "spec.schedulerTopologyReferences"
_BINDING: Final = binding()


def _level(domain: str, key: str) -> JsonObject:
    return {"domain": domain, "key": key}


def _of(scheduler: str) -> Json:
    return {"schedulerName": scheduler, "topologyReference": "fabric"}


CASES: Final[tuple[Case, ...]] = (
    created("1.6", "four levels", {}, Stored(), _BINDING),
    created("1.6", "a level of any name", {f"{_LEVELS}[0]": _level("aisle-2", "example.com/aisle")},
            Stored(), _BINDING),
    created("1.6", "no level", {_LEVELS: []}, refused(_LEVELS), _BINDING),
    created("1.6", "a level in capitals", {f"{_LEVELS}[0].domain": "Zone"},
            refused(f"{_LEVELS}[0].domain"), _BINDING),
    created("1.6", "a key that is no label", {f"{_LEVELS}[0].key": "a key"},
            refused(f"{_LEVELS}[0].key"), _BINDING),
    created("1.6", "a key of 64 characters", {f"{_LEVELS}[0].key": "k" * 64},
            refused(f"{_LEVELS}[0].key"), _BINDING),
    created("2.8.1", "levels that differ", {}, Stored(), _BINDING),
    created("2.8.1", "a level twice", {f"{_LEVELS}[2].domain": "zone"},
            refused(f"{_LEVELS}[2].domain", "zone"), _BINDING),
    created("2.8.2", "keys that differ", {}, Stored(), _BINDING),
    created("2.8.2", "a key twice", {f"{_LEVELS}[2].key": "topology.kubernetes.io/zone"},
            refused(f"{_LEVELS}[2].key", "topology.kubernetes.io/zone"), _BINDING),
    created("2.8.3", "a topology kept elsewhere", {_WRITTEN: [_of("kai-scheduler")]}, Stored(),
            _BINDING),
    created("2.8.3", "a scheduler twice", {_WRITTEN: [_of("kai-scheduler")] * 2},
            refused(f"{_NAMED}[1].schedulerName", "kai-scheduler"), _BINDING),
    created("2.8.4", "no topology kept elsewhere", {_WRITTEN: []}, Stored(), _BINDING),
    created("2.8.4", "a scheduler there is not", {_WRITTEN: [_of("elsewhere")]},
            refused(f"{_NAMED}[0].schedulerName", "elsewhere"), _BINDING),
    created("2.8.1", "a level and a key and a scheduler in one reply",
            {f"{_LEVELS}[1].domain": "zone",
             f"{_LEVELS}[3].key": "topology.kubernetes.io/zone",
             _WRITTEN: [_of("elsewhere")]},
            Refused((
                Fault(f"{_LEVELS}[1].domain", ("zone",)),
                Fault(f"{_LEVELS}[3].key", ("topology.kubernetes.io/zone",)),
                Fault(f"{_NAMED}[0].schedulerName", ("elsewhere",)),
            )), _BINDING),
    Case("2.8.2", "a level added on update",
         edited(_BINDING, {f"{_LEVELS}[4]": _level("numa", "example.com/numa")}), Stored(),
         before=_BINDING),
    Case("2.8.2", "a key twice on update",
         edited(_BINDING, {f"{_LEVELS}[3].key": "topology.kubernetes.io/zone"}),
         refused(f"{_LEVELS}[3].key", "topology.kubernetes.io/zone"), before=_BINDING),
)  # fmt: skip
