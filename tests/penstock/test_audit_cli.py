from pathlib import Path
from typing import Final, cast

import orjson
import pytest
import yaml
from typer.testing import CliRunner, Result

from api.jsons import JsonObject
from penstock.__main__ import AUDIT_COMMANDS, app
from policies import policy_source
from tests.bench.webhook_reviews import pod_clique_set
from tests.support.auditstand import KEY, SECRET, Stand, ledger, review
from tests.support.secretly import plain_pod
from webhook import audit_files

SETS: Final = "/validate/podcliquesets"
PODS: Final = "/mutate/pods"
POLICY: Final = """
queues:
- {name: small, namespaces: ["*"], default: true, limits: {podsPerGang: {max: 8}}}
rules:
- {id: ours, images: {allow: ["registry.corp/*"]}}
"""
LARGER: Final = POLICY.replace("8", "800")


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["audit", *words])


def ask(
    stand: Stand, path: str, raw: JsonObject, uid: str, *, dry: bool = False, **more: str
) -> None:
    user: JsonObject = {"username": more.get("user", "alice")}
    namespace = more.get("namespace", "team-a")
    body = review(path, raw, uid=uid, namespace=namespace, userInfo=user, dryRun=dry)
    stand.ask(path, body)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The logs of two replicas: three refusals by one and one by the other."""
    policy = policy_source.read("test", POLICY).policy
    for replica, asked in (("webhook-0", ("u-1", "u-2", "u-3")), ("webhook-1", ("u-4",))):
        stand = Stand(ledger(tmp_path / replica, pod=replica), policy)
        for uid in asked:
            if uid == "u-3":
                ask(stand, PODS, plain_pod(), uid, user="bob", namespace="team-b")
            else:
                ask(stand, SETS, pod_clique_set(3), uid)
        stand.finish()
    return tmp_path


def ids(done: Result) -> list[str]:
    assert done.exit_code == 0, done.output
    return [each["audit_id"] for each in orjson.loads(done.output)["records"]]


def test_records_of_all_replicas_are_found_by_what_is_asked(folder: Path) -> None:
    where = ("--dir", str(folder), "-o", "json")
    assert ids(run("query", *where)) == ["u-1", "u-2", "u-3", "u-4"]
    assert ids(run("query", *where, "--namespace", "team-b")) == ["u-3"]
    assert ids(run("query", *where, "-u", "alice", "--since", "1h")) == ["u-1", "u-2", "u-4"]
    assert ids(run("query", *where, "--rule", "queue-gangs-are-sized")) == ["u-1", "u-2", "u-4"]
    assert ids(run("query", *where, "--rule", "ours", "--limit", "2")) == ["u-3", "u-4"]
    assert ids(run("query", *where, "--decision", "shed")) == []
    assert ids(run("query", *where, "--since", "2999-01-01T00:00:00Z")) == []
    assert ids(run("query", *where, "--name", "chat")) == ["u-1", "u-2", "u-4"]


def test_a_record_is_told_to_people(folder: Path) -> None:
    done = run("query", "--dir", str(folder / "webhook-1"))
    assert "deny  CREATE PodCliqueSet team-a/chat by alice" in done.output
    assert "queue-gangs-are-sized (enforce): spec.template.cliques: " in done.output
    assert "registry.example" not in done.output


def test_top_counts_by_rule_namespace_and_user(folder: Path) -> None:
    found = orjson.loads(run("top", "--dir", str(folder), "-o", "json").output)
    assert found["decisions"] == {"deny": 4}
    assert found["rules"]["queue-gangs-are-sized"] == 3
    assert found["rules"]["ours"] == 4
    assert (found["namespaces"], found["users"]) == (
        {"team-a": 3, "team-b": 1},
        {"alice": 3, "bob": 1},
    )
    text = run("top", "--dir", str(folder), "--user", "bob").output
    assert "       1  team-b" in text


def test_suppressed_ones_count_in_top(tmp_path: Path) -> None:
    stand = Stand(ledger(tmp_path), policy_source.read("test", POLICY).policy)
    for number in range(50):
        ask(stand, SETS, pod_clique_set(3), f"u-{number}")
    stand.finish()
    found = orjson.loads(run("top", "--dir", str(tmp_path), "-o", "json").output)
    assert found["rules"]["queue-gangs-are-sized"] == 50
    assert found["decisions"]["deny"] + found["decisions"]["suppressed"] == 50


def test_dry_runs_are_told_as_such_and_counted_with_no_refusals(tmp_path: Path) -> None:
    stand = Stand(ledger(tmp_path), policy_source.read("test", POLICY).policy)
    for number in range(50):
        ask(stand, SETS, pod_clique_set(3), f"d-{number}", dry=True)
    ask(stand, SETS, pod_clique_set(3), "u-1")
    stand.finish()
    where = ("--dir", str(tmp_path), "-o", "json")
    found = orjson.loads(run("top", *where).output)
    assert found["decisions"] == {"deny": 1, "dry-run": 50}
    assert found["rules"]["queue-gangs-are-sized"] == 1
    assert (found["namespaces"], found["users"]) == ({"team-a": 1}, {"alice": 1})
    assert ids(run("query", *where, "--no-dry-run")) == ["u-1"]
    dry = ids(run("query", *where, "--dry-run"))
    assert dry
    assert "u-1" not in dry
    assert {*ids(run("query", *where))} == {*dry, "u-1"}
    assert "by alice (dry run)" in run("query", "--dir", str(tmp_path)).output


def test_a_record_is_judged_by_another_policy(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "same.yaml").write_text(POLICY)
    (tmp_path / "larger.yaml").write_text(LARGER)

    def today(name: str) -> dict[str, JsonObject]:
        words = ("explain", "u-1", "--dir", str(folder), "--policy", str(tmp_path / name))
        found = orjson.loads(run(*words, "-o", "json").output)["today"]
        return {each["rule"]: each for each in found}

    same, larger = today("same.yaml"), today("larger.yaml")
    assert same["queue-gangs-are-sized"]["now"]
    assert same["queue-gangs-are-sized"]["certain"]
    assert larger["queue-gangs-are-sized"]["now"] == ""
    assert larger["queue-gangs-are-sized"]["then"]
    assert not larger["ours"]["certain"]  # images are not kept
    text = run("explain", "u-1", "--dir", str(folder), "--policy", str(tmp_path / "larger.yaml"))
    assert "today: queue-gangs-are-sized is broken no more" in text.output
    assert "as far as can be told without the redacted text" in text.output
    pod = run("explain", "u-3", "--dir", str(folder), "--policy", str(tmp_path / "same.yaml"))
    assert "today: ours (enforce) is broken" in pod.output


@pytest.mark.parametrize("line", ["query", "explain u-1 --policy {}/p.yaml", "top", "verify"])
def test_yaml_says_what_json_says(folder: Path, line: str) -> None:
    (folder / "p.yaml").write_text(POLICY)
    words = [*line.format(folder).split(), "--dir", str(folder), "-o"]
    written = run(*words, "yaml").output
    assert not written.startswith("{")
    assert yaml.safe_load(written) == orjson.loads(run(*words, "json").output)


def test_a_record_that_there_is_not_is_said_to_be_none(folder: Path) -> None:
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    done = run("explain", "u-99", "--dir", str(folder), "--policy", str(policy))
    assert (done.exit_code, done.output) == (
        1,
        "penstock audit explain: there is no record u-99\n",
    )


def test_a_log_that_is_whole_is_said_to_be(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(SECRET)
    for trust in ([], ["--key", str(tmp_path / "key")], ["--public", KEY.public]):
        done = run("verify", "--dir", str(folder), *trust)
        assert done.exit_code == 0, done.output
        assert done.output.count(": whole: lines 1 to ") == 2
    assert run("verify", "--dir", str(folder), "--public", "0" * 64).exit_code == 1


def test_a_log_that_is_not_is_found_out(folder: Path) -> None:
    home = folder / "webhook-0"
    (name,) = audit_files.names_in(home)
    whole = (home / name).read_bytes()
    lines = whole.splitlines(keepends=True)
    for changed in (
        whole.replace(b"alice", b"carol", 1),
        b"".join(lines[:2] + lines[3:]),
        b"".join([lines[0], lines[2], lines[1], *lines[3:]]),
        b"".join(lines[:-1]),
        whole[:-20],
        b"",
    ):
        (home / name).write_bytes(changed)
        done = run("verify", "--dir", str(folder), "-o", "json")
        assert done.exit_code == 1
        found = cast("list[JsonObject]", orjson.loads(done.output)["logs"])
        assert [each["whole"] for each in found] == [False, True]
    (home / name).write_bytes(whole)
    assert run("verify", "--dir", str(folder)).exit_code == 0
    (home / audit_files.HEAD).unlink()
    assert run("verify", "--dir", str(folder)).exit_code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("verify", "--dir", "nowhere"), "nowhere cannot be read"),
        (("explain", "u-1", "--dir", "{}"), "say which policy is today's: --policy FILE"),
        (("top", "--dir", "{}"), "there is no audit log in"),
        (("query", "--dir", "{}", "--since", "soon"), "--since soon: write 90m"),
        (("query", "--dir", "{}", "--since", "2027-01-31"), "say which time zone"),
        (("verify", "--dir", "{}", "--public", "x"), "a key has 64 digits"),
        (("verify", "--dir", "{}", "--key", "nowhere"), "--key nowhere cannot be read"),
        (("explain", "u-1", "--dir", "{}", "--policy", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_done_is_one_line(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = run(*(word.format(tmp_path) for word in words))
    assert done.exit_code == 2
    assert said in done.output
    assert done.output.count("\n") == 1


def test_a_cluster_that_cannot_be_reached_is_one_line() -> None:
    done = run("query", "--kubeconfig", "nowhere")
    assert done.exit_code == 4
    assert done.output.startswith("penstock audit: ")
    assert done.output.count("\n") == 1


@pytest.mark.parametrize("command", [entry.name for entry in AUDIT_COMMANDS])
def test_help_has_examples(command: str) -> None:
    assert f"penstock audit {command} " in run(command, "--help").output
