import threading
from pathlib import Path
from typing import Final, cast

import orjson
import pytest
from typing_extensions import override

from api.jsons import JsonObject
from kube.errors import Forbidden
from policies import policy_source
from policies.audit_records import LONGEST_LINE, Record, Summary
from policies.policy import Policy
from tests.bench.webhook_reviews import pod_clique_set
from tests.support.auditstand import Out, Stand, ledger, review
from tests.support.manualclock import LeapingClock
from tests.support.secretly import plain_pod
from webhook import journal
from webhook.telling import REASON, Herald, event

SETS: Final = "/validate/podcliquesets"
PODS: Final = "/mutate/pods"


def policy(text: str) -> Policy:
    return policy_source.read("test", text).policy


SMALL_QUEUE: Final = policy(
    "queues:\n- {name: small, namespaces: [team-a], default: true,\n"
    "   limits: {podsPerGang: {max: 8}}}\n"
    "rules:\n- {id: safe, mode: warn, podSecurity: restricted}\n"
)
WATCHED: Final = policy("rules:\n- {id: safe, mode: audit, podSecurity: restricted}\n")


@pytest.fixture
def out() -> Out:
    return Out()


@pytest.fixture
def stand(out: Out) -> Stand:
    return Stand(ledger(None, out))


def only(records: list[Record]) -> Record:
    (record,) = records
    return record


def too_many() -> JsonObject:
    raw = pod_clique_set(3)
    cast("JsonObject", raw["metadata"])["labels"] = {"penstock.dev/queue": "small"}
    return raw


def test_a_refusal_has_a_record_that_says_who_what_where_and_why(out: Out) -> None:
    stand = Stand(ledger(None, out), SMALL_QUEUE)
    assert not stand.ask(SETS, review(SETS, too_many()))["allowed"]
    stand.finish()
    record = only(out.records())
    assert (record.decision, record.code, record.webhook) == ("deny", 422, "validate-podcliquesets")
    assert (record.op, record.gvk) == ("CREATE", "grove.io/v1alpha1/PodCliqueSet")
    assert (record.ns, record.name, record.queue) == ("team-a", "chat", "small")
    assert (record.user.name, record.user.groups, record.user.extra) == (
        "alice",
        ["ml"],
        ["tenant"],
    )
    assert record.gang is not None
    assert (record.gang.cliques, record.gang.gpus) == (3, 96)
    said = {each.rule: each for each in reversed(record.violations)}
    assert said["queue-gangs-are-sized"].mode == "enforce"
    assert "12 pods" in said["queue-gangs-are-sized"].message
    assert said["safe"].mode == "warn"
    assert said["safe"].path.startswith("spec.template.cliques[0].spec.podSpec.")
    assert orjson.loads(bytes(record.excerpt))["spec"]["replicas"] == 2
    assert stand.count('audit_records_total{decision="deny"}') == 1


def test_built_in_rules_are_named_too(stand: Stand, out: Out) -> None:
    raw = pod_clique_set(2)
    template = cast("JsonObject", cast("JsonObject", raw["spec"])["template"])
    cliques = cast("list[JsonObject]", template["cliques"])
    cliques[1]["name"] = cliques[0]["name"]
    stand.ask(SETS, review(SETS, raw))
    stand.finish()
    rules = {each.rule for each in only(out.records()).violations}
    assert all(rule and rule != "validate-podcliquesets" for rule in rules)


@pytest.mark.parametrize(
    ("policy", "admitted", "decision"),
    [
        (SMALL_QUEUE, False, "warn"),
        (WATCHED, False, "audit"),
        (Policy(), False, None),
        (Policy(), True, "allow"),
    ],
)
def test_what_is_let_in_is_noted_where_there_is_something_to_say(
    out: Out,
    policy: Policy,
    admitted: bool,  # noqa: FBT001
    decision: str | None,
) -> None:
    stand = Stand(ledger(None, out), policy, admitted=admitted)
    raw = plain_pod()
    cast("JsonObject", raw["metadata"])["labels"] = {
        "penstock.dev/gang": "train",
        "penstock.dev/gang-size": "4",
    }
    cast("JsonObject", raw["spec"]).pop("schedulingGates")
    assert stand.ask(PODS, review(PODS, raw))["allowed"]
    stand.finish()
    assert [each.decision for each in out.records()] == ([decision] if decision else [])


def test_a_warning_that_two_webhooks_give_is_noted_once(out: Out) -> None:
    stand = Stand(ledger(None, out), WATCHED)
    for path in ("/default/podcliquesets", SETS):
        assert stand.ask(path, review(path, pod_clique_set(1)))["allowed"]
    stand.finish()
    assert only(out.records()).webhook == "validate-podcliquesets"


def test_what_nobody_got_to_is_noted(stand: Stand, out: Out) -> None:
    stand.ask(SETS, review(SETS, pod_clique_set(1)), seconds=-1.0)
    stand.finish()
    record = only(out.records())
    assert (record.decision, record.code) == ("shed", 503)


def test_an_object_that_cannot_be_read_is_noted_without_it(stand: Stand, out: Out) -> None:
    stand.ask(SETS, review(SETS, []))
    stand.finish()
    record = only(out.records())
    assert (record.decision, bytes(record.excerpt), record.spec_digest) == ("deny", b"", "")


def test_no_record_is_longer_than_promised(stand: Stand, out: Out) -> None:
    raw = pod_clique_set(64)
    template = cast("JsonObject", cast("JsonObject", raw["spec"])["template"])
    for clique in cast("list[JsonObject]", template["cliques"]):
        clique["name"] = "A" * 250
    user: JsonObject = {"username": "u" * 20_000, "groups": ["g" * 5_000 for _ in range(20)]}
    stand.ask(SETS, review(SETS, raw, userInfo=user))
    stand.finish()
    assert only(out.records()).more_violations
    assert all(len(line) <= LONGEST_LINE for line in out.text.splitlines())


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_every_refusal_has_one_record_or_is_counted(tmp_path: Path, count: int) -> None:
    out = Out()
    stand = Stand(ledger(tmp_path, out), SMALL_QUEUE)
    stand.journal.start()
    bodies = [
        review(PODS, {"metadata": {"labels": {"penstock.dev/gang": "G"}}, "spec": {}}, uid=f"u-{i}",
               namespace=f"team-{i % 40}", userInfo={"username": f"user-{i % 7}"})
        for i in range(count)
    ]  # fmt: skip

    def ask(part: int) -> None:
        for body in bodies[part::4]:
            assert not stand.ask(PODS, body)["allowed"]

    threads = [threading.Thread(target=ask, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stand.journal.stop(60.0)
    ids = [each.audit_id for each in out.records()]
    assert len(ids) == len(set(ids)) > 100
    told = sum(each.suppressed for each in out.lines() if isinstance(each, Record | Summary))
    dropped = sum(each.dropped for each in out.lines() if isinstance(each, Summary))
    assert len(ids) + told + dropped == count
    assert stand.count("audit_suppressed_total") == told
    assert sum(len(p.read_bytes()) for p in tmp_path.glob("audit-*")) == len(out.text)


def test_more_than_there_is_room_for_is_dropped_and_counted(out: Out) -> None:
    stand = Stand(ledger(None, out))
    stand.unbounded()
    for _ in range(journal.MOST_WAITING + 5):
        stand.ask(SETS, review(SETS, []))
    assert stand.count('audit_dropped_total{reason="queue"}') == 5
    stand.finish()
    assert len(out.records()) == journal.MOST_WAITING
    assert [x.dropped for x in out.lines() if isinstance(x, Summary)] == [5]


def test_what_waits_is_bounded_in_bytes(out: Out) -> None:
    stand = Stand(ledger(None, out))
    stand.unbounded()
    large = review(SETS, {"metadata": {"x": "y" * 1_000_000}, "spec": []})
    for _ in range(12):
        stand.ask(SETS, large)
    assert stand.count('audit_dropped_total{reason="queue"}') == 4
    stand.finish()
    assert len(out.records()) == 8


def test_a_disk_that_takes_nothing_holds_up_no_answer(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    stand = Stand(ledger(tmp_path / "file" / "log"), SMALL_QUEUE)
    stand.journal.start()
    assert not stand.ask(SETS, review(SETS, too_many()))["allowed"]
    stand.journal.stop(20.0)
    assert stand.count("audit_failing") == 1
    assert stand.count("audit_missed_lines_total") >= 1
    assert not stand.ask(SETS, review(SETS, too_many()))["allowed"]


def test_a_dry_run_is_noted_as_such_and_nobody_is_told(out: Out) -> None:
    told: list[Record] = []
    stand = Stand(ledger(None, out), told=told.append)
    stand.ask(SETS, review(SETS, [], dryRun=True))
    stand.finish()
    assert only(out.records()).dry_run
    herald = Herald(stand.counts, LeapingClock())
    herald(told[0])
    assert not herald._waiting


class Writing:
    def __init__(self, error: Exception | None = None) -> None:
        self.events: list[tuple[JsonObject, str]] = []
        self.error = error

    async def __call__(self, body: JsonObject, namespace: str) -> None:
        if self.error is not None:
            raise self.error
        self.events.append((body, namespace))


def refusal(number: int = 0, namespace: str = "team-a") -> Record:
    stand = Stand(ledger(None, out := Out()), SMALL_QUEUE)
    stand.ask(SETS, review(SETS, too_many(), uid=f"u-{number}", namespace=namespace))
    stand.finish()
    return only(out.records())


async def test_people_are_told_in_the_namespace_but_not_without_end() -> None:
    stand = Stand(ledger(None, Out()))
    clock, writing = LeapingClock(), Writing()
    herald = Herald(stand.counts, clock)
    for number in range(20):
        herald(refusal(number))
    herald(refusal(99, "team-b"))
    await herald.write_waiting(writing)
    places = [namespace for _, namespace in writing.events]
    assert (places.count("team-a"), places.count("team-b")) == (5, 1)
    assert stand.count('audit_events_total{outcome="suppressed"}') == 15
    assert stand.count('audit_events_total{outcome="written"}') == 6
    names = {str(cast("JsonObject", body["metadata"])["name"]) for body, _ in writing.events}
    assert len(names) == 6


async def test_an_event_that_nobody_takes_is_counted() -> None:
    stand = Stand(ledger(None, Out()))
    herald = Herald(stand.counts, LeapingClock())
    herald(refusal())
    await herald.write_waiting(Writing(Forbidden(403, "Forbidden", "no")))
    assert stand.count('audit_events_total{outcome="failed"}') == 1


def test_an_event_names_the_set_the_rules_and_the_record() -> None:
    told = event(refusal(7))
    assert told["reason"] == REASON
    assert cast("JsonObject", told["regarding"])["name"] == "chat"
    note = str(told["note"])
    for word in ("alice", "PodCliqueSet chat", "queue-gangs-are-sized", "u-7"):
        assert word in note
    assert len(note) <= 1024


def test_writing_rests_longer_than_it_works_so_that_answers_have_the_core(out: Out) -> None:
    stand = Stand(ledger(None, out), SMALL_QUEUE)
    stand.unbounded()
    for _ in range(40):
        stand.ask(SETS, review(SETS, too_many()))
    rests = Rests()
    stand.journal._ending = rests
    stand.journal._write_all(sum_up=False)
    assert len(rests.seconds) == 40 / journal.AT_ONCE
    assert all(0 < seconds <= journal.LONGEST_REST for seconds in rests.seconds)


class Rests(threading.Event):
    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    @override
    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout or 0.0)
        return False
