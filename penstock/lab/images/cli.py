"""`penstock lab image`."""

import os

import typer

from penstock.ending import run_to_end
from penstock.lab import cluster
from penstock.lab.commands import run
from penstock.lab.errors import LabError
from penstock.lab.folders import Cache, Labs
from penstock.lab.images import penstock
from penstock.lab.images.penstock import Made
from penstock.lab.realnode import node


def image_command(
    *,
    name: str | None,
) -> None:
    """Make Penstock's image from this checkout, with no builder and no registry."""

    async def work() -> Made:
        screen = cluster.screen()
        if name is not None and not cluster.lookup(name).spec.real_node:
            raise LabError(f"lab {name!r} has no real node: make one with `lab up --real-node`")
        made = await penstock.make(penstock.checkout(), Cache.of(os.environ), run, screen)
        if name is not None:
            await node.load_image(Labs.of(os.environ).folder(name), made.archive, run)
        return made

    made = run_to_end("lab image", work())
    typer.echo(f"{made.image}\n{made.waiter}\n  {made.digest}\n  {made.archive}")
