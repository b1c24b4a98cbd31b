"""The Containerfile and the image that labs make say the same, where they can be compared."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field

import pytest
import yaml

from api.jsons import JsonObject
from penstock.lab.errors import LabError
from penstock.lab.images import bill, layout
from penstock.lab.images import penstock as images
from tests.repo import checkout

TEXT = (checkout.ROOT / "Containerfile").read_text()
LOCK = (checkout.ROOT / layout.LOCK).read_text()
IGNORED = (checkout.ROOT / ".containerignore").read_text().split("\n")


@dataclass
class Stage:
    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, kind: str) -> list[str]:
        return [text for word, text in self.instructions if word == kind]

    def last(self, kind: str) -> str:
        return self.all(kind)[-1]


def stages(text: str) -> dict[str, Stage]:
    found: dict[str, Stage] = {}
    name = ""
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            found[name] = Stage(base)
        elif name and word.isupper():
            found[name].instructions.append((word, rest))
    return found


STAGES = stages(TEXT)
RUN = STAGES["run"]


def test_every_base_is_one_that_a_digest_names() -> None:
    argument = re.search(r"^ARG PYTHON=(\S+)$", TEXT, re.M)
    assert argument is not None
    assert re.fullmatch(r"[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}", argument[1])
    bases = {stage.base for stage in STAGES.values()} - STAGES.keys()
    assert bases == {"${PYTHON}"}


def test_it_is_run_by_the_same_user_from_the_same_place() -> None:
    assert RUN.last("USER") == layout.USER
    assert all(part.isdigit() and part != "0" for part in layout.USER.split(":"))
    environ = dict(word.split("=", 1) for word in RUN.last("ENV").split())
    assert environ == dict(layout.ENVIRON)
    labels = dict(word.split("=", 1) for word in RUN.last("LABEL").split())
    assert labels == dict(layout.LABELS)


def test_both_images_begin_with_the_same() -> None:
    tag = "1"
    ours, waiter = images.compose(tag, [])
    assert json.loads(STAGES["penstock"].last("ENTRYPOINT")) == list(ours.entrypoint)
    assert json.loads(STAGES["penstock"].last("CMD")) == list(ours.command)
    assert json.loads(STAGES["waiter"].last("ENTRYPOINT")) == list(waiter.entrypoint)
    assert {STAGES[name].base for name in ("penstock", "waiter")} == {"run"}
    assert list(STAGES)[-1] == "penstock"  # which is built where no target is named


def test_the_same_packages_lie_in_the_same_places() -> None:
    at = layout.site_packages("3.11")
    copied = [text.split() for text in STAGES["build"].all("COPY")]
    assert {(source, to) for source, to in copied if source != layout.LOCK} == {
        (package, f"{at}/{package}") for package in layout.COPIED
    }
    assert set(layout.COPIED) == set(checkout.PACKAGES)


def test_the_python_is_the_one_that_the_lock_is_for() -> None:
    makefile = (checkout.ROOT / "Makefile").read_text()
    assert set(re.findall(r"--python-version (\S+)", makefile)) == {"3.11"}
    assert set(re.findall(r"python(3\.\d+)", TEXT)) | set(re.findall(r"python:(\S+?)-", TEXT)) == {
        "3.11"
    }


def test_only_what_the_lock_names_by_its_hash_is_installed() -> None:
    (install,) = [text for text in STAGES["build"].all("RUN") if '"install"' in text]
    words = json.loads(install)
    assert {"--require-hashes", "--only-binary=:all:", "--no-compile"} <= set(words)
    assert words[-1] == "/tmp/requirements.txt"  # noqa: S108  (of the image)


def test_what_the_charts_values_may_ask_for_is_in_it() -> None:
    assert f"{layout.LOCK} /tmp/requirements.txt" in STAGES["build"].all("COPY")
    pinned = {line.partition("==")[0] for line in LOCK.splitlines() if "==" in line}
    assert {"opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"} <= pinned


def test_what_is_in_it_is_what_is_tested() -> None:
    def pins(text: str) -> set[str]:
        return set(re.findall(r"^[\w.\[\],-]+==\S+", text, re.M))

    tested = pins((checkout.ROOT / "requirements-dev.txt").read_text())
    assert pins(LOCK) - tested == set()
    assert pins((checkout.ROOT / "requirements.txt").read_text()) - pins(LOCK) == set()


def test_what_is_run_needs_no_shell_and_is_taken_from_the_checkout_only() -> None:
    for stage in STAGES.values():
        assert all(text.startswith("[") for text in stage.all("RUN"))
        assert not stage.all("ADD")


def test_only_what_is_copied_is_sent_to_the_builder() -> None:
    kept = {line[1:] for line in IGNORED if line.startswith("!")}
    assert "*" in IGNORED
    assert kept == {*layout.COPIED, layout.LOCK}
    assert (checkout.ROOT / ".dockerignore").resolve().name == ".containerignore"


def test_the_charts_pods_run_as_the_images_user_by_what_the_image_has() -> None:
    pods = (checkout.ROOT / "charts/penstock/templates/_pods.tpl").read_text()
    user, _, group = layout.USER.partition(":")
    assert f"runAsUser: {user}" in pods
    assert f"runAsGroup: {group}" in pods
    for part in ("webhook", "workloads", "gangs"):
        deployment = checkout.ROOT / f"charts/penstock/templates/{part}-deployment.yaml"
        (command,) = re.findall(r"^ +command: (.+)$", deployment.read_text(), re.M)
        program, flag, module = yaml.safe_load(command)
        assert (program, flag) == ("python", "-m")
        assert module.partition(".")[0] in layout.COPIED


def made(lock: str = LOCK) -> JsonObject:
    return bill.bill(lock, TEXT, "1.2.3", lambda name: "MIT" if name == "aiohttp" else None)


def test_the_bill_names_the_base_and_every_package_of_the_lock_with_its_hashes() -> None:
    components = made()["components"]
    assert isinstance(components, list)
    by_name = {each["name"]: each for each in components if isinstance(each, dict)}
    pinned = dict(re.findall(r"^(\S+)==(\S+)", LOCK, re.M))
    assert {name: each["version"] for name, each in by_name.items() if "purl" in each} == pinned
    hashes = [each["hashes"] for each in by_name.values()]
    assert sum(len(each) for each in hashes if isinstance(each, list)) == LOCK.count("sha256:") + 1
    base = by_name["docker.io/library/python"]
    assert f"@sha256:{base['hashes'][0]['content']}" in TEXT  # type: ignore[index,call-overload]
    assert by_name["aiohttp"]["licenses"] == [{"license": {"name": "MIT"}}]


def test_equal_locks_give_equal_bills_and_others_another_number() -> None:
    assert made() == made()
    other = made(LOCK.replace("aiohttp==", "aiohttp-x=="))
    assert other["serialNumber"] != made()["serialNumber"]


def test_a_package_without_a_hash_is_refused() -> None:
    with pytest.raises(LabError, match=r"thing 1\.0 has no hash"):
        bill.read_lock("thing==1.0\n    # via nobody\n")


def test_the_bill_is_written_by_one_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock.lab.images.bill"],
        cwd=checkout.ROOT, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert json.loads(done.stdout)["bomFormat"] == "CycloneDX"
