import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import durations
from api.durations import BadDurationError
from policies import audit_words, policy_source
from policies.audit_words import TAG, Redacting, redacting
from policies.policy import BUILT_IN
from tests.repo import checkout

KEY = b"k" * 32
TOLD = redacting(KEY, BUILT_IN)


def test_every_module_that_finds_something_wrong_is_listened_to() -> None:
    speaks = re.compile(r"\b(?:Problem|Refuse|Allow)\(")
    silent = {
        f"policies.{path.relative_to(checkout.ROOT / 'policies').with_suffix('').as_posix()}"
        for path in (checkout.ROOT / "policies").glob("*.py")
        if speaks.search(path.read_text())
    } - {module.__name__ for module in audit_words.MODULES}
    # They hold what others say, or say nothing to people.
    assert {name for name in silent if "audit_" not in name} <= {
        "policies.findings",
        "policies.policy_checks",
    }


@pytest.mark.parametrize(
    "message",
    [
        "a gang may have at most 8 pods in queue",
        "must be from 1 to replicas (4), got 5",
        "image must be named by its digest (@sha256:…)",
        "should be greater than or equal to 0",
        "is required",
        "there is no queue",
        "is not a duration such as 4h, 1h30m or 300ms",
    ],
)
def test_words_of_ours_stay(message: str) -> None:
    said = TOLD.message(message)
    assert TAG.sub("", said) == said, said


@pytest.mark.parametrize("written", ["hunter2", "9999999h"])
def test_a_function_whose_answers_are_kept_in_mind_is_listened_to(written: str) -> None:
    with pytest.raises(BadDurationError) as raised:
        durations.nanoseconds(written)
    said = str(raised.value).partition(" ")[2]
    assert TOLD.message(said) == said


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("there is no queue 'hunter2'", "there is no queue '<>'"),
        ("image 'a.b/c:d' must be named", "image '<>' must be named"),
        ("got '1234567'", "got '<>'"),  # what is in quotes is text, digits too
        (
            "PodCliqueSet 'qx qy z-secret' cannot be accepted",
            "PodCliqueSet '<> <> <>' cannot be accepted",
        ),
        ("hunter2hunter2", "<>"),
        ("=====", "<>"),
        ("replicas=3", "replicas=3"),
        ("hunter=3", "<>"),
        ("12345678901234", "<>"),
    ],
)
def test_words_of_others_are_tags(message: str, left: str) -> None:
    assert TAG.sub("<>", TOLD.message(message)) == left


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("spec.template.cliques[2].spec.podSpec.containers[0].image", None),
        ("metadata.labels[penstock.dev/queue]", None),
        ("metadata.labels[hunter2.example/x]", "metadata.labels[<>]"),
        ("spec.hunter2", "spec.<>"),
        ("spec.template[hunter2]", "spec.template[<>]"),
        ("spec.a b[c", "spec.<><>"),
        ("metadata.annotations[a[b]c]", "metadata.annotations[<>]"),
        ("spec.replicas[12345678]", "spec.replicas[<>]"),
        ("", ""),
    ],
)
def test_paths_keep_the_steps_that_are_ours(path: str, left: str | None) -> None:
    assert TAG.sub("<>", TOLD.path(path)) == (path if left is None else left)


def test_the_policys_own_words_stay_while_it_holds() -> None:
    policy = policy_source.read("test", "queues: [{name: hunter2, namespaces: ['*']}]").policy
    assert redacting(KEY, policy).message("there is no queue 'hunter2'").endswith("'hunter2'")
    assert TOLD.value("hunter2") != "hunter2"


def test_a_tag_is_the_texts_own_under_one_key() -> None:
    other = Redacting(b"o" * 32, TOLD.known)
    assert TOLD.tag("x") == TOLD.tag("x")
    assert TOLD.tag("x") != TOLD.tag("y")
    assert TOLD.tag("x") != other.tag("x")
    assert TAG.fullmatch(TOLD.tag("some text"))


@given(st.text(max_size=60))
def test_no_text_makes_it_raise_or_passes_unless_it_is_ours(text: str) -> None:
    said, path = TOLD.message(text), TOLD.path(text)
    # `queue-submitter` is one word of ours, of which the second half by itself is none.
    others = " ".join(each for each in re.split(r"[^\w-]+", text) if each not in TOLD.known)
    for word in re.findall(r"\w{9,}", others):
        if word not in TOLD.known and not word.isdigit():
            assert word not in TAG.sub("", said)
            assert word not in TAG.sub("", path)
