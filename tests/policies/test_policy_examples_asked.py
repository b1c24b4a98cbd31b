"""Each policy that people are told to start from, held against what it is written for."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from api.jsons import JsonObject
from policies import podcliqueset_admission, policy_source
from policies.admission import Operation, Request, User
from policies.answers import Allow
from tests.policies.drafts import clique, cluster, constraint, draft

OURS: Final = "registry.example/engine:1"
EARLY, LATE = (datetime(year, 1, 1, tzinfo=UTC) for year in (2027, 2028))
ANNA: Final = User("anna", ("ml-serving",))


@dataclass(frozen=True)
class Told:
    """What a set is told: whether it is let in, warned of, and by which rules."""

    let_in: bool
    warned: bool
    rules: tuple[str, ...]


FINE: Final = Told(let_in=True, warned=False, rules=())


def refused(*rules: str) -> Told:
    return Told(let_in=False, warned=False, rules=rules)


def a_set(
    *, image: str = OURS, replicas: int = 1, pods: int = 1, level: str = "", **pod: str | bool
) -> JsonObject:
    spec: JsonObject = {"containers": [{"name": "main", "image": image}], **pod}
    made = clique("a", pod=spec, counts={"replicas": pods})
    near = constraint(level, name="network")
    raw = draft(made, topologyConstraint=near) if level else draft(made)
    whole = raw["spec"]
    assert isinstance(whole, dict)
    whole["replicas"] = replicas
    return raw


def told(
    name: str, raw: JsonObject, space: str = "chat-a", user: User = ANNA, now: datetime = EARLY
) -> Told:
    path = Path("examples/policies") / f"{name}.yaml"
    policy = policy_source.read(path.name, path.read_text(encoding="utf-8")).policy
    request = Request(Operation.CREATE, "PodCliqueSet", raw, namespace=space, user=user, now=now)
    answer = podcliqueset_admission.judge(policy, cluster("network"), request)
    rules = tuple(dict.fromkeys(each.rule for each in answer.findings))
    let_in = isinstance(answer, Allow)
    return Told(let_in, isinstance(answer, Allow) and bool(answer.warnings), rules)


@pytest.mark.parametrize(
    ("raw", "space", "expected"),
    [
        (a_set(replicas=20), "chat-a", FINE),
        (a_set(replicas=21), "chat-a", refused("queue-gangs-are-few")),
        (a_set(pods=129), "chat-a", refused("queue-gangs-are-sized")),
        (a_set(priorityClassName="low"), "lab-a", FINE),
        (
            a_set(priorityClassName="high"),
            "lab-a",
            Told(let_in=True, warned=True, rules=("queue-priorities-are-allowed",)),
        ),
        (a_set(), "elsewhere", refused("queue-open")),
    ],
)  # fmt: skip
def test_two_teams_have_a_queue_each(raw: JsonObject, space: str, expected: Told) -> None:
    assert told("queues", raw, space) == expected


@pytest.mark.parametrize(
    ("image", "space", "now", "expected"),
    [
        (OURS, "chat-a", EARLY, FINE),
        ("nginx:1", "chat-a", EARLY, refused("own-registry")),
        ("registry.example/engine", "chat-a", EARLY, refused("own-registry")),
        ("nginx:1", "lab-vendor", EARLY, FINE),
        ("nginx:1", "lab-vendor", LATE, refused("own-registry")),
    ],
)
def test_images_come_from_one_registry_but_for_a_while(
    image: str, space: str, now: datetime, expected: Told
) -> None:
    assert told("images", a_set(image=image), space, now=now) == expected


DELIVERY: Final = User("system:serviceaccount:delivery:argocd", ("system:serviceaccounts",))


@pytest.mark.parametrize(
    ("raw", "user", "expected"),
    [
        (a_set(pods=7), ANNA, FINE),
        (a_set(pods=7), DELIVERY, FINE),
        (a_set(pods=7), User("bob"), refused("queue-submitter")),
        (a_set(pods=8), ANNA, refused("queue-large-gangs-are-near")),
        (a_set(pods=8, level="zone"), ANNA, refused("queue-large-gangs-are-near")),
        (a_set(pods=8, level="block"), ANNA, FINE),
        (a_set(pods=8, level="rack"), ANNA, FINE),
    ],
)
def test_large_gangs_stay_within_a_block(raw: JsonObject, user: User, expected: Told) -> None:
    assert told("network", raw, user=user) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (a_set(hostNetwork=True), refused("nothing-of-the-node", "hardened")),
        (a_set(), Told(let_in=True, warned=False, rules=("hardened",))),
    ],
)
def test_a_stricter_level_is_noted_and_keeps_nobody_out(raw: JsonObject, expected: Told) -> None:
    assert told("hardened", raw) == expected
