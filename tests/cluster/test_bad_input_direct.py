"""Bad input sent straight to a webhook process over TLS: an answer in time, that says where."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import Final

import orjson
import pytest

from tests.cluster.rules.manifests import PLAIN
from tests.cluster.rules.whole import FIELDS, whole
from tests.support import bad_input
from tests.support.bad_input import LARGEST, Bad
from tests.support.bad_reviews import review
from tests.webhook.running import CLOCK, JSON, Running, files_in, serving

DEFAULT: Final = "/default/podcliquesets"
PATHS: Final = (
    DEFAULT,
    "/validate/podcliquesets",
    "/validate/clustertopologybindings",
    "/mutate/pods",
    "/authorize/managed",
    "/validate/policy",
)
# The budget is 100 ms. A machine that does other things too may take five times as long, and as
# much again as it takes over a question that costs nothing.
BUDGET: Final = 0.1
PATIENCE: Final = 5
TRIES: Final = 4
LONGEST_REPLY: Final = 16_384
# Of these the rules read nothing; it is the schema that finds them.
OPAQUE: Final = ("podSpec.", "templateSpec.", "metrics[")


@pytest.fixture(scope="module")
def webhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("bad")
    files = files_in(folder / "tls")
    files.issue()
    with serving(files, Path(folder / "log")) as running:
        yield running


@dataclass
class Asked:
    """One connection to the webhook, and how long it takes over a question that costs nothing."""

    connection: HTTPSConnection
    least: float = 0.0

    def about(self, path: str, body: bytes) -> tuple[int, bytes, float]:
        """Give the status, the body and the seconds of a reply."""
        begun = CLOCK.monotonic()
        self.connection.request("POST", path, body, JSON)
        reply = self.connection.getresponse()
        return reply.status, reply.read(), CLOCK.monotonic() - begun

    def patiently(self, path: str, body: bytes) -> tuple[int, bytes, float]:
        """Ask again if it took too long, since the machine may have been at something else."""
        answer = self.about(path, body)
        for _ in range(TRIES):
            if answer[2] <= self.limit:
                break
            answer = min(answer, self.about(path, body), key=lambda found: found[2])
        return answer

    @property
    def limit(self) -> float:
        """The seconds that any answer may take."""
        return PATIENCE * (BUDGET + self.least)


@pytest.fixture
def asked(webhook: Running) -> Iterator[Asked]:
    connection = webhook.connect(timeout=30)
    try:
        made = Asked(connection)
        trivial = review(orjson.dumps(PLAIN))
        made.least = sorted(made.about(DEFAULT, trivial)[2] for _ in range(5))[2]
        yield made
    finally:
        connection.close()


def faults(asked: Asked, bad: Bad, path: str = DEFAULT, *, changed: bool = False) -> list[str]:
    """Everything that is wrong with the answer to one bad set."""
    old = orjson.dumps(PLAIN) if changed else b"null"
    status, reply, seconds = asked.patiently(path, review(bad.text, old=old))
    found = [] if seconds <= asked.limit else [f"takes {seconds:.2f} s"]
    if status not in (200, 400):
        return [*found, f"is answered with {status}: {reply[:200]!r}"]
    if len(reply) > LONGEST_REPLY and not bad.taken:
        found.append(f"is answered with {len(reply)} bytes")
    return found + _said(bad, status, reply)


def _said(bad: Bad, status: int, reply: bytes) -> list[str]:
    if status == 400:
        # Whoever sends no JSON is no API server, and there is no uid to answer to.
        return ["is no review"] if bad.readable else _printable(reply.decode())
    response = orjson.loads(reply)["response"]
    if response["uid"] != "u-1":
        return [f"gets the answer to {response['uid']}"]
    if bad.taken:
        return [] if response["allowed"] else [f"is refused: {response['status']['message']}"]
    if response["allowed"]:
        return [] if _opaque(bad) else ["is let in"]
    status_code, message = response["status"]["code"], response["status"]["message"]
    found = [] if 400 <= status_code < 500 else [f"is our own fault: {message}"]
    if bad.path not in message and not _opaque(bad):
        found.append(f"is refused without {bad.path}: {message[:300]}")
    return found + _printable(message)


def _opaque(bad: Bad) -> bool:
    return any(part in bad.path for part in OPAQUE)


def _printable(message: str) -> list[str]:
    """Nothing in a message may write over a terminal's other lines."""
    return [] if message.isprintable() else [f"is answered with control characters: {message!r}"]


def collected(asked: Asked, every: Iterable[Bad], path: str = DEFAULT) -> list[str]:
    """What is wrong with the answers to all of them."""
    return [f"{bad.what} {fault}" for bad in every for fault in faults(asked, bad, path)]


GROUPS: Final = {
    "hostile names": lambda: bad_input.hostile_names(PLAIN),
    "odd texts": lambda: bad_input.odd_texts(PLAIN),
    "numbers": lambda: bad_input.numbers(whole()),
    "wrong types": lambda: bad_input.wrong_types(whole(), FIELDS),
    "a thousand levels": lambda: bad_input.deep(PLAIN, 1_000),
    "as deep as the API server reads": lambda: bad_input.deep(PLAIN, 9_900),
    "a hundred thousand levels": lambda: bad_input.deep(PLAIN, 100_000),
    "half of Unicode": lambda: bad_input.half_unicode(PLAIN),
    "great sets": lambda: bad_input.big(PLAIN),
    "greedy sets": lambda: bad_input.greedy(PLAIN),
}


@pytest.mark.parametrize("group", GROUPS)
def test_bad_sets_are_refused_in_time_with_the_field(asked: Asked, group: str) -> None:
    assert collected(asked, GROUPS[group]()) == []


@pytest.mark.parametrize("group", ["hostile names", "wrong types", "great sets"])
def test_bad_changes_of_a_good_set_are_refused_in_time(asked: Asked, group: str) -> None:
    found = [
        f"{bad.what} {fault}"
        for bad in GROUPS[group]()
        for fault in faults(asked, bad, changed=True)
        # What must stay is told first, and may leave no room for the field itself.
        if "is refused without" not in fault
    ]
    assert found == []


def test_texts_that_are_no_json_are_refused_in_time(asked: Asked) -> None:
    # Without an object there is nothing to judge, which is said too.
    assert collected(asked, bad_input.broken_json(PLAIN)) == []


def test_of_a_field_twice_the_last_counts_as_at_the_api_server(asked: Asked) -> None:
    (bad,) = bad_input.twice(PLAIN)
    status, reply, _ = asked.about(DEFAULT, review(bad.text))
    assert status == 200
    assert orjson.loads(reply)["response"]["allowed"]


@pytest.mark.parametrize("path", PATHS)
def test_no_path_fails_over_what_is_not_meant_for_it(asked: Asked, path: str) -> None:
    found: list[str] = []
    for bad in (*bad_input.deep(PLAIN, 1_000), *bad_input.broken_json(PLAIN)):
        status, reply, seconds = asked.patiently(path, review(bad.text))
        if status not in (200, 400) or b'"code":500' in reply or seconds > asked.limit:
            found.append(f"{bad.what}: {status} after {seconds:.2f} s: {reply[:200]!r}")
    assert found == []


def test_a_body_of_seven_mib_is_answered_and_one_byte_more_is_too_much(webhook: Running) -> None:
    empty = len(review(bad_input.with_token(PLAIN, bad_input.ARGUMENTS, b'[""]')))
    for more, wanted in ((0, 200), (1, 413)):
        filling = b"x" * (LARGEST - empty + more)
        body = review(bad_input.with_token(PLAIN, bad_input.ARGUMENTS, b'["' + filling + b'"]'))
        assert len(body) == LARGEST + more
        assert _status_of(webhook, body) == wanted


def _status_of(webhook: Running, body: bytes) -> int:
    connection = webhook.connect(timeout=30)
    try:
        # What is too much is refused by its length, and the rest of it is not waited for.
        with suppress(OSError):
            connection.request("POST", DEFAULT, body, JSON)
        return connection.getresponse().status
    finally:
        connection.close()
