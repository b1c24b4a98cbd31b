"""A real kubelet runs real containers beside pretend nodes, and leaves nothing when killed."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.lab import cluster as labs
from penstock.lab import daemons
from penstock.lab.folders import Labs
from penstock.lab.progress import Silence
from penstock.lab.realnode import cgroups, node
from penstock.lab.realnode.addresses import NODE_NAME
from penstock.lab.state import Lab
from tests.support.realpods import busybox, kubectl_of

pytestmark = pytest.mark.node

PATIENCE = 30


def until(condition: Callable[[], bool], what: str) -> None:
    for _ in range(PATIENCE * 10):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail(f"not within {PATIENCE} s: {what}")


def test_a_container_really_runs_and_answers_by_its_kubelet(lab: Lab) -> None:
    kubectl = kubectl_of(lab)
    kubectl.apply(busybox("hello", ["sh", "-c", "echo from inside; exec sleep 1000"]))
    kubectl.run("wait", "--for=condition=Ready", "pod/hello", "--timeout=50s", check=True)
    assert kubectl.run("logs", "hello").stdout == "from inside\n"
    said = kubectl.run("exec", "hello", "--", "grep", "Seccomp:", "/proc/self/status")
    assert said.stdout.split() == ["Seccomp:", "2"]
    assert kubectl.run("exec", "hello", "--", "id", "-u").stdout == "65534\n"
    written = kubectl.run("exec", "hello", "--", "touch", "/here")
    assert "Read-only file system" in written.stderr
    kubectl.run("delete", "pod", "hello", "--timeout=50s", check=True)


def test_pretend_nodes_are_there_and_take_what_does_not_ask_for_the_real_one(lab: Lab) -> None:
    kubectl = kubectl_of(lab)
    nodes = kubectl.run("get", "nodes", "-o", "name", check=True).stdout.split()
    assert f"node/{NODE_NAME}" in nodes
    assert len(nodes) == lab.spec.nodes + 1
    pod = busybox("pretend", ["true"])
    pod["spec"]["nodeSelector"] = {}  # type: ignore[index,call-overload]
    pod["spec"]["tolerations"] = []  # type: ignore[index,call-overload]
    kubectl.apply(pod)
    kubectl.run("wait", "--for=condition=Ready", "pod/pretend", "--timeout=50s", check=True)
    where = kubectl.run("get", "pod", "pretend", "-o", "jsonpath={.spec.nodeName}")
    assert where.stdout.startswith("node-")


def test_the_kubelet_has_only_a_nodes_rights(lab: Lab) -> None:
    own = lab.directory / "node" / "kubelet.kubeconfig"
    asked = ("get nodes/real-0", "get nodes/node-0", "delete clusterroles", "create deployments")
    may = [
        kubectl_of(lab).run("--kubeconfig", str(own), "auth", "can-i", *words.split()).stdout
        for words in asked
    ]
    assert [each.split()[0] for each in may] == ["yes", "no", "no", "no"]


def traces(lab: Lab, namespace: str) -> Iterator[str]:
    """What a node has left: processes in its namespace of mounts, mounts of it, control groups."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            inside = (process / "ns" / "mnt").readlink() == Path(namespace)
            mounted = str(lab.directory / "node") in (process / "mountinfo").read_text()
        except OSError:
            continue
        if inside:
            yield f"process {process.name} is in the node's namespace"
        if mounted:
            yield f"process {process.name} sees a mount of the node"
    for hierarchy in cgroups.hierarchies():
        if (group := hierarchy / cgroups.name_of(lab.name)).exists():
            yield f"{group} is there"


def test_one_kill_ends_all_of_the_node_and_the_lab_can_be_taken_up_again(another: Lab) -> None:
    kubectl = kubectl_of(another)
    kubectl.apply(busybox("lasting", ["sleep", "1000"]))
    kubectl.run("wait", "--for=condition=Ready", "pod/lasting", "--timeout=50s", check=True)
    folder = Labs.of(os.environ).folder(another.name)
    for name in (node.HOLDER, node.WARDEN):
        pid = node.records(folder)[node.HOLDER].pid
        namespace = str(Path(f"/proc/{pid}/ns/mnt").readlink())
        assert list(traces(another, namespace))  # the test would see something if it were there

        os.kill(node.records(folder)[name].pid, signal.SIGKILL)

        until(lambda: not node.records(folder), "both outer processes have ended")
        expected = "cgroup" if name == node.WARDEN else "nothing at all"
        until(
            lambda namespace=namespace, expected=expected: all(  # type: ignore[misc]
                expected in each for each in traces(another, namespace)
            ),
            f"what is left is {expected}",
        )
        assert daemons.belonging(another.directory / "node") == []
        asyncio.run(labs.up(another.spec, Silence()))
        kubectl.run("wait", "--for=condition=Ready", "pod/lasting", "--timeout=50s", check=True)
    asyncio.run(labs.down(another.name, Silence()))
    assert list(traces(another, "none")) == []
    assert not another.directory.exists()
