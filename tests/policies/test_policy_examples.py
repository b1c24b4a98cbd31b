"""The policies that people are told to start from, and what the guide says of rules."""

from pathlib import Path

import pytest

from policies import evaluating, policy_source, queue_rules

EXAMPLES = sorted(Path("examples/policies").glob("*.yaml"))
GUIDE = Path("docs/policy.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_can_be_gone_by(path: Path) -> None:
    found = policy_source.read(path.name, path.read_text(encoding="utf-8")).policy
    assert found.queues or found.rules


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4


def test_the_guide_names_every_rule_of_queues() -> None:
    named = [f"queue-{rule.name.replace('_', '-')}" for rule in queue_rules.RULES]
    for name in (evaluating.QUEUE_OPEN, evaluating.QUEUE_SUBMITTER, *named):
        assert f"`{name}`" in GUIDE
