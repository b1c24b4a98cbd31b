"""The flags of `penstock demo`, `release` and `prove`.

These are what `--help` needs; what does the work is imported when it is called.
"""

from pathlib import Path
from typing import Annotated

import typer

from penstock.forms import ForTools
from penstock.lazy import call


def demo(
    *,
    name: Annotated[str, typer.Option(help="What to call the lab.")] = "demo",
    nodes: Annotated[int, typer.Option(help="How many pretend nodes it has.")] = 40,
    patience: Annotated[
        float, typer.Option(min=1, help="Seconds to wait until the example runs.")
    ] = 60.0,
) -> None:
    """Start a lab with Penstock, run an example set in it, and show the set as a tree.

    What is there already is used again. The lab goes on running until `penstock lab down`.
    """
    call("penstock.demo:demo", locals())


def release(  # noqa: PLR0913  (each is a flag)
    name: Annotated[str, typer.Argument(help="Only the pods of this set or gang.")] = "",
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="The gated pods of all namespaces.")
    ] = False,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Only pods in this namespace.")
    ] = "",
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it; without this, what would be done is shown.")
    ] = False,
    output: ForTools = "",
    kubeconfig: Annotated[
        Path | None, typer.Option(help="How to reach the cluster (default: as kubectl does).")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Which context of the kubeconfig.")] = None,
) -> None:
    """Let gated pods go at once, without waiting for room for their gangs.

    Takes the gate penstock.dev/gang off, and no other. kube-scheduler then binds each pod by
    itself: gangs may start in part, apart from each other, and out of order. It needs the verb
    lift on schedulinggates.penstock.dev, granted cluster-wide. Running pods are not touched; pods
    that are made later are gated as ever.
    """
    call("penstock.release:release", locals())


def prove(
    *,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Where sets are tried, in dry runs.")
    ] = "default",
    wait: Annotated[
        float, typer.Option(help="How many seconds there is time.", min=0, max=3600)
    ] = 240,
    look: Annotated[bool, typer.Option("--look", help="Close nothing.")] = False,
    output: ForTools = "",
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
    call("penstock.prove:prove", locals())
