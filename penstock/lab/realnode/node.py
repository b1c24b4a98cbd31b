"""Bringing a lab's real node up beside its control plane, and knowing it again."""

import asyncio
import base64
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from kube.client import Client
from kube.clock import Clock
from kube.errors import ApiError
from kube.resources import NODES
from penstock.lab import processes
from penstock.lab.commands import Command, Run
from penstock.lab.errors import LabError
from penstock.lab.folders import Folder, write_whole
from penstock.lab.images import oci
from penstock.lab.images.busybox import busybox
from penstock.lab.kubeconfigs import write_private
from penstock.lab.nodes import NodeView
from penstock.lab.processes import Record
from penstock.lab.realnode import addresses, cgroups, configuring, planning, signing, wanting
from penstock.lab.realnode.places import SOCKET, Places
from penstock.lab.realnode.signing import Subject
from penstock.lab.supervision import module_command

FURNISHED_SECONDS: Final = 30.0
CLEARED_SECONDS: Final = 10.0
READY_SECONDS: Final = 90.0
POLL_SECONDS: Final = 0.1

HOLDER: Final = "node"
WARDEN: Final = "node-warden"
PLUGINS: Final = ("loopback", "ptp", "host-local")
ENVIRONMENT: Final = {"PATH": wanting.SYSTEM_PATH}

_USERS: Final = {
    "kubelet": Subject(f"system:node:{addresses.NODE_NAME}", "system:nodes"),
    "kube-proxy": Subject("system:kube-proxy"),
}


def records(folder: Folder) -> dict[str, Record]:
    """Return the node's two outer processes as far as they run; all others end with them."""
    places = Places.of(folder.root)
    known = {HOLDER: places.holder, WARDEN: places.warden}
    read = {name: processes.read_record(path) for name, path in known.items()}
    return {
        name: record
        for name, record in read.items()
        if record is not None and processes.running(record)
    }


def whole(folder: Folder) -> bool:
    """Tell whether both of them run."""
    return records(folder).keys() == {HOLDER, WARDEN}


def entering(folder: Folder, *namespaces: str) -> tuple[str, ...]:
    """Return what to put before a command so that it runs in the node's namespaces.

    Empty if there is no node. Namespaces are called as nsenter calls them: net, mount, pid.
    """
    found = records(folder)
    if HOLDER not in found:
        return ()
    target = f"--target={found[HOLDER].pid}"
    return ("nsenter", target, *(f"--{each}" for each in namespaces), "--")


async def open_namespaces(
    folder: Folder, port: int, binaries: Mapping[str, Path], run: Run, clock: Clock
) -> None:
    """Make the namespaces, with containerd in them; raises LabError if that cannot be done."""
    places = Places.of(folder.root)
    for stale in (places.ready, places.holder, places.warden):
        stale.unlink(missing_ok=True)
    await asyncio.to_thread(_furnish, places, binaries)
    snapshotter = await _snapshotter(places, run)
    write_whole(places.containerd, configuring.containerd(places, snapshotter))
    plan = planning.make_plan(places, cgroups.name_of(folder.name), port, binaries)
    write_whole(places.plan, msgspec.json.encode(plan).decode())
    await _start_warden(folder, places, run, clock)
    await _write_busybox(places, run)
    await load_image(folder, places.busybox, run)


async def join(folder: Folder, client: Client, port: int, clock: Clock) -> None:
    """Let kubelet and kube-proxy begin, and return once pods can be put on the node."""
    places = Places.of(folder.root)
    keys = folder.cluster / "pki"
    authority, sibling = ((keys / name).read_bytes() for name in ("ca.crt", "admin.crt"))
    write_whole(
        places.kubelet,
        configuring.kubelet(places, keys / "ca.crt", cgroups.name_of(folder.name)),
    )
    write_whole(places.proxy, configuring.proxy(places))
    for program, subject in _USERS.items():
        own = signing.sign(sibling, (keys / "ca.key").read_bytes(), subject, clock.now())
        text = configuring.kubeconfig(
            program,
            f"https://127.0.0.1:{port}",
            *(base64.b64encode(each).decode() for each in (authority, own.certificate, own.key)),
        )
        write_private(places.kubeconfig(program), text)
    deadline = clock.monotonic() + READY_SECONDS
    while not await _serves(client):
        if clock.monotonic() > deadline:
            last = processes.last_line(places.daemon_log("kubelet"))
            raise LabError(f"node {addresses.NODE_NAME} is not ready; its kubelet says: {last}")
        await clock.sleep(POLL_SECONDS)


async def load_image(folder: Folder, archive: Path, run: Run) -> None:
    """Load an image archive into the node; raises LabError."""
    snapshotter = await _snapshotter(Places.of(folder.root), run)
    loading = ("images", "import", "--snapshotter", snapshotter, str(archive))
    answer = await run(_ctr(folder, *loading))
    if answer.code:
        raise LabError(f"loading {archive} into the node failed: {answer.last_lines(1)}")


async def clear(folder: Folder, clock: Clock) -> None:
    """Remove what the kernel does not by itself when a node has ended; raises LabError."""
    name = cgroups.name_of(folder.name)
    deadline = clock.monotonic() + CLEARED_SECONDS
    while left := cgroups.remove(name):
        if clock.monotonic() > deadline:
            raise LabError(f"control groups {left} cannot be removed: processes are in them")
        await clock.sleep(POLL_SECONDS)


def _furnish(places: Places, binaries: Mapping[str, Path]) -> None:
    """Write what has to be there before the namespaces are."""
    for directory in (places.lib, places.log, places.network, places.kernel):
        directory.mkdir(parents=True, exist_ok=True)
    for setting, value in configuring.KERNEL_SETTINGS.items():
        (places.kernel / setting.replace("/", ".")).write_text(f"{value}\n")
    shutil.rmtree(places.plugins, ignore_errors=True)
    places.plugins.mkdir()
    for plugin in PLUGINS:
        (places.plugins / plugin).symlink_to(binaries[plugin])
    # Addresses that pods had before the node ended last are nobody's by now.
    shutil.rmtree(places.lib / "cni", ignore_errors=True)
    write_whole(places.network / "10-lab.conflist", configuring.network())
    write_whole(places.resolver, "")


async def _write_busybox(places: Places, run: Run) -> None:
    program = wanting.find("busybox")
    if program is None:
        raise LabError("busybox is not installed: apt-get install busybox-static")
    answer = await run(Command([program, "--list"]))
    image = busybox(configuring.PAUSE_IMAGE, Path(program), answer.output.split())
    await asyncio.to_thread(oci.write, [image], places.busybox)


async def _snapshotter(places: Places, run: Run) -> str:
    """Choose how containers get their files: overlays cannot lie on an overlay."""
    answer = await run(Command(["stat", "--file-system", "--format=%T", str(places.lib)]))
    return "native" if answer.output.strip() == "overlayfs" else "overlayfs"


async def _start_warden(folder: Folder, places: Places, run: Run, clock: Clock) -> None:
    command = module_command("penstock.lab.realnode.warden", "--directory", str(folder.root))
    answer = await run(Command([*command, "--detach"], ENVIRONMENT, folder.root))
    if answer.code:
        raise LabError(f"the real node's warden does not start: {answer.last_lines(1)}")
    deadline = clock.monotonic() + FURNISHED_SECONDS
    while not (places.ready.exists() and await _containerd_serves(folder, run)):
        if clock.monotonic() > deadline:
            names = ("containerd", "warden")
            said = filter(None, (processes.last_line(places.daemon_log(name)) for name in names))
            raise LabError(f"the real node does not start: {'; '.join(said) or 'nothing is said'}")
        await clock.sleep(POLL_SECONDS)


async def _containerd_serves(folder: Folder, run: Run) -> bool:
    return (await run(_ctr(folder, "version"))).code == 0


def _ctr(folder: Folder, *arguments: str) -> Command:
    inside = ("ctr", "--address", SOCKET, "--namespace", "k8s.io")
    return Command([*entering(folder, "mount"), *inside, *arguments], ENVIRONMENT)


async def _serves(client: Client) -> bool:
    try:
        node = await client.get(NODES, NodeView, addresses.NODE_NAME)
    except ApiError:
        return False
    return node.serves()
