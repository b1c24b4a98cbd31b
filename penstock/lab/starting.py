"""Starting a control plane with kwokctl, and seeing that all of it did start."""

import asyncio
import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from penstock.lab import daemons, kwokctl, processes
from penstock.lab.commands import Command, Finished, Run
from penstock.lab.errors import LabError
from penstock.lab.folders import Folder
from penstock.lab.kwokctl import Plan
from penstock.lab.processes import Record
from penstock.lab.spec import COMPONENTS

WATCH_SECONDS: Final = 0.3
ATTEMPTS: Final = 3

# Without these two nothing else can start, so there is no use in waiting or in trying again.
_FOUNDATION: Final = ("etcd", "kube-apiserver")

_LINKS: Final[Mapping[str, str]] = {
    "etcd": "etcd",
    "kube-apiserver": "kube-apiserver",
    "kube-controller-manager": "kube-controller-manager",
    "kube-scheduler": "kube-scheduler",
    "kwok-controller": "kwok",
}


async def start(plan: Plan, command: Command, run: Run) -> dict[str, Record]:
    """Run kwokctl until the API server answers and return the daemons; raises LabError.

    A controller may give up where the API server is slow to start; it gets further attempts.
    """
    await _watched(plan, command, run)
    if plan.spec.runtime == "kind":
        return {}
    for _ in range(ATTEMPTS):
        running = await asyncio.to_thread(daemons.started, plan.folder)
        if all(component in running for component in COMPONENTS):
            return running
        await _watched(plan, kwokctl.start_command(plan), run)
    running = await asyncio.to_thread(daemons.started, plan.folder)
    missing = [component for component in COMPONENTS if component not in running]
    if missing:
        raise LabError(_ended(plan.folder, missing[0]))
    return running


async def mended(plan: Plan, records: Mapping[str, Record], run: Run) -> dict[str, Record]:
    """Return the daemons again, with those started anew that have ended since.

    An API server that was long in coming back costs controllers their lease, and they end by that
    some seconds after they were seen to run.
    """
    if not daemons.dead(records):
        return dict(records)
    await asyncio.to_thread(prepare_again, plan)
    return await start(plan, kwokctl.start_command(plan), run)


def check(plan: Plan, records: Mapping[str, Record]) -> None:
    """Raise LabError if a daemon has ended meanwhile or runs without a flag that was asked for."""
    for component in daemons.dead(records):
        raise LabError(_ended(plan.folder, component))
    if plan.spec.runtime == "kind":
        return
    for setting in daemons.not_applied(kwokctl.lab_settings(plan), records):
        raise LabError(
            f"--set {setting.component}.{setting.flag}={setting.value} did not reach the command "
            f"line of {setting.component}: {plan.binaries['kwokctl']} dropped it"
        )


def prepare_again(plan: Plan) -> None:
    """Make a cluster that was stopped from outside fit to be started: its pid files and links."""
    daemons.forget_strangers(plan.folder)
    for link, tool in _LINKS.items():
        path = plan.folder.cluster / "bin" / link
        if path.is_symlink() and path.readlink() != plan.binaries[tool]:
            path.unlink()
            path.symlink_to(plan.binaries[tool])


def kubeconfig(plan: Plan) -> str:
    """Return the kubeconfig for the person, who may do everything; it depends on no other file."""
    if plan.spec.runtime == "kind":
        return (plan.folder.kwok_home / "kubeconfig").read_text(encoding="utf-8")
    keys = plan.folder.cluster / "pki"
    name = f"penstock-{plan.spec.name}"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": f"https://127.0.0.1:{plan.ports['kubeApiserverPort']}",
                    "certificate-authority-data": _encoded(keys / "ca.crt"),
                },
            }
        ],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": _encoded(keys / "admin.crt"),
                    "client-key-data": _encoded(keys / "admin.key"),
                },
            }
        ],
    }
    return yaml.safe_dump(document, sort_keys=False)


async def _watched(plan: Plan, command: Command, run: Run) -> None:
    """Run kwokctl, but not longer than the daemons live without which it waits for nothing."""
    task = asyncio.create_task(_run(command, run))
    before: set[str] = set()
    try:
        while not task.done():
            await asyncio.wait((task,), timeout=WATCH_SECONDS)
            now = await asyncio.to_thread(daemons.ended, plan.folder)
            # Twice in a row, since a pid file may be seen before it is written to its end.
            for component in _FOUNDATION:
                if component in now & before:
                    raise LabError(_ended(plan.folder, component))
            before = now
        finished = await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
    if finished.code != 0:
        raise LabError(f"kwokctl failed: {kwokctl.complaint(finished.output)}")


async def _run(command: Command, run: Run) -> Finished:
    return await run(command)


def _ended(folder: Folder, component: str) -> str:
    said = _last_words(folder.cluster / "logs" / f"{component}.log")
    return f"{component} ended right after its start: {said or 'it did not say why'}"


def _last_words(log: Path) -> str:
    """Return the line of a daemon's log that most likely says why it ended."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-200:]
    except FileNotFoundError:
        return ""
    telling = [line for line in lines if line.startswith(("Error:", "error:", "F"))]
    return telling[-1].strip() if telling else processes.last_line(log)


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
