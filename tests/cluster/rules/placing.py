"""Rules 1.2, 2.5 and 2.6: topology constraints, and the annotation for multi-node NVLink."""

from typing import Final

from api.jsons import Json, JsonObject
from policies.policy import MnnvlPolicy, Policy, TopologyPolicy
from tests.cluster.rules.cases import Case, Fault, Outcome, Refused, Stored, refused
from tests.cluster.rules.manifests import (
    BROAD,
    CLIQUES,
    GROUPS,
    OTHER,
    PLAIN,
    TEMPLATE,
    created,
    packed,
    updated,
)
from tests.support.edits import GONE, Edits, edited

ROWS: Final = ("1.2", *(f"2.5.{row}" for row in range(1, 7)), *(f"2.6.{row}" for row in (1, 2, 3)))

_SET: Final = f"{TEMPLATE}.topologyConstraint"
_GROUP: Final = f"{GROUPS}[0].topologyConstraint"
_ROUTER: Final = f"{CLIQUES}[0].topologyConstraint"
_WORKER: Final = f"{CLIQUES}[2].topologyConstraint"
_EVERYWHERE: Final = {"set": _SET, "group": _GROUP, "clique": _ROUTER}

# What the built-in policy has on is off, and the other way round.
OTHERWISE: Final = Policy(topology=TopologyPolicy(enabled=False), mnnvl=MnnvlPolicy(enabled=True))


def _whole(required: str, preferred: str = "") -> JsonObject:
    return packed(required, preferred, BROAD)


def _old(domain: str, topology: str = BROAD) -> JsonObject:
    return {"topologyName": topology, "packDomain": domain}


_SHAPE: Final = tuple(
    made
    for place, path in _EVERYWHERE.items()
    for made in (
        created("1.2", f"closeness of a {place}", {path: _whole("rack", "host")}, Stored()),
        created("1.2", f"only preferred closeness of a {place}", {path: _whole("", "host")},
                Stored()),
        created("1.2", f"neither pack nor packDomain of a {place}", {path: {"topologyName": BROAD}},
                refused(path, "pack")),
        created("1.2", f"an empty pack of a {place}", {path: {"topologyName": BROAD, "pack": {}}},
                refused(f"{path}.pack")),
        created("1.2", f"packDomain on a new set for a {place}", {path: _old("rack")},
                refused(path, "packDomain")),
        created("1.2", f"packDomain beside required of a {place}",
                {path: {**_old("rack"), "pack": {"required": "rack"}}},
                refused(path, "packDomain")),
        created("1.2", f"a domain in capitals of a {place}", {path: _whole("Rack")},
                refused(f"{path}.pack.required")),
    )
)  # fmt: skip

_RULES: Final = (
    created("2.5.1", "topology awareness is on", {_SET: _whole("rack")}, Stored()),
    created("2.5.1", "nothing asked for while it is off", {}, Stored(), policy=OTHERWISE),
    *(
        created("2.5.1", f"closeness of a {place} while it is off", {path: _whole("rack")},
                refused(path), policy=OTHERWISE)
        for place, path in _EVERYWHERE.items()
    ),
    created("2.5.2", "one name for all three",
            {_SET: _whole("zone"), _GROUP: packed("block"), _WORKER: packed("rack")}, Stored()),
    created("2.5.2", "a name only at the group",
            {_GROUP: _whole("block"), _WORKER: packed("rack")}, Stored()),
    created("2.5.2", "the same name written thrice",
            {_SET: _whole("zone"), _GROUP: _whole("block"), _WORKER: _whole("rack")}, Stored()),
    *(
        created("2.5.2", f"no name to be had by a {place}", {path: packed("rack")},
                refused(f"{path}.topologyName"))
        for place, path in _EVERYWHERE.items()
    ),
    created("2.5.2", "a name at the group only for its members",
            {_GROUP: _whole("block"), _ROUTER: packed("rack")}, refused(f"{_ROUTER}.topologyName")),
    created("2.5.2", "two names in one set",
            {_SET: _whole("zone"), _ROUTER: packed("rack", topology=OTHER)},
            refused(f"{_ROUTER}.topologyName", OTHER)),
    created("2.5.2", "a binding there is not", {_SET: packed("rack", topology="no-such-binding")},
            refused(f"{_SET}.topologyName", "no-such-binding")),
    created("2.5.3", "each level of the binding",
            {_SET: _whole("zone", "block"), _ROUTER: _whole("rack", "host")}, Stored()),
    *(
        made
        for place, path in _EVERYWHERE.items()
        for made in (
            created("2.5.3", f"a required level there is not of a {place}",
                    {path: _whole("row")}, refused(f"{path}.pack.required", "row")),
            created("2.5.3", f"a preferred level there is not of a {place}",
                    {path: _whole("rack", "row")}, refused(f"{path}.pack.preferred", "row")),
        )
    ),
    created("2.5.4", "equal levels", {_SET: _whole("rack"), _GROUP: _whole("rack")}, Stored()),
    created("2.5.4", "required and preferred are told apart",
            {_SET: _whole("", "host"), _GROUP: _whole("zone")}, Stored()),
    *(
        created("2.5.4", f"required by a {outer} narrower than by a {inner}",
                {above: _whole("rack"), below: _whole("block")},
                refused(f"{below}.pack.required", "block", "rack"))
        for outer, above, inner, below in (
            ("set", _SET, "group", _GROUP),
            ("set", _SET, "clique", _ROUTER),
            ("group", _GROUP, "member", _WORKER),
        )
    ),
    *(
        created("2.5.4", f"preferred by a {outer} narrower than by a {inner}",
                {above: _whole("", "host"), below: _whole("", "rack")},
                refused(f"{below}.pack.preferred", "rack", "host"))
        for outer, above, inner, below in (
            ("set", _SET, "group", _GROUP),
            ("set", _SET, "clique", _ROUTER),
            ("group", _GROUP, "member", _WORKER),
        )
    ),
    created("2.5.5", "preferred broader than required is warned of",
            {_SET: _whole("rack", "zone")}, Stored(warnings=("preferred",))),
    created("2.5.5", "preferred narrower than required", {_SET: _whole("zone", "rack")}, Stored()),
)  # fmt: skip

_BEFORE: Final = edited(PLAIN, {_SET: _whole("zone"), _GROUP: _whole("block")})


def _inherited(rule: str, what: str, before: JsonObject, after: JsonObject, then: Outcome) -> Case:
    """A set stored while packDomain was still taken, and what its constraint becomes."""
    sent = edited(PLAIN, {_SET: after})
    return Case(rule, what, sent, then, before=edited(PLAIN, {_SET: before}), storable=False)


_BARE: Final[JsonObject] = {"packDomain": "rack"}
_INHERITED: Final = (
    _inherited("2.5.5", "packDomain of an old set is warned of", _old("rack"), _old("rack"),
               Stored(warnings=("packDomain",))),
    _inherited("2.5.6", "packDomain rewritten as required", _old("rack"), _whole("rack"), Stored()),
    _inherited("2.5.6", "a binding named for an old packDomain", _BARE, _old("rack"),
               Stored(warnings=("packDomain",))),
    _inherited("2.5.6", "packDomain rewritten as another level", _old("rack"), _whole("block"),
               refused(_SET, "immutable")),
    _inherited("2.5.6", "a binding there is not named for an old packDomain",
               _BARE, _old("rack", "no-such-binding"),
               refused(f"{_SET}.topologyName", "no-such-binding")),
)  # fmt: skip

_CHANGES: Final = (
    updated("2.5.6", "the same again", {"spec.replicas": 0}, Stored(), _BEFORE),
    updated("2.5.6", "a constraint taken out", {_GROUP: GONE}, refused(_GROUP, "immutable"),
            _BEFORE),
    updated("2.5.6", "a constraint added", {_ROUTER: _whole("rack")},
            refused(_ROUTER, "immutable"), _BEFORE),
    updated("2.5.6", "a level changed", {f"{_SET}.pack.required": "block"},
            refused(_SET, "immutable"), _BEFORE),
    updated("2.5.6", "a preference added", {f"{_SET}.pack.preferred": "rack"},
            refused(_SET, "immutable"), _BEFORE),
    updated("2.5.6", "a binding changed",
            {f"{_SET}.topologyName": OTHER, f"{_GROUP}.topologyName": OTHER},
            refused(_SET, "immutable"), _BEFORE),
)  # fmt: skip


def _linked(place: str, value: str) -> Edits:
    """The annotation at one of its three places."""
    where = {
        "set": "metadata.annotations",
        "clique": f"{CLIQUES}[0].annotations",
        "group": f"{GROUPS}[0].annotations",
    }
    return {f"{where[place]}[grove.io/mnnvl-group]": value}


def _annotated(place: str) -> str:
    return next(iter(_linked(place, "")))


_WORDS: Final[tuple[Json, ...]] = ("", "Not A Label", "-fabric", "x" * 64)
_OPTED_OUT: Final = edited(
    PLAIN, {**_linked("set", "none"), **_linked("clique", "none"), **_linked("group", "none")}
)

_LINKS: Final = (
    *(created("2.6.1", f"opting out at the {place}", _linked(place, "none"), Stored())
      for place in _EVERYWHERE),
    *(created("2.6.1", f"a fabric named at the {place}", _linked(place, "fabric-1"), Stored(),
              policy=OTHERWISE) for place in _EVERYWHERE),
    *(created("2.6.1", f"no label {i} at the {place}", _linked(place, str(word)),
              refused(_annotated(place)), policy=OTHERWISE)
      for i, word in enumerate(_WORDS) for place in _EVERYWHERE),
    *(created("2.6.1", f"no label at the {place} of a cluster without",
              _linked(place, "Not A Label"), refused(_annotated(place))) for place in _EVERYWHERE),
    created("2.6.2", "opting out of what is off", _linked("set", "none"), Stored()),
    *(created("2.6.2", f"a fabric at the {place} while it is off", _linked(place, "fabric-1"),
              refused(_annotated(place), "none")) for place in _EVERYWHERE),
    updated("2.6.3", "the same again", {"spec.replicas": 0}, Stored(), _OPTED_OUT),
    *(updated("2.6.3", f"added at the {place}", _linked(place, "none"),
              refused(_annotated(place), "immutable")) for place in _EVERYWHERE),
    *(updated("2.6.3", f"taken out at the {place}", {_annotated(place): GONE},
              refused(_annotated(place), "immutable"), _OPTED_OUT) for place in _EVERYWHERE),
    *(updated("2.6.3", f"changed at the {place}", _linked(place, "fabric-1"),
              refused(_annotated(place), "immutable"), _OPTED_OUT) for place in _EVERYWHERE),
)  # fmt: skip

_SEVERAL: Final = created(
    "2.5.4", "faults of three places in one reply",
    {_SET: _whole("host"), _GROUP: _whole("rack"), _ROUTER: _whole("row")},
    Refused((
        Fault(f"{_GROUP}.pack.required", ("rack", "host")),
        Fault(f"{_ROUTER}.pack.required", ("row",)),
    )),
)  # fmt: skip

CASES: Final[tuple[Case, ...]] = (
    *_SHAPE, *_RULES, *_CHANGES, *_INHERITED, *_LINKS, _SEVERAL,
)  # fmt: skip
