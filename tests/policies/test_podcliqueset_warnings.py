from collections.abc import Mapping

from api.jsons import Json, JsonObject
from policies import podcliqueset_warnings
from tests.policies import drafts
from tests.policies.drafts import CLIQUES, GROUPS, POD, clique, cluster, constraint, draft, group

GPU = "nvidia.com/gpu"
ROOMY = {"cpu": 64_000, "memory": 2**40, GPU: 8, "pods": 110}
SPEC = f"{CLIQUES}[0].spec.podSpec"


def pod(*, init: Json = None, overhead: Json = None, **requests: Json) -> JsonObject:
    asked: JsonObject = {GPU if name == "gpu" else name: value for name, value in requests.items()}
    made: JsonObject = {"containers": [{"name": "main", "resources": {"requests": asked}}]}
    if init is not None:
        made["initContainers"] = init
    if overhead is not None:
        made["overhead"] = overhead
    return made


def said(raw: JsonObject, node: Mapping[str, int] = ROOMY, rack: int = 16) -> list[str]:
    domains = {"example.com/rack": {GPU: rack, "pods": 20}}
    return drafts.warnings(raw, known=cluster("net", node=node, domains=domains))


def test_nothing_is_said_of_what_fits_or_where_nobody_knows_the_nodes() -> None:
    assert said(draft(clique("a", pod=pod(cpu="64", gpu=8)))) == []
    huge = draft(clique("a", pod=pod(gpu=9)))
    assert drafts.warnings(huge, known=cluster("net")) == []
    assert said(huge, node={}) == []


def test_a_pod_that_no_node_could_take_earns_a_warning() -> None:
    assert said(draft(clique("a", pod=pod(cpu="100500m", gpu="9")))) == [
        f"{SPEC}: a pod needs 100500m cpu; the largest node has 64",
        f"{SPEC}: a pod needs 9 {GPU}; the largest node has 8",
    ]
    unheard = draft(
        clique("a", pod={"containers": [{"name": "c", "resources": {"limits": {"x/y": 1}}}]})
    )
    assert said(unheard) == [f"{SPEC}: a pod needs 1 x/y; the largest node has 0"]


def test_a_pods_need_is_counted_as_the_engine_counts_it() -> None:
    sidecar: JsonObject = {
        "name": "s",
        "restartPolicy": "Always",
        "resources": {"requests": {GPU: "1"}},
    }
    start: JsonObject = {"name": "i", "resources": {"requests": {GPU: "8"}}}
    assert said(draft(clique("a", pod=pod(gpu=7, init=[sidecar])))) == []
    assert said(draft(clique("a", pod=pod(gpu=1, init=[start])))) == []
    assert said(draft(clique("a", pod=pod(gpu=1, init=[sidecar, start]))))
    assert said(draft(clique("a", pod=pod(gpu=8, overhead={GPU: 1}))))


def test_amounts_that_cannot_be_read_are_passed_over() -> None:
    assert said(draft(clique("a", pod=pod(cpu="much")))) == []
    assert said(draft(clique("a", pod=pod(cpu=True, gpu=[1])))) == []


def test_pods_that_name_more_amounts_than_anybody_does_are_not_weighed() -> None:
    def asking(count: int) -> JsonObject:
        asked: Json = {"requests": {f"example.com/r{i}": "1" for i in range(count)}}
        return draft(clique("a", pod={"containers": [{"name": "c", "resources": asked}]}))

    assert len(said(asking(128))) == 128
    assert said(asking(129)) == []


def test_minima_that_no_required_domain_could_hold_earn_a_warning() -> None:
    close = constraint("rack", name="net")
    counts: JsonObject = {"replicas": 6, "minAvailable": 4}
    three = draft(clique("a", pod=pod(gpu=5), counts=counts, topologyConstraint=close))
    assert said(three) == [
        f"{CLIQUES}[0].topologyConstraint: needs at least 20 {GPU}; the largest rack has 16"
    ]
    assert said(three, rack=20) == []


def test_the_minimum_of_a_set_counts_the_copies_of_its_groups_and_that_of_a_group_one() -> None:
    def built(of_set: Json = None, of_group: Json = None) -> JsonObject:
        return draft(
            clique("alone", pod=pod(gpu=1)),
            clique("member", pod=pod(gpu=4), counts={"replicas": 2}),
            groups=(
                group(
                    "g",
                    "member",
                    counts={"replicas": 4, "minAvailable": 2},
                    topologyConstraint=of_group,
                ),
            ),
            topologyConstraint=of_set,
        )

    of_set = built(of_set=constraint("rack", name="net"))
    assert said(of_set, rack=17) == []
    assert said(of_set) == [
        f"spec.template.topologyConstraint: needs at least 17 {GPU}; the largest rack has 16"
    ]
    of_group = built(of_group=constraint("rack", name="net"))
    assert said(of_group, rack=8) == []
    (warning,) = said(of_group, rack=7)
    assert warning.startswith(f"{GROUPS}[0].topologyConstraint: needs at least 8 ")


def test_only_required_levels_that_nodes_are_counted_by_are_weighed() -> None:
    four: JsonObject = {"replicas": 4}
    for close in (constraint(None, "rack", "net"), constraint("block", None, "net")):
        raw = draft(clique("a", pod=pod(gpu=8), counts=four, topologyConstraint=close))
        assert said(raw) == []
    assert said(draft(clique("a", pod=pod(gpu=8), counts=four))) == []


def test_pods_are_weighed_by_their_slots_too() -> None:
    close = constraint("rack", name="net")
    raw = draft(clique("a", pod=POD, counts={"replicas": 21}, topologyConstraint=close))
    (warning,) = said(raw)
    assert warning.endswith("needs at least 21 pods; the largest rack has 20")


def test_a_new_set_whose_services_older_api_servers_refuse_earns_a_warning() -> None:
    (warning,) = drafts.warnings(draft(clique("a"), name="7b"))
    assert warning.startswith("metadata.name: begins with a digit")
    assert len(warning) <= podcliqueset_warnings.LONGEST_WARNING
    assert not drafts.warnings(draft(clique("7b"), name="b7"))
    assert not drafts.warnings(draft(clique("a"), name="7b"), draft(clique("a"), name="7b"))
