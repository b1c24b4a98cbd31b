"""`penstock prove`: shows that admission works, and closes its webhooks."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from api import exits
from kube import credentials
from kube.client import Client
from kube.clock import SystemClock
from penstock import proving
from penstock.ending import run_to_end
from penstock.proving import Prover, ServedDoors


def prove(
    *,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Where sets are tried, in dry runs.")
    ] = proving.NAMESPACE,
    wait: Annotated[
        float, typer.Option(help="How many seconds there is time.", min=0, max=3600)
    ] = 240,
    look: Annotated[bool, typer.Option("--look", help="Close nothing.")] = False,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="How to reach the cluster (default: as kubectl does).")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Which context of the kubeconfig.")] = None,
) -> None:
    """Prove that API servers reach the webhooks, and have these fail closed from then on.

    The chart makes them open, so that an installation that does not come up stops nobody. Here a
    valid set and a topology binding are let in, and a set with a cycle is refused in our words: all
    of them dry runs, which store nothing. Then those webhooks are closed that the chart names. It
    may be run at any time and again, and ended at any time.
    """

    async def work() -> bool:
        clock = SystemClock()
        found = credentials.load(kubeconfig, context, clock, os.environ)
        async with Client(found, "prove", clock) as client:
            ask = partial(proving.missing, client, namespace)
            prover = Prover(ask, ServedDoors(client), clock, typer.echo)
            return await (prover.proven(wait) if look else prover.close_when_proven(wait))

    if not run_to_end("prove", work()):
        sys.exit(exits.UNEXPECTED)
