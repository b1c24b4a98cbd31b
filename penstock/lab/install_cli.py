"""`penstock lab install`: Penstock into a lab that runs."""

from pathlib import Path
from typing import Final

import typer

from api import features
from kube import logs, tracing
from penstock.ending import run_to_end
from penstock.lab import cluster
from penstock.lab import install as installing
from penstock.lab.errors import BadFlagError, LabError
from penstock.lab.realnode import installing as inside
from penstock.lab.realnode.installing import Site

INSIDE_SECONDS: Final = 180.0
"""Pods take longer to come up than processes: they are scheduled, and a kubelet starts them."""

FEWEST_INSIDE: Final = 2
"""What the chart's schema asks of `webhook.replicas`."""


def install_command(  # noqa: PLR0913  (each is a flag)
    *,
    name: str,
    webhooks: int,
    workloads: bool,
    companion: bool,
    grove_account: str,
    feature_gates: str,
    log_format: str,
    traces_endpoint: str,
    timeout: float,
    restart: bool,
    verbose: bool,
) -> None:
    """Install Penstock into a running lab, or bring it up to date."""
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
    if options.webhooks < FEWEST_INSIDE:
        raise LabError(
            "the chart runs two webhooks at least: leave --webhooks out, or give it more"
        )
    host = cluster.this_host(cluster.screen())
    folder = host.labs.folder(name)
    site = Site(folder, helm, host.workshop.cache, host.run, host.clock, host.reporter)
    seconds = max(options.timeout, INSIDE_SECONDS)
    await inside.install(site, options.webhooks, options.values(), seconds, typer.echo)


def _check(options: installing.InstallOptions) -> None:
    try:
        features.read(options.feature_gates)
    except ValueError as error:
        raise BadFlagError(f"{features.FLAG}: {error}") from error
    if options.log_format not in logs.FORMATS:
        raise BadFlagError(f"{logs.FLAG}: {options.log_format!r} is neither text nor json")
    try:
        if options.traces_endpoint:
            tracing.endpoint(options.traces_endpoint)
    except ValueError as error:
        raise BadFlagError(f"{tracing.FLAG}: {error}") from error
    if not all(options.grove_account.partition("/")):
        raise BadFlagError(f"--grove-account {options.grove_account!r} is not NAMESPACE/NAME")
