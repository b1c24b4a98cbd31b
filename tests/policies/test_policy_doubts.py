"""Policies that can be gone by and hardly mean what they say."""

from datetime import UTC, datetime
from typing import Final

import pytest

from policies import policy_doubts, policy_source

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
QUEUE: Final = "queues: [{name: a, namespaces: ['*']%s}]\n"
EXEMPTION: Final = (
    "exemptions: [{id: e, reason: r, expires: '%s', rules: [%s], namespaces: ['*']}]\n"
)
IMAGES: Final = "rules: [{id: i, images: {requireDigest: true}%s}]\n"


def doubts(text: str) -> list[str]:
    policy = policy_source.read("p", text).policy
    found = policy_doubts.doubts(policy, NOW)
    return [str(each) for each in policy_source.placed(text, found)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (EXEMPTION % ("2025-12-31T00:00:00Z", "queue-open"), "exemptions[0].expires: is over"),
        (EXEMPTION % ("2026-04-02T00:00:00Z", "queue-open"), "is more than 90 days away"),
        (EXEMPTION % ("2026-01-02T00:00:00Z", "queue-opem"), "rules[0]: no rule is called"),
        (QUEUE % "" + IMAGES % ", queues: [b]", "line 2: rules[0].queues[0]: no queue is called"),
        (
            QUEUE % "" + "mutations: [{id: m, queues: [a, b], startup: gate}]",
            "line 2: mutations[0].queues[1]: no queue is called",
        ),
        (QUEUE % ", schedulers: [x]", "queues[0].schedulers[0]: 'x' is not among the schedulers"),
        (
            "queues:\n- {name: a, namespaces: [x], default: true}\n"
            "- {name: b, namespaces: [x], default: true}\n",
            "line 3: queues[1].namespaces[0]: queue 'a' is the default of 'x' already",
        ),
    ],
)
def test_a_doubt_is_told_with_its_line(text: str, told: str) -> None:
    (found,) = doubts(text)
    assert told in found


@pytest.mark.parametrize(
    "text",
    [
        "",
        EXEMPTION % ("2026-03-01T00:00:00Z", "queue-*, i") + IMAGES % "",
        IMAGES % ", queues: [b]",
        QUEUE % ", schedulers: [default-scheduler]" + IMAGES % ", queues: ['a*']",
        "queues:\n- {name: a, namespaces: [x], default: true}\n- {name: b, namespaces: [x]}\n",
    ],
)
def test_what_has_its_effect_is_not_doubted(text: str) -> None:
    assert doubts(text) == []
