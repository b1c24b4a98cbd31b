"""A gang asks by its whole tree, and says where its other pods, its base and its siblings are."""

from dataclasses import replace

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.podgang import PodGangSpec
from api.reservation import State
from api.streams import Expression, Pod
from controller.gangs.asking import Around, request, unheeded
from controller.gangs.deciding import Place, next_step
from controller.gangs.spreading import kin
from controller.gangs.topologies import BUILT_IN, Network
from controller.gangs.views import GangView
from controller.podgang import Gang
from scheduler.requests import Anchor, Closeness, GangRequest, Group, Sibling, Spread
from tests.support.sets import NOW, gang, member, reservation, view

ALONE = Around()
ROOM = Network("room", {"hall": "example.com/hall", "row": "example.com/row"})
RACK, BLOCK, ZONE = names.RACK_KEY, names.BLOCK_KEY, names.ZONE_KEY


def near(required: str = "", preferred: str = "") -> Json:
    pack = {"required": required, "preferred": preferred}
    return {"packConstraint": {how: key for how, key in pack.items() if key}}


def saying(
    of: Gang, annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None,
    **spec: Json,
) -> Gang:  # fmt: skip
    """The same gang with more in its spec; `cliques` are wishes of single cliques."""
    raw: JsonObject = of.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    cliques = spec.pop("cliques", {})
    groups = raw["podgroups"]
    assert isinstance(cliques, dict)
    assert isinstance(groups, list)
    for group in groups:
        assert isinstance(group, dict)
        wish = cliques.get(str(group["name"]))
        group.update({"topologyConstraint": wish} if wish else {})
    meta = msgspec.structs.replace(
        of.metadata,
        annotations=of.metadata.annotations | (annotations or {}),
        labels=of.metadata.labels | (labels or {}),
    )
    return replace(of, metadata=meta, spec=PodGangSpec.model_validate(raw | spec))


def asked(of: GangView, around: Around = ALONE) -> GangRequest:
    step = next_step(of, NOW)
    assert isinstance(step, Place)
    return request(of, step, around)


def pods_of(seen: Gang) -> list[Pod]:
    return [
        member(group.name, i)
        for group in seen.spec.pod_groups
        for i in range(len(group.pod_references))
    ]


def fresh(seen: Gang) -> GangView:
    return view(seen, pods_of(seen))


def bound_on(seen: Gang, *nodes: str) -> GangView:
    """The gang's one clique at work on these nodes."""
    (group,) = seen.spec.pod_groups
    pods = [member(group.name, i, gated=False, node=node) for i, node in enumerate(nodes)]
    slots = {(group.name, i): node for i, node in enumerate(nodes)}
    booked = reservation(slots, State.BOUND, name=seen.metadata.name)
    return view(seen, pods, booked)


def test_every_level_of_the_tree_says_its_own_wish() -> None:
    config: Json = {"name": "g", "podGroupNames": ["b", "a"], "topologyConstraint": near(BLOCK)}
    seen = saying(
        gang({"a": (1, 1), "b": (1, 1), "c": (1, 1)}),
        topologyConstraint=near(ZONE, BLOCK),
        topologyConstraintGroupConfigs=[config],
        cliques={"b": near(preferred=RACK), "c": near(names.HOSTNAME_KEY)},
    )
    found = asked(fresh(seen))
    assert found.near == Closeness(ZONE, BLOCK)
    assert found.groups == (
        Group("g", ("a", "b"), Closeness(BLOCK)),
        Group("b", ("b",), Closeness("", RACK)),
        Group("c", ("c",), Closeness(names.HOSTNAME_KEY)),
    )


def test_what_is_asked_of_nobody_is_no_group() -> None:
    configs: Json = [
        {"name": "gone", "podGroupNames": ["x"], "topologyConstraint": near(RACK)},
        {"name": "anywhere", "podGroupNames": ["a"]},
    ]
    seen = saying(gang({"a": (1, 1)}), topologyConstraintGroupConfigs=configs)
    assert asked(fresh(seen)).groups == ()


def test_growth_keeps_the_tree_and_names_the_clique_of_each_pod_there_is() -> None:
    seen = saying(
        gang({"a": (1, 2), "b": (1, 1)}), topologyConstraint=near(BLOCK), cliques={"a": near(RACK)}
    )
    pods = [
        member("a", 0, gated=False, node="n0"),
        member("a", 1),
        member("b", 0, gated=False, node="n0"),
    ]
    booked = reservation({("a", 0): "n0", ("b", 0): "n0"}, State.BOUND)
    found = asked(view(seen, pods, booked))
    assert [(want.clique, want.index) for want in found.extras] == [("a", 1)]
    assert found.near == Closeness(BLOCK)
    assert found.groups == (Group("a", ("a",), Closeness(RACK)),)
    assert found.anchors == (Anchor("n0", "a"), Anchor("n0", "b"))


def test_a_slot_that_moves_is_no_anchor_and_a_bound_pod_on_its_lost_node_is_one() -> None:
    pods = [member("a", 0, gated=False, node="n0"), member("a", 1), member("a", 2)]
    slots = {("a", 0): "n0", ("a", 1): "n0", ("a", 2): "n2"}
    seen = view(gang({"a": (3, 3)}), pods, reservation(slots, State.LIFTING))
    lost = replace(seen, lost=frozenset({"n0"}))
    step = Place(tuple(lost.of_clique("a")[1:2]), ())
    assert request(lost, step).anchors == (Anchor("n0", "a"), Anchor("n2", "a"))


def scaled(**spec: Json) -> Gang:
    follower = gang({"a": (1, 1)}, name="demo-0-g-0")
    return saying(follower, None, {names.BASE_PODGANG_LABEL: "demo-0"}, **spec)


def test_a_scaled_gang_is_drawn_to_its_base_and_not_bound_to_it() -> None:
    base = bound_on(gang({"b": (2, 2)}), "n7", "n7")
    found = asked(fresh(scaled(topologyConstraint=near(RACK))), Around(base))
    assert found.anchors == (Anchor("n7"),)
    assert found.near == Closeness(RACK)


@pytest.mark.parametrize("own", [near(RACK), near(BLOCK)])
def test_what_a_set_requires_of_a_replica_binds_its_scaled_gangs_to_the_base(own: Json) -> None:
    base = bound_on(saying(gang({"b": (2, 2)}), topologyConstraint=near(BLOCK)), "n6", "n7")
    found = asked(fresh(scaled(topologyConstraint=own)), Around(base))
    assert found.anchors == (Anchor("n6", "b"), Anchor("n7", "b"))
    assert found.near == Closeness(BLOCK)
    # Of its group's own wish, which Grove writes in the same place, nothing is lost.
    narrower = (Group("demo-0-g-0", ("a",), Closeness(RACK)),)
    assert found.groups == (narrower if own == near(RACK) else ())


def test_a_set_that_only_prefers_a_level_draws_its_scaled_gangs_near() -> None:
    wish = near(preferred=BLOCK)
    base = bound_on(saying(gang({"b": (1, 1)}), topologyConstraint=wish), "n7")
    found = asked(fresh(scaled(topologyConstraint=wish)), Around(base))
    assert found.anchors == (Anchor("n7"),)
    assert found.groups == ()


@pytest.mark.parametrize(
    ("annotation", "key", "topology"),
    [
        ("room", "example.com/row", "room"),
        ("", "example.com/row", "room"),
        ("", RACK, ""),
        ("", "example.com/nowhere", ""),
        ("gone", "example.com/row", "room"),
        ("room", names.HOSTNAME_KEY, "room"),
    ],
)
def test_levels_are_those_of_the_topology_that_is_named_or_has_them(
    annotation: str, key: str, topology: str
) -> None:
    annotations = {names.TOPOLOGY_NAME_ANNOTATION: annotation} if annotation else {}
    seen = saying(gang({"a": (1, 1)}), annotations, topologyConstraint=near(key))
    assert asked(fresh(seen), Around(networks=(BUILT_IN, ROOM))).topology == topology


def replica(number: int, annotations: dict[str, str] | None = None, **spec: Json) -> Gang:
    return saying(gang({"a": (1, 1)}, name=f"demo-{number}"), annotations, None, **spec)


@pytest.mark.parametrize(
    ("word", "level", "topology"),
    [
        ("rack", RACK, ""),
        (RACK, RACK, ""),
        ("row", "example.com/row", "room"),
        ("host", names.HOSTNAME_KEY, ""),
    ],
)
def test_replicas_keep_apart_over_the_level_that_the_annotation_names(
    word: str, level: str, topology: str
) -> None:
    sibling = bound_on(replica(1), "n3")
    seen = replica(0, {names.SPREAD_ANNOTATION: word})
    found = asked(fresh(seen), Around(None, (sibling,), (BUILT_IN, ROOM)))
    assert found.spread == (Spread(level, (Sibling("demo-1", ("n3",)),)),)
    assert (found.kin.family, found.kin.replica) == ("set-uid", "demo-0")
    assert found.topology == topology


def test_a_level_that_no_topology_knows_spreads_nothing() -> None:
    seen = replica(0, {names.SPREAD_ANNOTATION: "floor"})
    assert asked(fresh(seen)).spread == ()


@pytest.mark.parametrize(
    ("word", "preferred", "said"),
    [
        ("floor", "", "floor"),
        ("rack", RACK, ""),
        ("rack", "example.com/nowhere", "example.com/nowhere"),
        ("floor", "example.com/nowhere", "example.com/nowhere, floor"),
    ],
)
def test_a_level_that_is_only_liked_and_is_none_is_said_to_be_unheeded(
    word: str, preferred: str, said: str
) -> None:
    seen = replica(0, {names.SPREAD_ANNOTATION: word}, topologyConstraint=near(BLOCK, preferred))
    message = f"its topology has no level {said}, which is not heeded" if said else ""
    assert unheeded(seen, None, (BUILT_IN, ROOM)) == message
    assert unheeded(seen, None, (BUILT_IN,)) == message


def test_a_level_that_must_be_kept_and_is_none_is_asked_for_all_the_same() -> None:
    chosen: JsonObject = {"labelSelector": {"matchLabels": {}}}
    hard: Json = {"topologyKey": "floor", "whenUnsatisfiable": "DoNotSchedule", **chosen}
    seen = replica(0, None, spreadConstraints=[hard])
    (found,) = asked(fresh(seen)).spread
    assert (found.level, unheeded(seen, None, (BUILT_IN,))) == ("floor", "")


CHAT: JsonObject = {"labelSelector": {"matchLabels": {"app": "chat"}}}
CHOSEN = (Expression("app", "In", ("chat",)),)


def test_all_constraints_of_the_gang_itself_count_and_the_annotation_does_not() -> None:
    constraints: Json = [
        {"topologyKey": RACK, "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 3, **CHAT},
        {"topologyKey": BLOCK, "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 2, **CHAT},
    ]
    seen = replica(0, {names.SPREAD_ANNOTATION: "zone"}, spreadConstraints=constraints)
    assert asked(fresh(seen)).spread == (
        Spread(RACK, skew=3, among=CHOSEN),
        Spread(BLOCK, hard=True, skew=2, among=CHOSEN),
    )
    assert unheeded(seen, None, (BUILT_IN,)) == (
        "its annotation penstock.dev/spread, beside spreadConstraints, is not heeded"
    )


def test_what_a_constraint_says_of_domains_is_heeded_as_for_pods() -> None:
    policies: JsonObject = {"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}
    raw: Json = {
        "topologyKey": RACK, "maxSkew": 1, "minDomains": 4, "matchLabelKeys": ["rev", "no"],
        **CHAT, **policies,
    }  # fmt: skip
    seen = saying(replica(0, None, spreadConstraints=[raw]), labels={"rev": "2"})
    (found,) = asked(fresh(seen)).spread
    assert found.among == (*CHOSEN, Expression("rev", "In", ("2",)))
    assert (found.min_domains, found.by_affinity, found.by_taints) == (4, False, True)
    assert found.hard


def test_a_constraint_about_nobody_is_said_to_be_unheeded() -> None:
    nobody: Json = {"topologyKey": RACK, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    seen = replica(0, None, spreadConstraints=[{"topologyKey": RACK, **CHAT}, nobody])
    assert len(asked(fresh(seen)).spread) == 1
    assert unheeded(seen, None, (BUILT_IN,)) == (
        "spreadConstraints[1], which has no labelSelector, is not heeded"
    )


def test_siblings_are_those_that_each_constraint_is_about() -> None:
    chat = bound_on(saying(gang({"a": (1, 1)}, name="x"), labels={"app": "chat"}), "n3")
    web = bound_on(saying(gang({"a": (1, 1)}, name="y"), labels={"app": "web"}), "n4")
    everybody: JsonObject = {"labelSelector": {}}
    constraints: Json = [{"topologyKey": RACK, **CHAT}, {"topologyKey": RACK, **everybody}]
    seen = replica(0, None, spreadConstraints=constraints)
    found = asked(fresh(seen), Around(None, (chat, web))).spread
    assert [[each.replica for each in spread.taken] for spread in found] == [["x"], ["x", "y"]]


def test_plain_gangs_that_ask_for_the_same_level_are_a_family() -> None:
    def family(annotations: dict[str, str]) -> str:
        seen = replica(0, annotations)
        meta = msgspec.structs.replace(seen.metadata, owner_references=())
        return kin(replace(seen, metadata=meta)).family

    slots = {names.SLOTS_ANNOTATION: "0"}
    assert family({**slots, names.SPREAD_ANNOTATION: "rack"}) == "plain/rack"
    assert family(slots) == ""
    assert family({names.SPREAD_ANNOTATION: "rack"}) == ""


@pytest.mark.parametrize(
    ("annotations", "labels", "zone"),
    [
        ({names.PREFERRED_ZONE: "z1"}, {}, "z1"),
        ({}, {names.PREFERRED_ZONE: "z2"}, "z2"),
        ({}, {}, ""),
    ],
)
def test_a_zone_is_preferred_that_an_annotation_or_a_label_names(
    annotations: dict[str, str], labels: dict[str, str], zone: str
) -> None:
    assert asked(fresh(saying(gang({"a": (1, 1)}), annotations, labels))).zone == zone


def test_priority_and_age_are_said() -> None:
    seen = gang({"a": (1, 2)})
    low, high = member("a", 0), member("a", 1)
    high = msgspec.structs.replace(high, spec=msgspec.structs.replace(high.spec, priority=7))
    meta = msgspec.structs.replace(seen.metadata, creation_timestamp=NOW)
    found = asked(view(replace(seen, metadata=meta), [low, high]))
    assert (found.priority, found.born) == (7, NOW.isoformat())
