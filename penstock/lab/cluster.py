"""Labs as a whole: bringing one up, finding it again, taking it down."""

import asyncio
import os
import random
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from kube import credentials
from kube.client import Client
from kube.clock import Clock, SystemClock
from penstock.lab import daemons, kwokctl, ports, starting
from penstock.lab.binaries import Binaries, Workshop
from penstock.lab.building import Go
from penstock.lab.commands import Command, Run, run
from penstock.lab.downloading import Downloads, Web
from penstock.lab.errors import LabError
from penstock.lab.folders import Cache, Folder, Labs, write_whole
from penstock.lab.kwokctl import Plan
from penstock.lab.locking import locked
from penstock.lab.nodes import populate
from penstock.lab.processes import Record
from penstock.lab.progress import Reporter, Screen
from penstock.lab.realnode import node, wanting
from penstock.lab.spec import LabSpec, differences
from penstock.lab.state import Lab, LabState, as_lab, read_state, write_state
from penstock.lab.tools import node_toolset, toolset

_PORT_OWNERS: Final[Mapping[str, str]] = {
    "kubeApiserverPort": "kube-apiserver",
    "etcdPort": "etcd",
    "etcdPeerPort": "etcd",
    "kubeControllerManagerPort": "kube-controller-manager",
    "kubeSchedulerPort": "kube-scheduler",
    "kwokControllerPort": "kwok-controller",
}
PORT_SECONDS: Final = 3.0
POLL_SECONDS: Final = 0.1
_KIND_TOOLS: Final = ("kwokctl", "kubectl", "helm")


@dataclass(frozen=True)
class Host:
    """All a lab needs of the machine it runs on."""

    labs: Labs
    workshop: Workshop
    run: Run
    clock: Clock
    reporter: Reporter
    chance: random.Random


def this_host(reporter: Reporter) -> Host:
    """Return this machine, with the folders the environment names."""
    clock = SystemClock()
    workshop = Workshop(
        environ=os.environ,
        cache=Cache.of(os.environ),
        source=Downloads(Web()),
        builder=Go(run),
        run=run,
        clock=clock,
        reporter=reporter,
    )
    chance = random.SystemRandom()
    return Host(Labs.of(os.environ), workshop, run, clock, reporter, chance)


def screen() -> Screen:
    """Return a reporter to standard error, where progress does not mix with results."""
    return Screen(sys.stderr, SystemClock(), live=sys.stderr.isatty())


async def up(spec: LabSpec, reporter: Reporter) -> Lab:
    """Return the lab that `spec` describes: the one that runs, or one brought up now.

    Raises LabError, and leaves nothing running, if that cannot be done.
    """
    return await bring_up(spec, this_host(reporter))


async def down(name: str, reporter: Reporter) -> bool:
    """Remove a lab, whatever state it is in; return False if there was none."""
    return await take_down(name, this_host(reporter))


def lookup(name: str) -> Lab:
    """Return a lab that runs; raises LabError if there is none of this name or it does not run."""
    labs = Labs.of(os.environ)
    folder = labs.folder(name)
    state = read_state(folder)
    if state is None:
        known = ", ".join(labs.names()) or "none"
        raise LabError(
            f"there is no lab {name!r} (there is: {known}); "
            f"make it with `penstock lab up --name {name}`"
        )
    condition = describe(state)
    if condition != "running":
        raise LabError(
            f"lab {name!r} is {condition}; start it again with `penstock lab up` and its settings, "
            f"or remove it with `penstock lab down --name {name}`"
        )
    return as_lab(folder, state)


def describe(state: LabState) -> str:
    """Say in a word or two how a lab is: running, half made, or without some of its daemons."""
    if not state.complete:
        return "half made"
    dead = daemons.dead(state.records)
    return f"stopped ({', '.join(dead)} ended)" if dead else "running"


async def bring_up(spec: LabSpec, host: Host) -> Lab:
    """Do what `up` promises, on a given host."""
    spec.check()
    toolset(spec.kubernetes)
    if spec.real_node and (obstacle := wanting.obstacle(wanting.this_machine())) is not None:
        raise LabError(f"--real-node: {obstacle}")
    folder = host.labs.folder(spec.name)
    lock = host.labs.lock(spec.name)
    async with locked(lock, f"lab up --name {spec.name}", host.reporter.say, host.clock):
        state = read_state(folder)
        if state is not None and state.complete:
            return await _take_up(folder, state, spec, host)
        if folder.root.exists():
            host.reporter.say(f"Removing what an interrupted start left of lab {spec.name}")
            await _clear(folder, state, host)
        try:
            return await _make(folder, spec, host)
        except BaseException:
            lock.unlink(missing_ok=True)
            raise


async def _take_up(folder: Folder, state: LabState, spec: LabSpec, host: Host) -> Lab:
    told = differences(state.spec, spec)
    if told:
        raise LabError(
            f"lab {spec.name!r} exists and is another one: {'; '.join(told)}. "
            f"Choose another --name, or remove it with `penstock lab down --name {spec.name}`"
        )
    dead = daemons.dead(state.records)
    if not dead and spec.runtime == "binary":
        host.reporter.say(f"Lab {spec.name} runs already")
        return as_lab(folder, state)
    host.reporter.say(f"Starting lab {spec.name} again: {', '.join(dead) or 'its nodes'} ended")
    return await _revive(folder, state, host)


async def _make(folder: Folder, spec: LabSpec, host: Host) -> Lab:
    binaries = await _binaries(spec, host)
    state = await _claim(folder, spec, binaries, host)
    plan = Plan(spec, folder, state.ports, binaries)
    try:
        write_whole(folder.kwok_config, kwokctl.render(kwokctl.configuration(plan)))
        write_whole(folder.audit_policy, kwokctl.AUDIT_POLICY)
        write_whole(folder.manager_kubeconfig, kwokctl.manager_kubeconfig(plan))
        plan = await _with_node(plan, host)
        return await _started(plan, state, kwokctl.create_command(plan), host)
    except BaseException:
        await asyncio.shield(_clear(folder, state, host))
        raise


async def _revive(folder: Folder, state: LabState, host: Host) -> Lab:
    binaries = await _binaries(state.spec, host)
    plan = Plan(state.spec, folder, state.ports, binaries)
    if state.spec.real_node and not node.whole(folder):
        # Its network has gone with the node, and what runs in the old one leads nowhere.
        await asyncio.to_thread(daemons.stop, folder, _known(folder, state))
        await node.clear(folder, host.clock)
    await asyncio.to_thread(starting.prepare_again, plan)
    await _check_ports(folder, state, host.clock)
    try:
        plan = await _with_node(plan, host)
        return await _started(plan, state, kwokctl.start_command(plan), host)
    except BaseException:
        await asyncio.shield(asyncio.to_thread(daemons.stop, folder, _known(folder, state)))
        raise


async def _with_node(plan: Plan, host: Host) -> Plan:
    """Return the plan for a control plane in the network of the lab's real node, if it has one."""
    if not plan.spec.real_node:
        return plan
    if not node.whole(plan.folder):
        port = plan.ports["kubeApiserverPort"]
        await node.open_namespaces(plan.folder, port, plan.binaries, host.run, host.clock)
    return replace(plan, enter=node.entering(plan.folder, "net"))


async def _started(plan: Plan, state: LabState, command: Command, host: Host) -> Lab:
    folder = plan.folder
    async with host.reporter.step(f"Starting lab {plan.spec.name}", None):
        records = await starting.start(plan, command, host.run) | node.records(folder)
        write_state(folder, state.with_daemons(records, complete=False))
        write_whole(folder.kubeconfig, starting.kubeconfig(plan))
        folder.kubeconfig.chmod(0o600)
    access = credentials.load(folder.kubeconfig, None, host.clock, {})
    async with Client(access, "lab", host.clock) as client:
        await populate(client, plan.spec, host.clock, host.reporter)
        if plan.spec.real_node:
            async with host.reporter.step("Bringing up the real node", None):
                await node.join(folder, client, plan.ports["kubeApiserverPort"], host.clock)
    records = await starting.mended(plan, records, host.run) | node.records(folder)
    starting.check(plan, records)
    finished = state.with_daemons(records, complete=True)
    finished = finished.model_copy(update={"binaries": dict(plan.binaries)})
    write_state(folder, finished)
    return as_lab(folder, finished)


async def _binaries(spec: LabSpec, host: Host) -> Binaries:
    tools = toolset(spec.kubernetes)
    if spec.runtime == "kind":
        tools = tuple(tool for tool in tools if tool.name in _KIND_TOOLS)
    if spec.real_node:
        tools += node_toolset(spec.kubernetes)
    return await host.workshop.find(tools)


async def _claim(folder: Folder, spec: LabSpec, binaries: Binaries, host: Host) -> LabState:
    """Choose ports and write them down before anybody else chooses."""
    lock = host.labs.ports_lock
    async with locked(lock, "choosing ports", host.reporter.say, host.clock):
        wanted = kwokctl.PORTS if spec.runtime == "binary" else ()
        chosen = ports.choose(len(wanted), _claimed(host.labs), host.chance)
        state = LabState(
            spec=spec,
            complete=False,
            ports=dict(zip(wanted, chosen, strict=True)),
            binaries=binaries,
        )
        write_state(folder, state)
    return state


def _claimed(labs: Labs) -> set[int]:
    taken: set[int] = set()
    for name in labs.names():
        try:
            state = read_state(labs.folder(name))
        except LabError:
            continue  # nobody knows its ports; whether one is free is looked at anyway
        taken |= set(state.ports.values()) if state is not None else set()
    return taken


async def _check_ports(folder: Folder, state: LabState, clock: Clock) -> None:
    alive = {**await asyncio.to_thread(daemons.started, folder), **node.records(folder)}
    owners = _PORT_OWNERS
    if state.spec.real_node:  # the others are ports of its own network
        owners = {"kubeApiserverPort": node.WARDEN}
    deadline = clock.monotonic() + PORT_SECONDS
    for name, port in state.ports.items():
        if name not in owners or owners[name] in alive:
            continue
        # A daemon that has just been killed may hold on to its port for a moment.
        while not ports.is_free(port):
            if clock.monotonic() < deadline:
                await clock.sleep(POLL_SECONDS)
                continue
            raise LabError(
                f"port {port}, which {owners[name]} of lab {folder.name!r} needs, is taken "
                f"by {ports.owner(port)}: end that, or remove the lab with "
                f"`penstock lab down --name {folder.name}`"
            )


async def take_down(name: str, host: Host) -> bool:
    """Do what `down` promises, on a given host."""
    folder = host.labs.folder(name)
    if name not in host.labs.names():
        return False
    lock = host.labs.lock(name)
    async with locked(lock, f"lab down --name {name}", host.reporter.say, host.clock):
        try:
            state = read_state(folder)
        except LabError:
            state = None
        await asyncio.shield(_clear(folder, state, host))
        lock.unlink(missing_ok=True)
    return True


async def _clear(folder: Folder, state: LabState | None, host: Host) -> None:
    """End a lab's processes by every means there is, then remove its directory."""
    await asyncio.to_thread(daemons.stop_penstock, folder)
    await asyncio.to_thread(daemons.forget_strangers, folder)
    if state is not None:
        await _delete_cluster(folder, state, host)
    left = await asyncio.to_thread(daemons.stop, folder, _known(folder, state))
    if left:
        raise LabError(f"processes {left} of lab {folder.name!r} cannot be ended; end them by hand")
    await node.clear(folder, host.clock)
    await asyncio.to_thread(shutil.rmtree, folder.root, ignore_errors=True)


def _known(folder: Folder, state: LabState | None) -> dict[str, Record]:
    remembered = state.records if state is not None else {}
    return {**remembered, **daemons.started(folder), **node.records(folder)}


async def _delete_cluster(folder: Folder, state: LabState, host: Host) -> None:
    enter = node.entering(folder, "net")
    plan = Plan(state.spec, folder, state.ports, state.binaries, enter)
    try:
        finished = await host.run(kwokctl.delete_command(plan))
        trouble = kwokctl.complaint(finished.output) if finished.code else ""
    except (OSError, KeyError) as error:  # the cache may be gone by now
        trouble = f"kwokctl cannot be run: {error}"
    if not trouble:
        return
    if state.spec.runtime == "kind":
        raise LabError(f"removing the kind cluster of lab {folder.name!r} failed: {trouble}")
    host.reporter.say(f"Ending the daemons of lab {folder.name} ourselves: {trouble}")
