"""`penstock dashboard`, as people ask for it. Light, so that `--help` is there at once."""

import importlib
from pathlib import Path
from typing import Annotated, Literal

import typer

from penstock.dashboard.choices import Choices
from penstock.plugin.asking import Where
from penstock.plugin.commands import SYSTEM, Companion, Context, Kubeconfig, System


def dashboard(  # noqa: PLR0913 - each is a flag
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to serve (default: a free port).")
    ] = 0,
    bind: Annotated[
        str, typer.Option(help="At which address of this machine; others may then look, too.")
    ] = "127.0.0.1",
    host: Annotated[
        list[str] | None,
        typer.Option(help="A further name that browsers may ask for; repeatable."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    topology: Annotated[
        str, typer.Option(help="Which topology binding (default: the built-in).")
    ] = "",
    resource: Annotated[
        str, typer.Option(help="Which resource (default: the device there is most of).")
    ] = "",
    audit_dir: Annotated[
        Path | None,
        typer.Option(
            help="A folder with the audit log (default: ask the cluster; of a lab, its own)."
        ),
    ] = None,
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    companion: Companion = None,
    system: System = SYSTEM,
    log_format: Annotated[
        Literal["text", "json"], typer.Option(help="How failures are logged, on stderr.")
    ] = "text",
) -> None:
    """Serve a page that shows the cluster live, until interrupted.

    It shows the topology with its GPUs coloured by gang, which gangs wait and why, the queues, the
    way of a gang from submission to bound, and which specs were refused. Nothing can be changed
    there. Whoever can reach the address sees what you may see: it is this machine's own, unless
    --bind says otherwise.
    """
    choices = Choices(port, bind, tuple(host or ()), open_, topology, resource, audit_dir)
    running = importlib.import_module("penstock.dashboard.running")
    running.run(Where(kubeconfig, context, "", companion, system), choices, log_format)
