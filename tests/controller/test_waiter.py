"""The init waiter: what it is told, whom it counts, and that it starts quickly."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from api.streams import Pod
from controller.waiter import settings
from controller.waiter.counting import progress, selector
from controller.waiter.settings import BadSettingsError, Parent
from tests.support.clusters import pod

ENVIRON = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def info(tmp_path: Path) -> Path:
    (tmp_path / "namespace").write_text("space\n")
    (tmp_path / "podgangname").write_text("chat-0")
    return tmp_path


def test_it_reads_whom_to_wait_for_and_whose_pod_it_is_in(info: Path) -> None:
    flags = ["--podcliques=chat-0-a:2", "--podcliques", "chat-0-b:1", f"--pod-info={info}"]
    told = settings.parse(flags, ENVIRON)
    assert told.parents == (Parent("chat-0-a", 2), Parent("chat-0-b", 1))
    assert (told.namespace, told.gang) == ("space", "chat-0")


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--podcliques=chat-0-a", "'chat-0-a' is not a PodClique's full name and a count"),
        ("--podcliques=chat-0-a:two", "'chat-0-a:two' is not"),
        ("--podcliques=Chat:1", "'Chat:1' is not"),
        ("--podcliques=a in (b):1", "is not a PodClique's full name"),
        ("--podclique=a:1", "required: --podcliques"),
    ],
)
def test_a_wrong_flag_ends_it_with_code_2_and_the_fault(
    flag: str, said: str, info: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        settings.parse([flag, f"--pod-info={info}"], ENVIRON)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environ", "file", "said"),
    [
        pytest.param({}, "", "KUBERNETES_SERVICE_HOST is not set", id="no pod"),
        pytest.param(ENVIRON, "podgangname", "podgangname cannot be read", id="no file"),
    ],
)
def test_what_a_kubelet_did_not_give_it_is_named(
    environ: Mapping[str, str], file: str, said: str, info: Path
) -> None:
    if file:
        (info / file).unlink()
    with pytest.raises(BadSettingsError, match=said):
        settings.parse(["--podcliques=a:1", f"--pod-info={info}"], environ)


def test_an_empty_file_is_named(info: Path) -> None:
    (info / "namespace").write_text("\n")
    with pytest.raises(BadSettingsError, match="namespace is empty"):
        settings.parse(["--podcliques=a:1", f"--pod-info={info}"], ENVIRON)


def seen(clique: str, *, ready: bool = True, leaving: bool = False) -> Pod:
    status = {"conditions": [{"type": "ContainersReady", "status": str(ready)}]}
    made = pod(f"{clique}-x", metadata={"labels": {"grove.io/podclique": clique}})
    raw = msgspec.to_builtins(made) | {"status": status}
    if leaving:
        raw["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    return msgspec.convert(raw, Pod)


def test_only_pods_of_exactly_that_clique_with_all_containers_ready_count() -> None:
    pods = [
        seen("a"), seen("a", ready=False), seen("a", leaving=True), seen("a-b"), seen("a-b"),
    ]  # fmt: skip
    (of_a, of_b) = progress((Parent("a", 2), Parent("a-b", 2)), pods)
    assert (of_a.up, of_a.done) == (1, False)
    assert (of_b.up, of_b.done) == (2, True)
    assert of_a.sentence == "a has 1 of 2 pods up"


def test_only_pods_that_count_are_asked_for() -> None:
    few = (Parent("b", 1), Parent("a", 1))
    assert selector("g", few) == "grove.io/podgang=g,grove.io/podclique in (a,b)"
    many = tuple(Parent(f"p-{index}", 1) for index in range(200))
    assert selector("g", many) == "grove.io/podgang=g"


def test_it_loads_little() -> None:
    heavy = ("pydantic", "kubernetes", "numpy", "cryptography", "prometheus_client")
    code = (
        "import sys, controller.waiter.__main__\n"
        f"print(*[name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_as_a_process_it_says_in_one_line_what_it_lacks() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "controller.waiter", "--podcliques=a:1"],
        capture_output=True, text=True, check=False, env={},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        "waiter: KUBERNETES_SERVICE_HOST is not set; a kubelet sets it in every pod\n"
    )


async def test_without_a_token_yet_it_says_so_and_tries_again_until_it_is_told_to_stop(
    info: Path,
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "controller.waiter", "--podcliques=a:1",
        f"--pod-info={info}", f"--account={info}",
        stderr=asyncio.subprocess.PIPE, env=ENVIRON,
    )  # fmt: skip
    assert process.stderr is not None
    line = await asyncio.wait_for(process.stderr.readline(), 30)
    assert b"trying again in 5 s: in-cluster credentials" in line
    assert b"token" in line
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 30) == 143
