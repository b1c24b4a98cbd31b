"""`penstock lab up`, `down`, `list`, `kubeconfig`, `logs` and `binaries`."""

import os
from typing import Annotated

import typer

from penstock.ending import run_to_end
from penstock.lab import cluster, tailing
from penstock.lab.errors import LabError
from penstock.lab.folders import Labs
from penstock.lab.installation import Installation
from penstock.lab.layout import Layout
from penstock.lab.spec import DEFAULT_NAME, DEFAULT_TOPOLOGY, LabSpec, parse_setting
from penstock.lab.state import Lab, read_state
from penstock.lab.tools import KUBERNETES, node_toolset, toolset

Name = Annotated[str, typer.Option(help="Which lab.")]


def up(  # noqa: PLR0913  (each is a flag)
    *,
    name: Annotated[str, typer.Option(help="What to call the lab.")] = DEFAULT_NAME,
    nodes: Annotated[int, typer.Option(help="How many pretend nodes.")] = 40,
    gpus: Annotated[int, typer.Option(help="GPUs a node.")] = 8,
    cpu: Annotated[str, typer.Option(help="CPU a node.")] = "96",
    memory: Annotated[str, typer.Option(help="Memory a node.")] = "768Gi",
    pods: Annotated[int, typer.Option(help="Pod slots a node.")] = 110,
    topology: Annotated[
        str, typer.Option(help="Levels, widest first; each count is per domain of the one before.")
    ] = DEFAULT_TOPOLOGY,
    kubernetes: Annotated[str, typer.Option(help="Kubernetes version.")] = KUBERNETES,
    scheduler_qps: Annotated[
        int | None, typer.Option(help="Requests a second of kube-scheduler (its own default: 50).")
    ] = None,
    feature_gates: Annotated[
        str, typer.Option(help="NAME=true,... for API server, controllers and scheduler.")
    ] = "",
    runtime_config: Annotated[
        str, typer.Option(help="APIs to serve: GROUP/VERSION=true,... or api/all=true.")
    ] = "",
    audit: Annotated[bool, typer.Option("--audit", help="Record every request.")] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="COMPONENT.FLAG=VALUE", help="A daemon's flag; repeatable."),
    ] = None,
    runtime: Annotated[
        str, typer.Option(help="binary (processes here) or kind (needs Docker).")
    ] = "binary",
    real_node: Annotated[
        bool,
        typer.Option("--real-node", help="A real kubelet and real containers, too (Linux, root)."),
    ] = False,
) -> None:
    """Bring up a lab, or return to the one that runs.

    The first time, its programs are looked for in PENSTOCK_BIN_DIR and KUBEBUILDER_ASSETS,
    downloaded or built; that can take minutes, may be interrupted and goes on where it stopped.
    """

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
    name: Name = DEFAULT_NAME,
    every: Annotated[bool, typer.Option("--all", help="Every lab there is.")] = False,
) -> None:
    """Take a lab down and remove all of it: processes, data, directory. Works on half a lab too."""

    async def work() -> None:
        screen = cluster.screen()
        for each in Labs.of(os.environ).names() if every else [name]:
            gone = await cluster.down(each, screen)
            typer.echo(f"Lab {each} is gone." if gone else f"There is no lab {each}.")

    run_to_end("lab down", work())


def list_labs() -> None:
    """List the labs, how they are, and where their kubeconfigs are."""
    rows = [("NAME", "STATE", "NODES", "KUBERNETES", "API SERVER", "KUBECONFIG")]
    labs = Labs.of(os.environ)
    for name in labs.names():
        folder = labs.folder(name)
        try:
            state = read_state(folder)
        except LabError:
            state = None
        if state is None:
            rows.append((name, "unreadable", "-", "-", "-", "-"))
            continue
        port = state.ports.get("kubeApiserverPort")
        rows.append(
            (
                name,
                cluster.describe(state),
                str(state.spec.nodes),
                state.spec.kubernetes,
                f"https://127.0.0.1:{port}" if port else "-",
                str(folder.kubeconfig),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


def kubeconfig(
    *,
    name: Name = DEFAULT_NAME,
    show: Annotated[bool, typer.Option("--print", help="Print the content instead.")] = False,
) -> None:
    """Print the path of a lab's kubeconfig, or with --print what is in it."""

    async def work() -> str:
        lab = cluster.lookup(name)
        return lab.kubeconfig.read_text(encoding="utf-8") if show else f"{lab.kubeconfig}\n"

    typer.echo(run_to_end("lab kubeconfig", work()), nl=False)


def logs(
    component: Annotated[str | None, typer.Argument(help="Whose; all if not given.")] = None,
    *,
    name: Name = DEFAULT_NAME,
    lines: Annotated[int, typer.Option(min=1, help="How many of the last lines.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as they write.")] = False,
) -> None:
    """Print the last lines that a lab's daemons, or Penstock's components in it, wrote."""

    async def work() -> None:
        folder = Labs.of(os.environ).folder(name)
        chosen = tailing.choose(name, folder.logs(), component)
        await tailing.tail(chosen, lines, follow=follow, write=typer.echo)

    run_to_end("lab logs", work())


def metrics(*, name: Name = DEFAULT_NAME) -> None:
    """Print where each component of Penstock in a lab serves its metrics."""

    async def work() -> None:
        there = Installation(Layout.of(Labs.of(os.environ).folder(name).root))
        for component in there.settings.components():
            url = there.metrics(component) if there.running(component) else "does not run"
            typer.echo(f"{component}  {url}")

    run_to_end("lab metrics", work())


def binaries(
    *,
    kubernetes: Annotated[str, typer.Option(help="Kubernetes version.")] = KUBERNETES,
    real_node: Annotated[
        bool, typer.Option("--real-node", help="Also those of a real node.")
    ] = False,
) -> None:
    """Find, download or build every program a lab needs, and print where each is."""

    async def work() -> None:
        host = cluster.this_host(cluster.screen())
        wanted = toolset(kubernetes) + (node_toolset(kubernetes) if real_node else ())
        found = await host.workshop.find(wanted)
        for name in sorted(found):
            typer.echo(f"{name}  {found[name]}")

    run_to_end("lab binaries", work())
