"""`penstock lab install`: Penstock into a lab that runs."""

import asyncio
import os
import sys
from typing import Annotated

import typer

from api import exits
from penstock.lab import install as installing
from penstock.lab.errors import LabError
from penstock.lab.folders import Labs
from penstock.lab.spec import DEFAULT_NAME
from penstock.lab.state import Lab, as_lab, read_state

EPILOG = (
    "Examples:  penstock lab install  |  penstock lab install --name big --webhooks 3  |  "
    "penstock lab install --no-workloads   (another controller makes the pods)"
)


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
    try:
        lab = running_lab(Labs.of(os.environ), name)
        helm = lab.binaries.get("helm")
        if helm is None:
            message = f"lab {name!r} knows no helm: make it anew with `penstock lab up`"
            raise LabError(message)  # noqa: TRY301  (answered in one place with all others)
        work = installing.install(lab.directory, lab.kubeconfig, helm, options, typer.echo)
        asyncio.run(work)
    except LabError as error:
        typer.echo(f"penstock lab install: {error}", err=True)
        sys.exit(exits.UNEXPECTED)
    except KeyboardInterrupt:
        typer.echo("interrupted: run `penstock lab install` again to go on", err=True)
        sys.exit(130)
    typer.echo(f"Penstock is installed in lab {name!r} and works.")


def running_lab(labs: Labs, name: str) -> Lab:
    """Return a lab by its name; LabError if there is none or it is not whole."""
    folder = labs.folder(name)
    state = read_state(folder)
    if state is None or not state.complete:
        known = ", ".join(labs.names()) or "none"
        raise LabError(
            f"no lab {name!r} runs (there are: {known}): `penstock lab up --name {name}`"
        )
    return as_lab(folder, state)
