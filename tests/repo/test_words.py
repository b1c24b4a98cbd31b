import re
from pathlib import Path

import pytest

from tests.repo import checkout

# Put together from pieces, so that this file may be looked through like every other.
DOT = r"\."
HOSTS = {
    "the Python package registry": f"(?:py{'pi'}{DOT}org|python{'hosted'}{DOT}org)",
    "a JavaScript package registry": f"(?:npm{'js'}{DOT}|yarn{'pkg'}{DOT})",
    "a Rust package registry": f"crates{DOT}io",
    "a Go module proxy": f"(?:proxy{DOT}golang{DOT}|sum{DOT}golang{DOT}|go{'proxy'}{DOT})",
    "a package mirror": f"(?:arti{'factory'}|jf{'rog'}|sona{'type'}|ana{'conda'}{DOT}org)",
}
FOLDERS = "|".join(["wo" + "rk", "tmp/scr" + "atch", "ro" + "ot", "ho" + "me"])
PATHS = {"a folder of one machine": rf"(?<![\w.-])/(?:{FOLDERS})(?:/|\b)"}
TICKETS = {"the number of an issue": r"\bissues?" + r"\s+#?\d+\b"}
NEEDLES = {
    what: re.compile(pattern, re.IGNORECASE) for what, pattern in (HOSTS | PATHS | TICKETS).items()
}


def found_in(text: str) -> list[str]:
    return [
        f"line {number} names {what}: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), 1)
        for what, needle in NEEDLES.items()
        if needle.search(line)
    ]


@pytest.mark.no_cover
def test_no_file_names_registries_machines_or_tickets() -> None:
    found = [
        f"{checkout.shown(path)} {finding}"
        for path in checkout.files()
        for finding in found_in(path.read_text(errors="replace"))
    ]
    assert found == [], "\n" + "\n".join(found)


def test_this_very_file_is_looked_through() -> None:
    assert Path(__file__) in checkout.files()


@pytest.mark.parametrize(
    "line",
    [
        "index = https://py" + "pi.org/simple",
        "https://files.python" + "hosted.org/packages/x.whl",
        "https://registry.npm" + "js.org/",
        "GOPROXY=https://proxy" + ".golang.org,direct",
        "https://example.com/arti" + "factory/api",
        "cd /wo" + "rk/main",
        "open('/tmp/scr" + "atch/x')",
        "HOME=/ro" + "ot",
        "see issue" + " 3",
        "closes issues" + " #12",
    ],
)
def test_each_kind_of_word_would_be_found(line: str) -> None:
    assert found_in(f"first\n{line}\n")


@pytest.mark.parametrize(
    "line",
    [
        "https://dl.k8s.io/release/v1.37.1",
        "the root of the tree, its/root/of trees",
        "a workqueue in kube/workqueue.py",
        "no issue is too small",
    ],
)
def test_words_that_only_look_alike_are_let_be(line: str) -> None:
    assert found_in(line) == []


@pytest.mark.parametrize(
    "name", ["requirements.txt", "requirements-dev.txt", "requirements-traces.txt"]
)
def test_requirements_are_pinned_by_hash_and_name_no_index(name: str) -> None:
    lines = (checkout.ROOT / name).read_text().splitlines()
    assert [line for line in lines if line.startswith("-")] == [], "no options, no index addresses"
    pinned = [line for line in lines if line and not line[0].isspace() and line[0] != "#"]
    assert pinned
    unpinned = [line for line in pinned if not re.fullmatch(r"[\w.\[\],-]+==\S+ \\", line)]
    assert unpinned == []


def test_no_lock_file_of_a_resolver_is_kept() -> None:
    # It would name the hosts that packages were taken from.
    assert not {path.name for path in checkout.files()} & {"uv.lock", "poetry.lock", "Pipfile.lock"}
