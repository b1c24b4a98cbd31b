"""`penstock prove`: shows that admission works, and closes its webhooks."""

import os
import sys
from functools import partial
from pathlib import Path

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
    namespace: str,
    wait: float,
    look: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Prove that API servers reach the webhooks, and have these fail closed from then on."""

    async def work() -> bool:
        clock = SystemClock()
        found = credentials.load(kubeconfig, context, clock, os.environ)
        async with Client(found, "prove", clock) as client:
            ask = partial(proving.missing, client, namespace)
            prover = Prover(ask, ServedDoors(client), clock, typer.echo)
            return await (prover.proven(wait) if look else prover.close_when_proven(wait))

    if not run_to_end("prove", work()):
        sys.exit(exits.UNEXPECTED)
