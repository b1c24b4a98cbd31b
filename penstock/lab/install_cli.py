"""`penstock lab install`: Penstock into a lab that runs."""

from pathlib import Path
from typing import Annotated, Final

import typer

from api import features
from kube import logs, tracing
from penstock.ending import run_to_end
from penstock.lab import cluster
from penstock.lab import install as installing
from penstock.lab.errors import LabError
from penstock.lab.realnode import installing as inside
from penstock.lab.realnode.installing import Site
from penstock.lab.spec import DEFAULT_NAME

INSIDE_SECONDS: Final = 180.0
"""Pods take longer to come up than processes: they are scheduled, and a kubelet starts them."""


def install_command(  # noqa: PLR0913  (each is a flag)
    *,
    name: Annotated[str, typer.Option(help="Which lab.")] = DEFAULT_NAME,
    webhooks: Annotated[
        int, typer.Option(min=1, max=16, help="How many webhooks to run behind the balancer.")
    ] = 2,
    workloads: Annotated[
        bool, typer.Option(help="Whether to run the controller that makes pods of sets.")
    ] = True,
    companion: Annotated[
        bool,
        typer.Option(
            "--companion", help="Leave sets to another controller, whose definitions are there."
        ),
    ] = False,
    grove_account: Annotated[
        str,
        typer.Option(metavar="NAMESPACE/NAME", help="That controller's account."),
    ] = installing.GROVE_ACCOUNT,
    feature_gates: Annotated[
        str, typer.Option(metavar="NAME=BOOL,...", help="What of Penstock is switched off.")
    ] = "",
    log_format: Annotated[str, typer.Option(help="How components log: text or json.")] = "text",
    traces_endpoint: Annotated[
        str, typer.Option(metavar="URL", help="Have components send traces there.")
    ] = "",
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds to wait until all of it works.")
    ] = 60.0,
    restart: Annotated[
        bool, typer.Option("--restart", help="Start every component again, changed or not.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show what helm says.")] = False,
) -> None:
    """Install Penstock into a running lab, or bring it up to date.

    Applies the chart and runs webhook, workloads and gangs beside the lab, each with its own token.
    In a lab with a real node the chart runs them in it, from an image that is made now.
    """
    options = installing.InstallOptions(
        webhooks,
        workloads,
        timeout,
        restart,
        verbose,
        feature_gates=feature_gates,
        companion=companion,
        grove_account=grove_account,
        log_format=log_format,
        traces_endpoint=traces_endpoint,
    )

    async def work() -> None:
        _check(options)
        lab = cluster.lookup(name)
        helm = lab.binaries.get("helm")
        if helm is None:
            raise LabError(f"lab {name!r} knows no helm: make it anew with `penstock lab up`")
        if lab.spec.real_node:
            await _inside(name, helm, options)
        else:
            await installing.install(lab.directory, lab.kubeconfig, helm, options, typer.echo)

    run_to_end("lab install", work())
    typer.echo(f"Penstock is installed in lab {name!r} and works.")


async def _inside(name: str, helm: Path, options: installing.InstallOptions) -> None:
    """Install by the chart's own Deployments, since there is a node that can run them."""
    if options.companion or not options.workloads:
        raise LabError("a lab with a real node is installed into whole, by the chart's Deployments")
    host = cluster.this_host(cluster.screen())
    folder = host.labs.folder(name)
    site = Site(folder, helm, host.workshop.cache, host.run, host.clock, host.reporter)
    seconds = max(options.timeout, INSIDE_SECONDS)
    await inside.install(site, options.webhooks, options.values(), seconds, typer.echo)


def _check(options: installing.InstallOptions) -> None:
    try:
        features.read(options.feature_gates)
    except ValueError as error:
        raise LabError(f"{features.FLAG}: {error}") from error
    if options.log_format not in logs.FORMATS:
        raise LabError(f"{logs.FLAG}: {options.log_format!r} is neither text nor json")
    try:
        if options.traces_endpoint:
            tracing.endpoint(options.traces_endpoint)
    except ValueError as error:
        raise LabError(f"{tracing.FLAG}: {error}") from error
    if not all(options.grove_account.partition("/")):
        raise LabError(f"--grove-account {options.grove_account!r} is not NAMESPACE/NAME")
