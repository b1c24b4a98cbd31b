import copy
import sys
from collections.abc import Callable
from types import FrameType
from typing import Final

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from policies import policy_source
from policies.policy import BUILT_IN
from policies.policy_source import (
    BUILT_IN_SOURCE,
    LARGEST,
    MOST_VALUES,
    BadPolicyError,
    Place,
)
from policies.problems import MOST_SHOWN


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "---\n", "{}", "apiVersion: policy.penstock.dev/v1"]
)
def test_a_file_that_says_nothing_is_the_built_in_policy(text: str) -> None:
    found = policy_source.read("p.yaml", text)
    assert found.policy == BUILT_IN
    assert found.revision == BUILT_IN_SOURCE.revision
    assert (found.origin, BUILT_IN_SOURCE.origin) == ("p.yaml", "built-in")


def test_what_it_says_is_gone_by() -> None:
    found = policy_source.read(
        "p.yaml", "pods:\n  queue: batch\nschedulers: [default-scheduler, x]\n"
    )
    assert found.policy.pods.queue == "batch"
    assert found.policy.ours("x")
    assert found.revision != BUILT_IN_SOURCE.revision


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pods:\n  queeu: a\n", "line 2: pods.queeu: there is no such key"),
        ("schedulers:\n- a\n- 7\n", "line 3: schedulers[1]: should be a valid string"),
        ("\n\npods: 1\nx: 2\n", "line 3: pods: should be an object (+1 more)"),
        ("[1]", "line 1: a policy is a mapping of keys to values"),
        ("pods: {}\nmnnvl: {}\npods: {}\n", "line 3: the key 'pods' is there twice"),
        ("topology:\n  yes: 1\n", "line 2: a key must be text; put it in quotes"),
        ("? [a]\n: 1\n", "line 1: a key must be text"),
        ("pods: &p {queue: a}\nx: *p\n", "line 1: anchors and aliases are not taken"),
        ("pods: {queue: *p}\n", "line 1: anchors and aliases are not taken"),
        ("pods: {<<: {queue: a}}\n", "line 1: a key must be text"),
        ("a: 1\n---\nb: 2\n", "line 2: there is a second document"),
        ("pods: [\n", "did not find expected node content"),
        ("a:\n\t- b\n", "line 2: found character that cannot start any token"),
        ("x: !!python/object:os.system {}\n", "line 1: tags such as tag:yaml.org,2002:python"),
        ("x: !!bool maybe\n", "line 1: tags such as tag:yaml.org,2002:bool are not taken"),
        ("x: 1\ny: !!int ''\n", "line 2: tags such as"),
        ("x: !!timestamp soon\n", "line 1: tags such as"),
        ("!!map {}", "line 1: tags such as"),
        ("x: ! y\n", "line 1: tags such as"),
        ("x: \x00", "control characters are not allowed"),
        ("[" * 100_000, "line 1: it nests more than 16 levels deep"),
        ("#" * (LARGEST + 1), "it is larger than 256 KiB"),
        ("ü" * (LARGEST // 2 + 1), "it is larger than 256 KiB"),
        ("x: 0o99999999999999999999999_", "line 1: x: there is no such key"),
        ("x: \ud800", "p.yaml"),
    ],
)
def test_what_cannot_be_gone_by_is_one_line_with_file_and_place(text: str, told: str) -> None:
    with pytest.raises(BadPolicyError) as caught:
        policy_source.read("p.yaml", text)
    line = str(caught.value)
    assert line.startswith("policy p.yaml: ")
    assert told in line
    assert "\n" not in line


def test_a_file_of_just_the_largest_size_is_read() -> None:
    assert policy_source.read("p.yaml", "#" * LARGEST).policy == BUILT_IN


def test_all_that_is_wrong_is_there_with_its_line() -> None:
    text = "schedulers: 7\nqueues:\n- {name: a, namespaces: ['*']}\n- name: b\n  limit: {}\n"
    with pytest.raises(BadPolicyError) as caught:
        policy_source.read("p.yaml", text)
    assert [(place.line, place.problem.path) for place in caught.value.places] == [
        (1, "schedulers"),
        (4, "queues[1].namespaces"),
        (5, "queues[1].limit"),
    ]


def test_of_two_with_one_name_the_second_is_shown() -> None:
    text = "queues:\n- {name: a, namespaces: ['*']}\n- namespaces: ['*']\n  name: a\n"
    with pytest.raises(BadPolicyError) as caught:
        policy_source.read("p.yaml", text)
    assert "line 4: queues[1].name: 'a' is there already" in str(caught.value)


def unknown(count: int) -> str:
    return "".join(f"k{i}: 1\n" for i in range(count))


def faults_of(text: str) -> tuple[Place, ...]:
    with pytest.raises(BadPolicyError) as caught:
        policy_source.read("p.yaml", text)
    return caught.value.places


def test_all_faults_are_counted_and_those_that_are_told_have_their_line() -> None:
    found = faults_of(unknown(1_000))
    assert len(found) == 1_000
    told = [place.line for place in found[:MOST_SHOWN]]
    assert told == [*range(1, MOST_SHOWN + 1)]


def test_a_file_of_as_many_values_as_are_taken_is_read_and_one_more_is_not() -> None:
    # One key, one list and what is in it.
    most = f"schedulers: [{'x,' * (MOST_VALUES - 3)}]"
    assert "at most 16" in str(faults_of(most)[0])
    assert f"more than {MOST_VALUES} keys and values" in str(faults_of(f"{most[:-1]}x]")[0])


def looked_at(text: str) -> int:
    """How many lines of our own code it takes to read a bad policy."""
    lines = 0

    def count(frame: FrameType, event: str, _arg: object) -> object:
        nonlocal lines
        if frame.f_code.co_filename != policy_source.__file__:
            return None
        lines += event in ("line", "call")
        return count

    tracing = sys.gettrace()
    sys.settrace(count)  # type: ignore[arg-type]  # it gives itself, which has no type to write
    try:
        faults_of(text)
    finally:
        sys.settrace(tracing)
    return lines


@pytest.mark.no_cover
def test_twice_as_many_faults_cost_about_twice_as_much() -> None:
    assert looked_at(unknown(3_000)) < 2.3 * looked_at(unknown(1_500))
    # Beyond the bound nothing is looked for at all.
    assert looked_at(unknown(33_000)) < 2.3 * looked_at(unknown(3_600))


# Whatever there is for the loader to make something else of, and what it cannot make anything of.
SCALARS: Final = (
    "x", "'7'", "7", "-1.5", "1e3", "0x1F", "0o7", "012", "1:30", "1_000", "yes", "Null", "~",
    ".inf", "2026-01-01", "2026-01-01T10:00:00Z", "2026-13-45", "2026-02-31", "=", "'2026-13-45'",
)  # fmt: skip


def listed(inside: list[str]) -> str:
    return f"[{', '.join(inside)}]"


def mapped(inside: dict[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in inside.items()) + "}"


TEXTS: Final = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: (
        st.lists(inner, max_size=4).map(listed)
        | st.dictionaries(st.sampled_from(["a", "b", "'1'"]), inner).map(mapped)
    ),
    max_leaves=8,
)


def outcome(make: Callable[[], object]) -> object:
    try:
        return repr(make())
    except (yaml.YAMLError, ValueError) as error:
        return type(error), str(error)


@given(TEXTS)
@example("{a: {b: 2026-13-45}, b: 2026-02-31}")
@example("{a: [=], b: 2026-02-31}")
def test_a_text_means_what_the_loader_makes_of_it(text: str) -> None:
    loader = yaml.CSafeLoader
    root = yaml.compose(text, loader)
    assert root is not None
    by_loader = outcome(lambda: loader("").construct_document(root))
    assert outcome(lambda: policy_source.meant_by(root)) == by_loader


def test_a_policy_stands_for_its_own_copy_and_shares_no_more_than_that() -> None:
    one = policy_source.read("p.yaml", "queues: [{name: a, namespaces: [x]}]").policy
    other = policy_source.read("p.yaml", "queues: [{name: b, namespaces: [y]}]").policy
    assert copy.deepcopy(one) is one
    assert one.queues[0].submitters == other.queues[0].submitters
    assert (one.queues[0].name, other.queues[0].name) == ("a", "b")
    assert BUILT_IN.queues == []
