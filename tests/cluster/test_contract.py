"""What the API server makes of every kind of reply a webhook can give, under both failure policies.

Each case is a webhook of its own. Where our own server can give the reply, our own code writes it.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import orjson
import pytest

from api.jsons import Json, JsonObject
from kube.clock import SystemClock
from penstock.lab.state import Lab
from policies import problems
from policies.answers import Allow, Code, Refuse
from tests.support.contract import LET_IN, POLICIES, Case, Contract, Outcome, contract
from tests.support.webhookstand import Act, Reply, Reset, Script, Stall
from webhook import review

pytestmark = pytest.mark.cluster

MEBIBYTE: Final = 1 << 20
TEXT: Final = {"Content-Type": "text/plain; charset=utf-8"}
ADD: Final[JsonObject] = {"op": "add", "path": "/data", "value": {"greeting": "grüße ~/"}}
REMOVE: Final[JsonObject] = {"op": "remove", "path": "/data/nothing"}
PATCHED: Final = Outcome(data={"greeting": "grüße ~/"})
SILENT: Final = Outcome(400, "", "denied the request without explanation")
REFUSAL: Final = 'it is not "this";\ngrüße: mend spec.a[0]'
HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"


def always(act: Act) -> Script:
    return lambda _: act


def ours(answer: Allow | Refuse) -> Script:
    """What our own server writes."""
    return lambda uid: Reply(review.write(uid, answer))


def theirs(**response: Json) -> Script:
    """A response that our own server never writes."""
    return lambda uid: Reply(whole({"uid": uid, "allowed": True, **response}))


def whole(response: JsonObject | None) -> bytes:
    return orjson.dumps(
        {"apiVersion": review.API_VERSION, "kind": review.KIND, "response": response}
    )


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def fine(name: str, script: Script, seen: Outcome = LET_IN) -> Case:
    return Case(name, script, seen, seen)


def refusing(name: str, code: Code, reason: str) -> Case:
    """The person sees our code, our reason and our words, whatever the failure policy."""
    words = rf'^admission webhook "{name}\.\w+\.contract\.test" denied the request: '
    return fine(
        name,
        ours(Refuse(code, REFUSAL)),
        Outcome(int(code), reason, f"{words}{re.escape(REFUSAL)}$"),
    )


def lost(name: str, script: Script, words: str, stand: str = "good") -> Case:
    """A call that counts as failed, so that the failure policy decides."""
    seen = Outcome(500, "InternalError", rf'failed calling webhook "{name}\..*{words}')
    return Case(name, script, seen, LET_IN, stand=stand)


def broken(name: str, script: Script, words: str) -> Case:
    """An answer that counts as given but cannot be followed: Ignore lets nothing through."""
    return fine(name, script, Outcome(500, "InternalError", words))


def large(uid: str) -> Act:
    notes: JsonObject = {f"note-{n}": "x" * MEBIBYTE for n in range(11)}
    return Reply(whole({"uid": uid, "allowed": True, "auditAnnotations": notes}))


FORBIDDING: Final = refusing("forbidding", Code.FORBIDDEN, "Forbidden")
FORBIDDING_LAST: Final = replace(
    refusing("forbidding-last", Code.FORBIDDEN, "Forbidden"), validating=True
)

ANSWERS: Final = (
    fine("allowing", ours(Allow())),
    replace(fine("allowing-last", ours(Allow())), validating=True),
    fine("patching", ours(Allow((ADD,))), PATCHED),
    fine("patching-nothing", theirs(patch=encoded(b"[]"), patchType="JSONPatch")),
    FORBIDDING,
    FORBIDDING_LAST,
    refusing("invalid", Code.INVALID, "Invalid"),
    refusing("bad-request", Code.BAD_REQUEST, "BadRequest"),
    refusing("own-fault", Code.INTERNAL, "InternalError"),
    fine("refusing-without-status", theirs(allowed=False), SILENT),
)

BAD_ANSWERS: Final = (
    lost("wrong-uid", theirs(uid="other"), "expected response.uid="),
    lost("no-patch-type", theirs(patch=encoded(orjson.dumps([ADD]))), "not response.patchType"),
    replace(
        lost(
            "patching-last",
            ours(Allow((ADD,))),
            "validating webhook may not return response.patch",
        ),
        validating=True,
    ),
    replace(
        lost("patch-type-last", theirs(patchType="JSONPatch"), "may not return .*patchType"),
        validating=True,
    ),
    lost("no-response", always(Reply(whole(None))), "response was absent"),
    lost(
        "undecodable-patch",
        theirs(patch=encoded(b"hello"), patchType="JSONPatch"),
        "received undecodable patch",
    ),
    lost("not-json", always(Reply(b"hello")), "couldn't get version/kind"),
    broken(
        "patch-that-does-not-fit",
        ours(Allow((REMOVE,))),
        "operation does not apply: doc is missing path",
    ),
    replace(
        broken("patching-a-delete", ours(Allow((ADD,))), "not supported for this operation"),
        operation="DELETE",
    ),
)

# What a person reads of a reply that only carries an HTTP status: of 415 and 500 also our words.
SAID: Final = (
    (400, "the server rejected our request for an unknown reason"),
    (413, "the server responded with the status code 413"),
    (415, "too bad"),
    (500, "too bad"),
    (503, "the server is currently unable to handle the request"),
)
REDIRECTING: Final = lost(
    "http-302", always(Reply(b"", 302, {"Location": "/elsewhere"})), "could not find the requested"
)

NO_ANSWERS: Final = (
    *(lost(f"http-{n}", always(Reply(b"too bad", n, TEXT)), words) for n, words in SAID),
    REDIRECTING,
    fine("http-307", always(Reply(b"", 307, {"Location": "/elsewhere"}))),
    lost("slow", always(Stall()), "(deadline exceeded|Client.Timeout)"),
    lost("reset-before-head", always(Reset()), "connection reset by peer"),
    lost("reset-after-head", always(Reset(HEAD)), "connection reset by peer"),
    fine("eleven-mebibytes", large),
)

UNTRUSTED: Final = ("unknown-authority", "expired", "wrong-name")
OVER_TLS: Final = (
    *(
        lost(name, ours(Allow()), words, stand=name)
        for name, words in (
            ("unknown-authority", "signed by unknown authority"),
            ("expired", "certificate has expired"),
            ("wrong-name", "cannot validate certificate for 127.0.0.1"),
        )
    ),
    # The other way around, a client of 1.2 before a server of 1.3, no API server can be brought to:
    # `test_tls_1_2_is_refused` in tests/webhook/test_webhook_process.py shows it with one of ours.
    replace(fine("tls-1.2", ours(Allow())), stand="tls-1.2"),
)

CASES: Final = (*ANSWERS, *BAD_ANSWERS, *NO_ANSWERS, *OVER_TLS)

LONG: Final = tuple(f"{n}: " + "ü" * 200 for n in range(12))
OUR_WARNINGS: Final = fine("our-warnings", ours(Allow((ADD,), LONG)), PATCHED)
# What the API server itself does to warnings that nobody shortens.
EXACT: Final = fine("exact-warning", theirs(warnings=["w" * 256]))
LONGER: Final = fine("longer-warning", theirs(warnings=["w" * 300]))
MANY: Final = fine("many-warnings", theirs(warnings=[f"{n:02}" + "w" * 298 for n in range(20)]))


@pytest.fixture(scope="module")
def api_server(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Contract]:
    cases = (*CASES, OUR_WARNINGS, EXACT, LONGER, MANY)
    folder = tmp_path_factory.mktemp("tls")
    more = {"/elsewhere": ours(Allow())}
    with contract(lab.kubeconfig, folder, cases, more, SystemClock().now()) as made:
        made.settled((FORBIDDING, FORBIDDING_LAST))
        yield made


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_reply_has_this_outcome(api_server: Contract, case: Case, policy: str) -> None:
    expected = case.outcome(policy)
    before = api_server.calls(case, policy)
    seen = api_server.attempt(case, policy)
    assert seen.code == expected.code, seen.message
    if seen.done:
        assert seen.object.get("data") == expected.data
    else:
        assert seen.status.reason == expected.reason
        assert re.search(expected.words, seen.message, re.DOTALL), seen.message
    # A call that fails is not tried again; one that fails in the handshake never comes.
    reached = case.stand not in UNTRUSTED
    assert api_server.calls(case, policy) - before == int(reached)


def test_a_redirect_is_followed_without_the_review(api_server: Contract) -> None:
    """So a webhook must never redirect: nobody could answer there."""
    before = api_server.stands["good"].asked["GET /elsewhere"]
    assert not api_server.attempt(REDIRECTING, "Fail").done
    assert api_server.stands["good"].asked["GET /elsewhere"] == before + 1


def test_our_warnings_arrive_whole(api_server: Contract) -> None:
    seen = api_server.attempt(OUR_WARNINGS, "Fail")
    shown = LONG[: review.MOST_WARNINGS - 1]
    kept = [problems.shortened(text, review.LONGEST_WARNING) for text in shown]
    more = len(LONG) - len(kept)
    assert [*seen.warnings] == [*kept, f"+{more} more"]


@pytest.mark.parametrize(
    ("case", "lengths"),
    [(EXACT, [256]), (LONGER, [300]), (MANY, [256] * 16)],
    ids=["256 alone", "300 alone", "20 of 300"],
)
def test_warnings_are_cut_once_they_are_too_many_in_all(
    api_server: Contract, case: Case, lengths: list[int]
) -> None:
    """Only above 4096 characters in all is each cut to 256, and the last ones are dropped."""
    assert [len(text) for text in api_server.attempt(case, "Fail").warnings] == lengths


def test_our_limits_stay_below_those_of_the_api_server() -> None:
    assert review.LONGEST_WARNING <= 256
    assert review.LONGEST_WARNING * review.MOST_WARNINGS <= 4096
