"""`penstock prove`: shows that admission works, and closes its webhooks."""

import os
import sys
from functools import partial
from pathlib import Path

import typer

from api.jsons import JsonObject
from kube import credentials
from kube.client import Client
from kube.clock import SystemClock
from penstock import proving
from penstock.documents import document
from penstock.ending import run_to_end
from penstock.proving import Proof, Prover, ServedDoors


def prove(
    *,
    namespace: str,
    wait: float,
    look: bool,
    output: str,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Prove that API servers reach the webhooks, and have these fail closed from then on."""

    # Whoever reads the answer as data reads how it goes on the side.
    say = partial(typer.echo, err=bool(output))

    async def work() -> Proof:
        clock = SystemClock()
        found = credentials.load(kubeconfig, context, clock, os.environ)
        async with Client(found, "prove", clock) as client:
            ask = partial(proving.asked, client, namespace)
            prover = Prover(ask, ServedDoors(client), clock, say)
            return await (prover.proven(wait) if look else prover.close_when_proven(wait))

    found = run_to_end("prove", work())
    if output:
        told: JsonObject = {
            "proven": found.holds, "missing": found.missing, "closed": [*found.closed],
        }  # fmt: skip
        typer.echo(document(told, output), nl=False)
    if not found.holds:
        sys.exit(found.code)
