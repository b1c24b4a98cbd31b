"""The four phases, replayed as if whoever carries them out died after every single write."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certs import bundle, issue, judging, rotation
from certs.issue import Authority
from certs.ledger import MOST_FORMER, Ledger, Pair, Phase
from certs.rotation import Introduce, IssueLeaf, Rest, Store, Trust, Write
from tests.support.trust import NAMES, WAITS, TrustWorld, run

THEN: Final = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
EXPIRED: Final = issue.issue_authority(THEN - timedelta(days=800))
AGED: Final = issue.issue_authority(THEN - timedelta(days=600))
ONE, TWO, THREE = (issue.issue_authority(THEN - timedelta(days=9)) for _ in range(3))
ALL: Final = (EXPIRED, AGED, ONE, TWO, THREE)
GARBAGE: Final = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def pair(authority: Authority) -> Pair:
    return Pair(authority.certificate_pem, authority.key_pem)


def leaf(authority: Authority, made: datetime = THEN) -> Pair:
    fresh = issue.issue_leaf(authority, NAMES, made)
    return Pair(fresh.certificate_pem, fresh.key_pem)


LEAVES: Final = {each.certificate_pem: leaf(each) for each in (AGED, ONE, TWO, THREE)}


def steady(authority: Authority = ONE) -> TrustWorld:
    trusted = [authority.certificate_pem] * 2
    return TrustWorld(THEN, Ledger(pair(authority)), LEAVES[authority.certificate_pem], trusted)


def at_once(count: int) -> int:
    """Every configuration in one go; replicas lag as far as they can."""
    return count - 1


def up_to_date(_count: int) -> int:
    """One configuration at a time; replicas serve the newest leaf whenever they are asked."""
    return 0


def writes(world: TrustWorld) -> list[str]:
    return [
        step.ledger.phase.value if isinstance(step, Store) else type(step).__name__
        for step in world.steps
        if isinstance(step, Write)
    ]


def alarms(world: TrustWorld) -> list[str]:
    return [step.reason for step in world.steps if isinstance(step, Write) and step.alarming]


def finish(world: TrustWorld, choose: Callable[[int], int] = up_to_date) -> list[str]:
    """Run to the end, with nothing served that is not trusted; return what was written."""
    assert run(world, choose) == []
    assert isinstance(judging.authority(world.ledger.authority, world.rested), judging.Good)
    assert world.ledger == Ledger(
        world.ledger.authority, wish=world.ledger.wish, granted=world.ledger.granted
    )
    assert set(world.bundles) == {world.ledger.authority.certificate}
    authority = bundle.good(world.bundles[0], world.rested)
    assert isinstance(judging.leaf(world.leaf, authority, NAMES, world.rested), judging.Good)
    return writes(world)


ROTATION: Final = [
    *("Introduce", "Trust", "Trust"),
    *("Trusting", "Serving", "IssueLeaf", "Retiring"),
    *("Trust", "Trust", "Steady"),
]


def test_a_rotation_that_was_asked_for_takes_these_steps_and_waits() -> None:
    world = steady()
    world.ledger = replace(world.ledger, wish="now")
    assert finish(world) == ROTATION
    assert alarms(world) == []
    rests = [step.waiting_for for step in world.steps if isinstance(step, Rest)]
    assert rests == [
        "API servers to learn of the new authority",
        "the former authority to retire",
        "renewal",
    ]
    assert world.rested - THEN >= WAITS.trust + WAITS.retire
    assert world.ledger.granted == "now"


def test_a_wish_is_granted_once() -> None:
    world = steady()
    world.ledger = replace(world.ledger, wish="again", granted="again")
    assert finish(world) == []


def test_an_authority_is_rotated_when_it_is_due_and_alarms_nobody() -> None:
    world = steady(AGED)
    assert finish(world) == ROTATION
    assert alarms(world) == []


def test_phase_four_does_not_begin_before_every_replica_serves_the_new_leaf() -> None:
    world = steady()
    world.ledger = replace(world.ledger, wish="now")
    asked = 0

    def lag(count: int) -> int:
        """The first few answers of replicas are the old leaf."""
        nonlocal asked
        if count == 2 + len(world.served):
            asked += 1
            return 2 if asked < 9 else 0
        return 0

    assert finish(world, lag) == ROTATION
    waits = [
        s.waiting_for for s in world.steps if isinstance(s, Rest) and "replicas" in s.waiting_for
    ]
    assert waits == ["2 of 2 replicas to serve the new leaf"] * 4


def test_the_first_issue_waits_for_nothing() -> None:
    world = TrustWorld(THEN, Ledger(), Pair(), [b"", b""])
    assert finish(world) == ["Introduce", "Trust", "Trust", "Steady", "IssueLeaf"]
    assert alarms(world) == []
    assert world.rested == THEN


def test_a_leaf_that_is_due_costs_one_write() -> None:
    world = steady()
    world.now = THEN + timedelta(days=21)
    assert finish(world) == ["IssueLeaf"]
    assert alarms(world) == []


@pytest.mark.parametrize(
    ("spoilt", "alarm"),
    [
        pytest.param(Pair(), "no leaf yet", id="deleted"),
        pytest.param(Pair(GARBAGE, b"?"), "not readable", id="garbage"),
        pytest.param(LEAVES[TWO.certificate_pem], "not signed by", id="foreign"),
        pytest.param(leaf(ONE, THEN - timedelta(days=8)), "", id="older but good"),
    ],
)
def test_a_spoilt_leaf_is_replaced_at_once_and_that_is_said(spoilt: Pair, alarm: str) -> None:
    world = steady()
    world.leaf = spoilt
    assert finish(world) == (["IssueLeaf"] if alarm else [])
    assert world.rested == THEN
    assert not alarm or alarm in "".join(alarms(world))


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(Pair(), id="deleted"),
        pytest.param(Pair(GARBAGE, b"?"), id="garbage"),
        pytest.param(Pair(ONE.certificate_pem), id="its key is gone"),
        pytest.param(pair(TWO), id="foreign"),
        pytest.param(pair(EXPIRED), id="expired"),
    ],
)
def test_a_lost_authority_is_replaced_by_the_long_way_and_that_is_said(found: Pair) -> None:
    world = steady()
    world.ledger = Ledger(found)
    assert finish(world) == ROTATION
    assert alarms(world)
    foreign = TWO.certificate_pem
    assert not [step for step in world.steps if isinstance(step, Trust) and foreign in step.bundle]


@pytest.mark.parametrize(
    ("bundles", "written"),
    [
        ([b"", b""], ["Trust", "Trust"]),
        ([ONE.certificate_pem, TWO.certificate_pem], ["Trust"]),
        ([ONE.certificate_pem + TWO.certificate_pem, ONE.certificate_pem], ["Trust"]),
    ],
)
def test_a_bundle_that_was_changed_is_put_right_at_once_and_that_is_said(
    bundles: list[bytes], written: list[str]
) -> None:
    world = TrustWorld(THEN, Ledger(pair(ONE)), LEAVES[ONE.certificate_pem], bundles)
    assert finish(world) == written
    assert len(alarms(world)) == len(written)
    assert world.rested == THEN


def test_a_leaf_that_was_there_for_long_and_is_gone_is_said() -> None:
    world = steady()
    world.leaf = Pair()
    finish(world)
    assert alarms(world) == ["there is no leaf yet"]


def test_a_restored_backup_of_the_authority_breaks_nothing() -> None:
    """The Secret is from before the last rotation; leaf and bundles are from after it."""
    world = steady(TWO)
    world.ledger = Ledger(pair(ONE))
    assert finish(world)[0] == "Introduce"


def test_a_bundle_that_loses_the_newcomer_makes_it_wait_again() -> None:
    world = steady()
    newcomer = TWO.certificate_pem
    world.ledger = replace(Ledger(pair(ONE)), incoming=pair(TWO), phase=Phase.TRUSTING, since=THEN)
    world.bundles = [newcomer + ONE.certificate_pem, ONE.certificate_pem]
    world.now += WAITS.trust
    found = finish(world)
    assert found[:3] == ["Trusting", "Trust", "Trusting"]
    assert world.rested >= THEN + 2 * WAITS.trust


def test_rotations_in_a_row_keep_a_bounded_number_of_former_authorities() -> None:
    world = steady()
    for wish in range(MOST_FORMER + 4):
        world.ledger = replace(world.ledger, wish=str(wish))
        for _ in range(40):
            world.step(up_to_date)
            assert not [*world.untrusted()]
            if world.ledger.phase is Phase.RETIRING and world.ledger.granted == str(wish):
                break
        else:
            raise AssertionError(world.steps)
    assert {len(bundle.good(pem, world.now)) for pem in world.bundles} == {MOST_FORMER + 1}


@pytest.mark.parametrize("since", [THEN + timedelta(days=3), None])
def test_a_wait_that_begins_in_the_future_begins_anew(since: datetime | None) -> None:
    world = steady()
    world.ledger = replace(
        Ledger(pair(ONE)), former=TWO.certificate_pem, phase=Phase.RETIRING, since=since
    )
    world.bundles = [ONE.certificate_pem + TWO.certificate_pem] * 2
    assert finish(world)[0] == "Retiring"
    assert world.rested >= THEN + WAITS.retire


PAIRS: Final = st.sampled_from(
    [
        Pair(),
        Pair(GARBAGE, b"?"),
        Pair(ONE.certificate_pem, TWO.key_pem),
        Pair(ONE.certificate_pem),
        *map(pair, ALL),
    ]
)
BUNDLES: Final = st.lists(
    st.sampled_from([GARBAGE, b"# text", *(each.certificate_pem for each in ALL)]), max_size=3
).map(b"".join)
LEDGERS: Final = st.builds(
    Ledger,
    PAIRS,
    PAIRS,
    BUNDLES,
    st.sampled_from(Phase),
    st.none() | st.timedeltas(timedelta(days=-2), timedelta(days=2)).map(lambda d: THEN + d),
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["", "a"]),
)
ANY_LEAF: Final = st.sampled_from([Pair(), Pair(GARBAGE, b"?"), *LEAVES.values()])


@given(LEDGERS, ANY_LEAF, st.lists(BUNDLES, min_size=1, max_size=2), st.data())
@settings(max_examples=60, deadline=None)
def test_from_anywhere_it_comes_to_rest_and_breaks_nothing_on_the_way(
    ledger: Ledger, found: Pair, bundles: list[bytes], data: st.DataObject
) -> None:
    """At every prefix of the writes every leaf in service is trusted by every bundle.

    In service is whatever replicas may show; a bundle is whatever an API server may still go by.
    """
    world = TrustWorld(THEN, ledger, found, bundles)
    finish(world, lambda count: data.draw(st.integers(0, count - 1)))


def test_the_model_notices_a_leaf_that_is_not_trusted() -> None:
    world = steady()
    world.bundles[1] = TWO.certificate_pem
    assert [*world.untrusted()]


def test_the_steps_name_what_they_are_for() -> None:
    assert {Introduce, Store, Trust, IssueLeaf} == set(Write.__args__)
    assert rotation.Waits().retire == timedelta(days=1)
