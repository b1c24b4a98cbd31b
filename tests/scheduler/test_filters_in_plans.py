"""Plans keep what pods demand of each other: of residents, of mates, of gangs placed before."""

import pytest

from api import names
from api.jsons import Json, JsonObject
from api.streams import Pod
from scheduler import cycle, needs
from scheduler.answers import Plan
from scheduler.filters.constraints import Constraints
from scheduler.requests import GangRequest, Want
from scheduler.snapshot import Snapshot, build
from scheduler.stock import hold_of
from scheduler.topology import Levels
from tests.support.clusters import node, pod

HOST = names.HOSTNAME_KEY


def cluster(*there: Pod, nodes: int = 4) -> Snapshot:
    """Nodes n0, n1 and so on, in racks of two."""
    made = [node(f"n{i}", labels={"rack": f"r{i // 2}", HOST: f"n{i}"}) for i in range(nodes)]
    holds = [hold for hold in map(hold_of, there) if hold is not None]
    return build(made, holds, [Levels("", ("rack",))])


def on(name: str, node_name: str, app: str, **spec: Json) -> Pod:
    metadata: JsonObject = {"labels": {"app": app}}
    return pod(name, metadata=metadata, spec={"nodeName": node_name, **spec})


def gang(name: str, app: str, pods: int, extras: int = 0, **spec: Json) -> GangRequest:
    metadata: JsonObject = {"labels": {"app": app, "grove.io/podgang": name}}
    one = pod(name, metadata=metadata, spec=spec)
    wants = [Want("main", i, needs.of_pod(one), Constraints.of(one)) for i in range(pods + extras)]
    return GangRequest("default", name, tuple(wants[:pods]), tuple(wants[pods:]))


def term(key: str, app: str) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def near(key: str, app: str) -> JsonObject:
    terms: Json = [term(key, app)]
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def apart(key: str, app: str) -> JsonObject:
    terms: Json = [term(key, app)]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def port(number: int) -> Json:
    return [{"name": "x", "ports": [{"hostPort": number}]}]


def nodes_of(plan: Plan) -> list[list[str]]:
    return [[each.node for each in placement.placed] for placement in plan.placements]


def test_pods_with_a_host_port_get_nodes_of_their_own_where_it_is_free() -> None:
    taken = on("other", "n1", "x", containers=port(80))
    (found,) = nodes_of(cycle.plan(cluster(taken), [gang("g", "a", 3, containers=port(80))]))
    assert sorted(found) == ["n0", "n2", "n3"]
    plan = cycle.plan(cluster(taken), [gang("g", "a", 4, containers=port(80))])
    assert [len(plan.placements), len(plan.refusals)] == [0, 1]


def test_gangs_of_one_batch_do_not_share_a_port() -> None:
    asked = [gang(name, name, 2, containers=port(80)) for name in ("g", "h", "i")]
    plan = cycle.plan(cluster(), asked)
    assert sorted(name for found in nodes_of(plan) for name in found) == ["n0", "n1", "n2", "n3"]
    assert len(plan.refusals) == 1


def test_pods_that_shun_their_own_kind_are_spread_over_nodes() -> None:
    (found,) = nodes_of(cycle.plan(cluster(), [gang("g", "a", 4, affinity=apart(HOST, "a"))]))
    assert sorted(found) == ["n0", "n1", "n2", "n3"]


def test_who_is_shunned_by_a_resident_goes_elsewhere() -> None:
    shy = on("shy", "n0", "x", affinity=apart("rack", "a"))
    (found,) = nodes_of(cycle.plan(cluster(shy), [gang("g", "a", 2)]))
    assert set(found) <= {"n2", "n3"}


def test_who_must_be_near_a_resident_goes_there() -> None:
    (found,) = nodes_of(
        cycle.plan(cluster(on("p", "n2", "db")), [gang("g", "a", 2, affinity=near("rack", "db"))])
    )
    assert set(found) <= {"n2", "n3"}


def test_pods_that_must_be_near_each_other_are_placed_where_nobody_is_yet() -> None:
    (found,) = nodes_of(cycle.plan(cluster(), [gang("g", "a", 3, affinity=near("rack", "a"))]))
    assert len({int(name[1]) // 2 for name in found}) == 1


def test_a_gang_shunned_by_one_of_the_same_batch_is_kept_away_or_refused() -> None:
    first = gang("g", "a", 1, affinity=apart("rack", "b"))
    plan = cycle.plan(cluster(nodes=2), [first, gang("h", "b", 1)])
    assert [each.gang.name for each in plan.placements] == ["g"]
    assert [each.gang.name for each in plan.refusals] == ["h"]


@pytest.mark.parametrize("key", [HOST, "rack"])
def test_extras_that_would_be_shunned_are_left_out(key: str) -> None:
    asked = gang("g", "a", 1, extras=5, affinity=apart(key, "a"))
    (found,) = nodes_of(cycle.plan(cluster(), [asked]))
    domains = [name if key == HOST else int(name[1]) // 2 for name in found]
    assert len(domains) == len(set(domains))


@pytest.mark.no_cover
def test_a_plan_never_ends_uneven() -> None:
    constraint: Json = {
        "topologyKey": "rack",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    for pods in (1, 2, 3, 4):
        asked = gang("g", "a", pods, topologySpreadConstraints=[constraint])
        for found in nodes_of(cycle.plan(cluster(), [asked])):
            racks = [int(name[1]) // 2 for name in found]
            assert abs(racks.count(0) - racks.count(1)) <= 1


def test_a_gang_goes_around_those_of_its_batch_who_shun_it_or_whom_it_shuns() -> None:
    first, second = gang("g", "a", 1, affinity=apart("rack", "b")), gang("h", "b", 1)
    for asked in ([first, second], [second, first]):
        (one,), (other,) = nodes_of(cycle.plan(cluster(), asked))
        assert int(one[1]) // 2 != int(other[1]) // 2


def test_who_must_be_near_a_clique_of_the_same_gang_is_placed_with_it() -> None:
    leader = gang("g", "b", 1).minimum
    follower = gang("g", "a", 1, affinity=near(HOST, "b")).minimum
    wants = (*leader, *(Want("other", 0, want.need, want.constraints) for want in follower))
    (found,) = nodes_of(cycle.plan(cluster(), [GangRequest("default", "g", wants)]))
    assert len(set(found)) == 1
