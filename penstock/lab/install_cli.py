"""`penstock lab install`: Penstock into a lab that runs."""

from typing import Annotated

import typer

from penstock.lab import cluster
from penstock.lab import install as installing
from penstock.lab.cli import run_to_end
from penstock.lab.errors import LabError
from penstock.lab.spec import DEFAULT_NAME


def install_command(
    name: Annotated[str, typer.Option(help="Which lab.")] = DEFAULT_NAME,
    webhooks: Annotated[
        int, typer.Option(min=1, max=16, help="How many webhooks to run behind the balancer.")
    ] = 2,
    workloads: Annotated[  # noqa: FBT002  (typer makes a pair of flags of it)
        bool, typer.Option(help="Whether to run the controller that makes pods of sets.")
    ] = True,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds to wait until all of it works.")
    ] = 60.0,
    restart: Annotated[  # noqa: FBT002
        bool, typer.Option("--restart", help="Start every component again, changed or not.")
    ] = False,
    verbose: Annotated[  # noqa: FBT002
        bool, typer.Option("--verbose", help="Show what helm says.")
    ] = False,
) -> None:
    """Install Penstock into a running lab, or bring it up to date.

    Applies the chart and runs webhook, workloads and gangs beside the lab, each with its own token.
    """
    options = installing.InstallOptions(webhooks, workloads, timeout, restart, verbose)

    async def work() -> None:
        lab = cluster.lookup(name)
        helm = lab.binaries.get("helm")
        if helm is None:
            raise LabError(f"lab {name!r} knows no helm: make it anew with `penstock lab up`")
        await installing.install(lab.directory, lab.kubeconfig, helm, options, typer.echo)

    run_to_end("lab install", work())
    typer.echo(f"Penstock is installed in lab {name!r} and works.")
