"""`penstock lab up`, `down`, `list`, `kubeconfig`, `logs` and `binaries`."""

import os

import typer

from api.jsons import Json, JsonObject
from penstock.documents import document
from penstock.ending import run_to_end
from penstock.lab import cluster, tailing
from penstock.lab.errors import LabError
from penstock.lab.folders import Folder, Labs
from penstock.lab.installation import Installation
from penstock.lab.layout import Layout
from penstock.lab.spec import LabSpec, parse_setting
from penstock.lab.state import Lab, read_state
from penstock.lab.tools import node_toolset, toolset


def up(  # noqa: PLR0913  (each is a flag)
    *,
    name: str,
    nodes: int,
    gpus: int,
    cpu: str,
    memory: str,
    pods: int,
    topology: str,
    kubernetes: str,
    scheduler_qps: int | None,
    feature_gates: str,
    runtime_config: str,
    audit: bool,
    settings: list[str] | None,
    runtime: str,
    real_node: bool,
) -> None:
    """Bring up a lab, or return to the one that runs."""

    async def work() -> Lab:
        spec = LabSpec(
            name=name,
            nodes=nodes,
            gpus=gpus,
            cpu=cpu,
            memory=memory,
            pods=pods,
            topology=topology,
            kubernetes=kubernetes,
            scheduler_qps=scheduler_qps,
            feature_gates=feature_gates,
            runtime_config=runtime_config,
            audit=audit,
            settings=tuple(
                sorted(map(parse_setting, settings or []), key=lambda one: one.argument)
            ),
            runtime=runtime,
            real_node=real_node,
        )
        return await cluster.up(spec, cluster.screen())

    lab = run_to_end("lab up", work())
    typer.echo(f"Lab {lab.name} is up: {lab.spec.nodes} nodes, Kubernetes {lab.spec.kubernetes}.")
    typer.echo(f'  export KUBECONFIG="{lab.kubeconfig}"')
    if audit:
        typer.echo(f"  audit log: {Labs.of(os.environ).folder(name).audit_log}")
    typer.echo(f"  penstock lab install --name {lab.name}   # Penstock into it")
    typer.echo(f"  penstock lab down --name {lab.name}      # when done")


def down(
    *,
    name: str,
    every: bool,
) -> None:
    """Take a lab down and remove all of it: processes, data, directory. Works on half a lab too."""

    async def work() -> None:
        screen = cluster.screen()
        for each in Labs.of(os.environ).names() if every else [name]:
            gone = await cluster.down(each, screen)
            typer.echo(f"Lab {each} is gone." if gone else f"There is no lab {each}.")

    run_to_end("lab down", work())


def list_labs(*, output: str) -> None:
    """List the labs, how they are, and where their kubeconfigs are."""
    labs = Labs.of(os.environ)
    found = [_listed(labs.folder(name)) for name in labs.names()]
    if output:
        typer.echo(document({"labs": [*found]}, output), nl=False)
        return
    head = ("NAME", "STATE", "NODES", "KUBERNETES", "API SERVER", "KUBECONFIG")
    shown = (("-" if cell is None else str(cell) for cell in each.values()) for each in found)
    rows = [head, *map(tuple, shown)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


def _listed(folder: Folder) -> JsonObject:
    """Say how a lab is; what cannot be read of it is None."""
    try:
        state = read_state(folder)
    except LabError:
        state = None
    port = state.ports.get("kubeApiserverPort") if state else None
    return {
        "name": folder.name,
        "state": cluster.describe(state) if state else "unreadable",
        "nodes": state.spec.nodes if state else None,
        "kubernetes": state.spec.kubernetes if state else None,
        "apiServer": f"https://127.0.0.1:{port}" if port else None,
        "kubeconfig": str(folder.kubeconfig) if state else None,
    }


def kubeconfig(
    *,
    name: str,
    show: bool,
) -> None:
    """Print the path of a lab's kubeconfig, or with --print what is in it."""

    async def work() -> str:
        lab = cluster.lookup(name)
        return lab.kubeconfig.read_text(encoding="utf-8") if show else f"{lab.kubeconfig}\n"

    typer.echo(run_to_end("lab kubeconfig", work()), nl=False)


def logs(
    component: str | None,
    *,
    name: str,
    lines: int,
    follow: bool,
) -> None:
    """Print the last lines that a lab's daemons, or Penstock's components in it, wrote."""

    async def work() -> None:
        folder = Labs.of(os.environ).folder(name)
        chosen = tailing.choose(name, folder.logs(), component)
        await tailing.tail(chosen, lines, follow=follow, write=typer.echo)

    run_to_end("lab logs", work())


def metrics(
    *,
    name: str,
    output: str,
) -> None:
    """Print where each component of Penstock in a lab serves its metrics."""

    async def work() -> dict[str, str | None]:
        there = Installation(Layout.of(Labs.of(os.environ).folder(name).root))
        return {
            component: there.metrics(component) if there.running(component) else None
            for component in there.settings.components()
        }

    found = run_to_end("lab metrics", work())
    if output:
        components: list[Json] = [{"name": each, "url": url} for each, url in found.items()]
        typer.echo(document({"components": components}, output), nl=False)
        return
    for component, url in found.items():
        typer.echo(f"{component}  {url or 'does not run'}")


def binaries(
    *,
    kubernetes: str,
    real_node: bool,
    output: str,
) -> None:
    """Find, download or build every program a lab needs, and print where each is."""

    async def work() -> dict[str, str]:
        host = cluster.this_host(cluster.screen())
        wanted = toolset(kubernetes) + (node_toolset(kubernetes) if real_node else ())
        found = await host.workshop.find(wanted)
        return {name: str(found[name]) for name in sorted(found)}

    found = run_to_end("lab binaries", work())
    if output:
        programs: list[Json] = [{"name": name, "path": path} for name, path in found.items()]
        typer.echo(document({"programs": programs}, output), nl=False)
        return
    for name, path in found.items():
        typer.echo(f"{name}  {path}")
