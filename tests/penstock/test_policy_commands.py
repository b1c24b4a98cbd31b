"""`penstock policy`, as a person and a pipeline meet it."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, cast
from xml.etree import ElementTree

import orjson
import pytest
import yaml
from typer.testing import CliRunner, Result

from api.jsons import JsonObject
from penstock.__main__ import POLICY_COMMANDS, app

SMALL: Final = """\
queues:
- name: small
  namespaces: ["*"]
  default: true
  submitters: {users: [anna], groups: [chat]}
  limits: {gangs: 2}
"""
WIDE: Final = SMALL.replace("gangs: 2", "gangs: 9")
BAD: Final = "queues:\n- name: a\n  namespace: x\nmode: strict\n"
CONFIG_MAP: Final = """\
# as kubectl wrote it
apiVersion: v1
kind: ConfigMap
metadata:
  name: penstock-policy
data:
  candidate.yaml: |
    mode: strict
  policy.yaml: |
    queues:
    - name: a
      namespace: x
"""
A_SET: Final = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: %d
  template:
    cliques:
    - name: a
      spec: {replicas: 1, podSpec: {containers: [{name: main, image: x}]}}
"""
EXPECTED: Final = """\
expected:
- {kind: PodCliqueSet, name: llm, user: anna, decision: refuse, rules: [queue-gangs-are-few]}
- {kind: PodCliqueSet, name: llm, user: berta, groups: [chat], decision: refuse}
"""

Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def penstock(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["policy", *arguments])


def xml(done: Result) -> ElementTree.Element:
    return ElementTree.fromstring(done.stdout)  # noqa: S314 - our own


def read(done: Result) -> JsonObject:
    return cast("JsonObject", orjson.loads(done.stdout))


@pytest.mark.parametrize("command", [entry.name for entry in POLICY_COMMANDS])
def test_help_of_every_command_shows_an_example(command: str) -> None:
    done = penstock(command, "--help")
    assert done.exit_code == 0
    assert f"penstock policy {command}" in done.stdout.partition("Examples:")[2]


def test_lint_tells_every_fault_with_file_line_and_field(write: Write) -> None:
    path = write("p.yaml", BAD)
    done = penstock("lint", path)
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert [line.partition(": ")[0] for line in lines[:3]] == [f"{path}:{n}" for n in (4, 2, 3)]
    assert f"{path}:3: queues[0].namespace: there is no such key" in lines
    assert lines[-1] == "1 looked at: 0 good, 1 bad"


def test_lint_looks_into_a_config_map_and_gives_the_lines_of_its_manifest(write: Write) -> None:
    path = write("cm.yaml", CONFIG_MAP)
    done = penstock("lint", path, "-o", "json")
    assert done.exit_code == 1
    faults = cast("list[JsonObject]", read(done)["faults"])
    found = {(each["key"], each["line"], each["field"]) for each in faults}
    assert ("policy.yaml", 12, "queues[0].namespace") in found
    assert ("candidate.yaml", 8, "mode") in found
    assert {each["severity"] for each in faults} == {"fault"}


def test_lint_of_a_config_map_in_json_says_where_the_policy_begins(write: Write) -> None:
    data = {"policy.yaml": BAD}
    manifest = orjson.dumps({"kind": "ConfigMap", "data": data}, option=orjson.OPT_INDENT_2)
    done = penstock("lint", write("cm.json", manifest.decode()))
    assert done.exit_code == 1
    assert "cm.json:4: queues[0].namespace" in done.stdout


def test_lint_takes_a_doubt_for_a_fault_only_if_asked_to(write: Write) -> None:
    path = write("p.yaml", WIDE + "  schedulers: [other]\n")
    done = penstock("lint", path)
    assert done.exit_code == 0
    assert f"{path}:7: doubtful: queues[0].schedulers[0]" in done.stdout
    assert penstock("lint", path, "--strict").exit_code == 1


def test_lint_writes_one_case_of_junit_for_each_policy(write: Write) -> None:
    done = penstock("lint", write("good.yaml", SMALL), write("cm.yaml", CONFIG_MAP), "-o", "junit")
    assert done.exit_code == 1
    root = xml(done)
    assert (root.get("tests"), root.get("failures")) == ("3", "2")
    failure = root.find(".//testcase/failure")
    assert failure is not None
    assert "cm.yaml:12: queues[0]" in (failure.text or "") + str(failure.get("message"))


def test_what_cannot_be_read_ends_with_2_and_one_line(write: Write, tmp_path: Path) -> None:
    good, manifest = write("p.yaml", SMALL), write("set.yaml", A_SET % 1)
    nothing = write("cm.yaml", "kind: ConfigMap\ndata: {policy.yml: ''}\n")
    odd = write("odd.yaml", "a: [\n")
    other = write("other.yaml", "kind: Service\n")
    for arguments in (
        ("lint", str(tmp_path / "none.yaml")),
        ("lint", nothing),
        ("test", write("bad.yaml", BAD), manifest),
        ("test", good, odd),
        ("test", good, other),
        ("test", good, manifest, "--group", "g"),
        ("test", good, manifest, "--at", "noon"),
        ("test", good, manifest, "--at", "2026-01-01T00:00:00"),
        ("test", good, manifest, "--expect", odd),
        ("diff", good, odd, manifest),
    ):
        done = penstock(*arguments)
        assert done.exit_code == 2, (arguments, done.output)
        assert done.stderr.startswith(f"penstock policy {arguments[0]}: ")
        assert len(done.stderr.splitlines()) == 1


def test_test_judges_for_whom_it_is_told(write: Write) -> None:
    policy, manifest = write("p.yaml", SMALL), write("set.yaml", A_SET % 2)
    assert penstock("test", policy, manifest).exit_code == 0
    assert penstock("test", policy, manifest, "--user", "anna").exit_code == 0
    assert penstock("test", policy, manifest, "--user", "b", "--group", "chat").exit_code == 0
    done = penstock("test", policy, manifest, "--user", "berta", "-n", "there")
    assert done.exit_code == 1
    assert done.stdout.startswith("refuse  PodCliqueSet there/llm")
    assert "enforce queue-submitter: " in done.stdout
    assert done.stdout.endswith("1 judged: 1 refused, 0 let in with warnings, 0 let in\n")


def test_test_writes_json_and_junit(write: Write) -> None:
    policy = write("p.yaml", SMALL)
    manifests = write("sets.yaml", f"{A_SET % 3}---\n{(A_SET % 1).replace('llm', 'few')}")
    done = penstock("test", policy, manifests, "-o", "json")
    assert done.exit_code == 1
    refused, let_in = cast("list[JsonObject]", read(done)["results"])
    assert (refused["decision"], refused["rules"]) == ("refuse", ["queue-gangs-are-few"])
    assert (let_in["object"], let_in["decision"]) == ("PodCliqueSet default/few", "allow")
    root = xml(penstock("test", policy, manifests, "-o", "junit"))
    assert [case.find("failure") is not None for case in root.iter("testcase")] == [True, False]


def test_yaml_says_what_json_says(write: Write) -> None:
    old, new, bad = write("old.yaml", WIDE), write("new.yaml", SMALL), write("bad.yaml", BAD)
    manifest = write("set.yaml", A_SET % 3)
    for words in (("lint", bad), ("test", new, manifest), ("diff", old, new, manifest)):
        written = penstock(*words, "-o", "yaml")
        assert written.exit_code == 1
        assert not written.stdout.startswith("{")
        assert yaml.safe_load(written.stdout) == read(penstock(*words, "-o", "json"))


def test_expectations_say_who_and_what_and_are_held_to_it(write: Write) -> None:
    policy, manifest = write("p.yaml", SMALL), write("set.yaml", A_SET % 3)
    done = penstock("test", policy, manifest, "--expect", write("e.yaml", EXPECTED))
    assert done.exit_code == 0, done.output
    wide = write("wide.yaml", WIDE)
    done = penstock("test", wide, manifest, "--expect", write("e.yaml", EXPECTED))
    assert done.exit_code == 1
    assert "FAILED: expected refuse, got allow; expected the rules queue-gangs" in done.stdout
    absent = EXPECTED.replace("llm", "none")
    assert penstock("test", policy, manifest, "--expect", write("e.yaml", absent)).exit_code == 2


def test_a_candidate_is_tried_in_the_policy_s_place_if_asked_for(write: Write) -> None:
    data = {"policy.yaml": WIDE, "candidate.yaml": SMALL}
    path = write("cm.yaml", orjson.dumps({"kind": "ConfigMap", "data": data}).decode())
    manifest = write("set.yaml", A_SET % 3)
    assert penstock("test", path, manifest).exit_code == 0
    assert penstock("test", path, manifest, "--candidate").exit_code == 1
    assert penstock("diff", path, path, manifest).exit_code == 0
    assert penstock("diff", path, path, manifest, "--candidate").exit_code == 1


def test_diff_shows_what_is_judged_otherwise_and_nothing_else(write: Write) -> None:
    old, new = write("old.yaml", WIDE), write("new.yaml", SMALL)
    manifests = write("sets.yaml", f"{A_SET % 3}---\n{(A_SET % 1).replace('llm', 'few')}")
    assert penstock("diff", old, old, manifests).exit_code == 0
    done = penstock("diff", old, new, manifests)
    assert done.exit_code == 1
    assert "allow → refuse  PodCliqueSet default/llm" in done.stdout
    assert "queue-gangs-are-few: none → enforce" in done.stdout
    assert "few  (" not in done.stdout
    written = read(penstock("diff", old, new, manifests, "-o", "json"))
    (changed,) = cast("list[JsonObject]", written["otherwise"])
    assert changed["differences"] == [
        {"rule": "queue-gangs-are-few", "was": "none", "now": "enforce"}
    ]


def test_a_date_in_a_manifest_is_text_and_a_manifest_moves_no_terminal(write: Write) -> None:
    dated = A_SET.replace("{name: llm}", '{name: "l\\e[2Jm", annotations: {on: 2026-01-01}}') % 1
    done = penstock("test", write("p.yaml", SMALL), write("set.yaml", dated))
    assert done.exit_code == 1
    assert "\x1b" not in done.stdout


def test_folders_are_looked_through(write: Write, tmp_path: Path) -> None:
    policy = write("p.txt", SMALL)
    write("set.yaml", A_SET % 1)
    write("list.json", '{"kind": "List", "items": []}')
    assert penstock("test", policy, str(tmp_path)).exit_code == 0
