"""The plugin's commands. What answers them is loaded when they run, so that `--help` is quick."""

import importlib
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from penstock import completing
from penstock.plugin.asking import Form, Nodes, Where

Kubeconfig = Annotated[
    str, typer.Option(help="How to reach the cluster (default: as kubectl does).")
]
Context = Annotated[str, typer.Option(help="Which context of the kubeconfig.")]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", help="Which namespace (default: the context's).")
]
Companion = Annotated[
    bool | None,
    typer.Option(
        "--companion/--no-companion",
        help="Whether Grove's operator makes the gangs there (default: as Penstock's chart says).",
        show_default=False,
    ),
]
Output = Annotated[
    Literal["", "wide", "json", "yaml"],
    typer.Option("--output", "-o", metavar="wide|json|yaml", help="More of it, or for tools."),
]
Watch = Annotated[
    bool, typer.Option("--watch", "-w", help="Show it again whenever it has changed.")
]
Interval = Annotated[
    float, typer.Option(min=0.2, help="With --watch: seconds between two looks, at the least.")
]

SYSTEM: Final = "penstock-system"
System = Annotated[str, typer.Option("--penstock-namespace", help="Where the policy is.")]


def status(  # noqa: PLR0913 - each is a flag
    *,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    companion: Companion = None,
    output: Output = "",
    watch: Watch = False,
    interval: Interval = 2.0,
) -> None:
    """Show how the cluster is doing: nodes, devices, sets, and which gangs wait and why.

    Gangs and sets of all namespaces, unless one is named.
    """
    _ask(
        "status", Where(kubeconfig, context, namespace, companion),
        Form("status", output, watch, interval), everywhere=not namespace,
    )  # fmt: skip


def explain(  # noqa: PLR0913 - each is a flag
    gang: Annotated[
        str,
        typer.Argument(
            metavar="GANG|SET",
            help="A gang or a set, as NAME or NAMESPACE/NAME.",
            autocompletion=completing.gangs_and_sets,
        ),
    ],
    *,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    companion: Companion = None,
    output: Output = "",
    watch: Watch = False,
    interval: Interval = 2.0,
) -> None:
    """Tell why a gang waits: by level and domain, the nearest miss, and what would let it in.

    Of one that does not wait it tells where it is. The name of a set that is no gang's stands for
    all gangs of the set.
    """
    _ask(
        "explaining", Where(kubeconfig, context, namespace, companion),
        Form("explain", output, watch, interval), gang=gang,
    )  # fmt: skip


def topology(  # noqa: PLR0913 - each is a flag
    name: Annotated[
        str, typer.Argument(help="Which topology binding; none for the built-in.")
    ] = "",
    *,
    resource: Annotated[
        str, typer.Option(help="Which resource (default: the device there is most of).")
    ] = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    companion: Companion = None,
    output: Output = "",
    watch: Watch = False,
    interval: Interval = 2.0,
) -> None:
    """Draw the network: zones, blocks and racks, and what is free and used on their nodes."""
    _ask(
        "topology", Where(kubeconfig, context, "", companion),
        Form("topology", output, watch, interval), name=name, resource=resource,
    )  # fmt: skip


def tree(  # noqa: PLR0913 - each is a flag
    name: Annotated[
        str,
        typer.Argument(
            help="Which PodCliqueSet, as NAME or NAMESPACE/NAME.", autocompletion=completing.sets
        ),
    ],
    *,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    output: Output = "",
    watch: Watch = False,
    interval: Interval = 2.0,
) -> None:
    """Show a set as a tree: gangs, groups, cliques, pods with nodes and racks, who waits for whom.

    Whoever may read the set's namespace may see it; racks are shown to those who may read nodes.
    """
    _ask(
        "showing_sets", Where(kubeconfig, context, namespace),
        Form("tree", output, watch, interval), name=name,
    )  # fmt: skip


def plan(  # noqa: PLR0913 - each is a flag
    *,
    file: Annotated[
        list[str],
        typer.Option("--file", "-f", help="A manifest, or a folder of them; may be repeated."),
    ],
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    companion: Companion = None,
    system: System = SYSTEM,
    output: Output = "",
) -> None:
    """Tell where a set, a PodGang or labelled pods would go, or why not, before submitting them.

    They are judged and defaulted as admission would, and placed beside what the cluster has now.
    Nothing is written. What is there already is left out. Ends with 0 if every gang would be
    placed, with 2 if there is none, with 11 if one would wait, and with 12 if admission would
    refuse something.
    """
    _ask(
        "planning", Where(kubeconfig, context, namespace, companion, system),
        Form("plan", output), paths=[Path(each) for each in file],
    )  # fmt: skip


def queues(  # noqa: PLR0913 - each is a flag
    name: Annotated[str, typer.Argument(help="Only this queue, with its gangs.")] = "",
    *,
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    companion: Companion = None,
    system: System = SYSTEM,
    output: Output = "",
    watch: Watch = False,
    interval: Interval = 2.0,
) -> None:
    """Show the policy's queues: who may use them, what they allow, who is in them and who waits."""
    _ask(
        "queueing", Where(kubeconfig, context, "", companion, system),
        Form("queues", output, watch, interval), name=name,
    )  # fmt: skip


def reservations(  # noqa: PLR0913 - each is a flag
    *,
    namespace: Namespace = "",
    ledger: Annotated[
        bool, typer.Option("--ledger", help="The ledger's entries for gangs as well.")
    ] = False,
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    companion: Companion = None,
    output: Output = "",
    watch: Watch = False,
    interval: Interval = 2.0,
) -> None:
    """Show the room that people keep: how much, where, for whom, who uses it, and how long.

    Of all namespaces, unless one is named.
    """
    _ask(
        "keeping", Where(kubeconfig, context, namespace, companion),
        Form("reservations", output, watch, interval),
        everywhere=not namespace, ledger=ledger,
    )  # fmt: skip


def drain(
    nodes: Annotated[
        list[str], typer.Argument(help="Which nodes.", autocompletion=completing.nodes)
    ],
    *,
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    companion: Companion = None,
    output: Output = "",
) -> None:
    """Tell whose pods would move where, and who would find no room, if nodes were drained.

    Nothing is changed. Ends with 11 if a gang would starve.
    """
    _ask(
        "supposing", Where(kubeconfig, context, "", companion), Form("what-if drain", output),
        drain=tuple(nodes),
    )  # fmt: skip


def add_nodes(  # noqa: PLR0913 - each is a flag
    count: Annotated[int, typer.Argument(min=1, max=100_000, help="How many.")],
    *,
    like: Annotated[
        str, typer.Option(help="The node that they are like.", autocompletion=completing.nodes)
    ],
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="A label that differs, such as the rack; repeatable."
        ),
    ] = None,
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    companion: Companion = None,
    output: Output = "",
) -> None:
    """Tell which gangs that wait would get in if there were more nodes. Nothing is changed."""
    labels = dict(_pair(each) for each in label or [])
    _ask(
        "supposing", Where(kubeconfig, context, "", companion), Form("what-if add-nodes", output),
        add=Nodes(like, count, labels),
    )  # fmt: skip


def delete(
    gang: Annotated[
        str,
        typer.Argument(
            help="A gang or a set, as NAME or NAMESPACE/NAME.",
            autocompletion=completing.gangs_and_sets,
        ),
    ],
    *,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    companion: Companion = None,
    output: Output = "",
) -> None:
    """Tell which gangs that wait would get in if a gang or a set were gone. Nothing is changed."""
    _ask(
        "supposing", Where(kubeconfig, context, namespace, companion),
        Form("what-if delete", output), delete=gang,
    )  # fmt: skip


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not key or not sign:
        raise typer.BadParameter(f"{text} is no label: write KEY=VALUE")
    return key, value


def _ask(module: str, where: Where, form: Form, **told: object) -> None:
    running = importlib.import_module("penstock.plugin.running")
    running.run(f"penstock.plugin.{module}", where, form, told)
