"""A saved snapshot is read back as it was, or refused in one line that says why."""

from dataclasses import replace
from typing import Final

import msgspec
import pytest

from api.jsons import Json, JsonObject
from api.streams import Expression
from scheduler import cycle, saving
from scheduler.eligible import Constraints
from scheduler.requests import Anchor, Closeness, GangRequest, Group, Kin, Sibling, Spread, Want
from scheduler.saving import Saved, UnreadableError, dumps, loads
from scheduler.settings import Settings
from scheduler.stock import Stock, hold_of
from scheduler.topology import Levels
from tests.support.clusters import node, pod, racks
from tests.support.daemonsets import daemonset
from tests.support.snapshots import same

GPU: Final = "nvidia.com/gpu"
CHOSEN: Final = (Expression("app", "In", ("x",)),)
LEVELS: Final = (
    Levels("first", ("topology.kubernetes.io/zone", "topology.kubernetes.io/rack")),
    Levels("second", ("row",)),
)


def picky() -> Constraints:
    """All that a pod can say of nodes and of other pods."""
    selector: Json = {"matchLabels": {"app": "x"}}
    term: Json = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    spec: JsonObject = {
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "containers": [{"ports": [{"hostPort": 80, "hostIP": "10.0.0.1", "protocol": "UDP"}]}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}]}
                    ]
                }
            },
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        },
        "topologySpreadConstraints": [
            {"maxSkew": 2, "topologyKey": "zone", "labelSelector": selector}
        ],
    }
    return Constraints.of(pod("p", spec=spec, metadata={"labels": {"app": "x"}}))


def request() -> GangRequest:
    need = {GPU: 8, "pods": 1}
    return GangRequest(
        "default",
        "g",
        (Want("w", 0, need), Want("w", 1, need, picky())),
        (Want("w", 2, need),),
        Closeness("zone", "rack"),
        (Group("w", ("w",), Closeness(preferred="rack")),),
        (Anchor("n-0-0-0-0", "w"),),
        "second",
        (
            Spread("zone", (Sibling("g-1", ("n-0-0-0-1",)),), hard=True, skew=2, among=CHOSEN),
            Spread("rack"),
        ),
        Kin("g-0", "set", (("app", "x"),)),
        "z1",
        7,
        "2026-01-01",
    )


def stock() -> Stock:
    made = Stock(LEVELS)
    for each in (*racks(1, 1, 3, 2), node("odd", {"cpu": "1"}, labels={"row": "1"})):
        made.put_node(each)
    ports: JsonObject = {
        "containers": [{"ports": [{"hostPort": 80}], "resources": {"requests": {GPU: "3"}}}]
    }
    there = pod("p", spec={**ports, "nodeName": "n-0-0-0-0"}, metadata={"labels": {"a": "b"}})
    hold = hold_of(there)
    assert hold is not None
    made.put(("default", "p"), hold)
    made.put_daemonset(daemonset("logs"))
    return made


def test_what_is_saved_is_read_back_as_it_was() -> None:
    saved = saving.of_stock(stock(), [request()], Settings(steps=123))
    found = loads(dumps(saved))
    assert found == saved
    assert dumps(found) == dumps(saved)
    same(found.snapshot(), stock().snapshot())


def test_what_is_read_back_is_planned_alike() -> None:
    request = GangRequest("default", "g", tuple(Want("w", i, {GPU: 8}) for i in range(4)))
    asked = (request, replace(request, name="h"))
    saved = saving.of_stock(stock(), asked)
    found = loads(dumps(saved))
    before = cycle.plan(stock().snapshot(), asked)
    assert cycle.plan(found.snapshot(), found.requests, found.settings) == before
    assert before.placements


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no saved snapshot"),
        (b"[]", "no saved snapshot"),
        (b"\xff", "no saved snapshot"),
        (b'{"saved":{}}', "missing required field `version`"),
        (b'{"version":2,"saved":{}}', "of version 2; this engine reads version 1"),
        (b'{"version":1,"saved":{"levels":[]}}', "missing required field `nodes`"),
        (b'{"version":1,"saved":{"levels":[],"nodes":[],"more":1}}', "unknown field `more`"),
        (b'{"version":1,"saved":{"levels":[],"nodes":[{}]}}', r"\$\.saved\.nodes\[0\]"),
    ],
)
def test_what_cannot_be_read_is_refused_saying_why(data: bytes, says: str) -> None:
    with pytest.raises(UnreadableError, match=says):
        loads(data)


def test_nothing_at_all_can_be_saved() -> None:
    empty = Saved((Levels("", ()),), ())
    assert loads(dumps(empty)) == empty
    assert loads(msgspec.json.format(dumps(empty))).snapshot().nodes == ()
