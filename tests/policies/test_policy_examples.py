"""The policies that people are told to start from, and what the guide says of rules."""

import re
from pathlib import Path

import pytest

from api.jsons import Json, JsonObject
from policies import evaluating, podcliqueset_admission, policy_source, queue_rules
from policies.admission import Operation, Request, User
from policies.answers import Allow, Answer
from policies.cel import functions, macros
from policies.cel.kinds import Kind, ListOf, Record
from policies.expression_view import VARIABLES
from policies.known import NOTHING
from tests.policies.drafts import clique, draft

EXAMPLES = sorted(Path("examples/policies").glob("*.yaml"))
GUIDE = Path("docs/policy.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_can_be_gone_by(path: Path) -> None:
    found = policy_source.read(path.name, path.read_text(encoding="utf-8")).policy
    assert found.queues or found.rules


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 5


def test_the_example_for_serving_gives_and_asks_what_it_says() -> None:
    text = Path("examples/policies/serving.yaml").read_text(encoding="utf-8")
    policy = policy_source.read("serving", text).policy
    gpus: JsonObject = {"limits": {"nvidia.com/gpu": "8"}}
    main: JsonObject = {"name": "m", "image": "registry.example/engine:1", "resources": gpus}

    def asked(containers: list[Json], space: str, *groups: str) -> Answer:
        raw = draft(clique("a", pod={"containers": containers}))
        who = User("anna", groups)
        request = Request(Operation.CREATE, "PodCliqueSet", raw, namespace=space, user=who)
        return podcliqueset_admission.judge(policy, NOTHING, request)

    answer = asked([main], "chat-a", "chat-team")
    assert isinstance(answer, Allow)
    assert "without a readinessProbe" in answer.warnings[0]
    given = " ".join(str(each["path"]) for each in answer.patch)
    for part in ("labels", "annotations/penstock.dev~1startup", "/ports", "/requests"):
        assert part in given
    rules = [each.rule for each in asked([{**main, "image": "x"}], "chat-a", "chat-team").findings]
    assert rules == ["own-registry", "probed"]
    both: JsonObject = {**gpus, "requests": {"nvidia.com/gpu": "4"}}
    rules = [
        each.rule for each in asked([{**main, "resources": both}], "chat-a", "chat-team").findings
    ]
    assert rules == ["gpus-are-whole", "probed"]
    assert [each.rule for each in asked([main], "chat-a", "batch-team").findings] == [
        *("queue-submitter", "probed")
    ]
    # Nobody's default, so that it must be named.
    assert [each.rule for each in asked([main], "batch-a", "batch-team").findings] == ["queue-open"]


def test_the_guide_names_all_that_expressions_see() -> None:
    words = set(re.findall(r"[A-Za-z_]+", GUIDE))
    seen: set[str] = set()

    def walk(kind: Kind | None) -> None:
        if isinstance(kind, Record):
            for name, field in kind.fields.items():
                seen.add(name)
                walk(field.kind)
        elif isinstance(kind, ListOf):
            walk(kind.of)

    for variable, kind in VARIABLES.items():
        seen.add(variable)
        walk(kind)
    assert len(seen) > 50
    assert seen <= words


def test_the_guide_names_every_function_and_macro() -> None:
    for name in functions.NAMES | macros.NAMES | {"has"}:
        assert re.search(rf"`{name}[`(]", GUIDE), name


def test_the_guide_names_every_rule_of_queues() -> None:
    named = [f"queue-{rule.name.replace('_', '-')}" for rule in queue_rules.RULES]
    for name in (evaluating.QUEUE_OPEN, evaluating.QUEUE_SUBMITTER, *named):
        assert f"`{name}`" in GUIDE


def test_every_policy_in_the_guide_can_be_gone_by() -> None:
    found = [
        text
        for text in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
        if not text.startswith("expected:")
    ]
    assert len(found) >= 3
    for text in found:
        policy_source.read("guide", text)
