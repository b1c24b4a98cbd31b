"""The flags of `penstock lab`.

These are what `--help` needs; what does the work is imported when it is called.
"""

from typing import Annotated

import typer

from penstock.forms import ForTools
from penstock.lab.defaults import GROVE_ACCOUNT, KUBERNETES, NAME, TOPOLOGY
from penstock.lazy import call

Name = Annotated[str, typer.Option(help="Which lab.")]


def up(  # noqa: PLR0913  (each is a flag)
    *,
    name: Annotated[str, typer.Option(help="What to call the lab.")] = NAME,
    nodes: Annotated[int, typer.Option(help="How many pretend nodes.")] = 40,
    gpus: Annotated[int, typer.Option(help="GPUs a node.")] = 8,
    cpu: Annotated[str, typer.Option(help="CPU a node.")] = "96",
    memory: Annotated[str, typer.Option(help="Memory a node.")] = "768Gi",
    pods: Annotated[int, typer.Option(help="Pod slots a node.")] = 110,
    topology: Annotated[
        str, typer.Option(help="Levels, widest first; each count is per domain of the one before.")
    ] = TOPOLOGY,
    kubernetes: Annotated[str, typer.Option(help="Kubernetes version.")] = KUBERNETES,
    scheduler_qps: Annotated[
        int | None, typer.Option(help="Requests a second of kube-scheduler (its own default: 50).")
    ] = None,
    feature_gates: Annotated[
        str, typer.Option(help="NAME=true,... for API server, controllers and scheduler.")
    ] = "",
    runtime_config: Annotated[
        str, typer.Option(help="APIs to serve: GROUP/VERSION=true,... or api/all=true.")
    ] = "",
    audit: Annotated[bool, typer.Option("--audit", help="Record every request.")] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="COMPONENT.FLAG=VALUE", help="A daemon's flag; repeatable."),
    ] = None,
    runtime: Annotated[
        str, typer.Option(help="binary (processes here) or kind (needs Docker).")
    ] = "binary",
    real_node: Annotated[
        bool,
        typer.Option("--real-node", help="A real kubelet and real containers, too (Linux, root)."),
    ] = False,
) -> None:
    """Bring up a lab, or return to the one that runs.

    The first time, its programs are looked for in PENSTOCK_BIN_DIR and KUBEBUILDER_ASSETS,
    downloaded or built; that can take minutes, may be interrupted and goes on where it stopped.
    """
    call("penstock.lab.cli:up", locals())


def down(
    *,
    name: Name = NAME,
    every: Annotated[bool, typer.Option("--all", help="Every lab there is.")] = False,
) -> None:
    """Take a lab down and remove all of it: processes, data, directory. Works on half a lab too."""
    call("penstock.lab.cli:down", locals())


def list_labs(*, output: ForTools = "") -> None:
    """List the labs, how they are, and where their kubeconfigs are."""
    call("penstock.lab.cli:list_labs", locals())


def kubeconfig(
    *,
    name: Name = NAME,
    show: Annotated[bool, typer.Option("--print", help="Print the content instead.")] = False,
) -> None:
    """Print the path of a lab's kubeconfig, or with --print what is in it."""
    call("penstock.lab.cli:kubeconfig", locals())


def logs(
    component: Annotated[str | None, typer.Argument(help="Whose; all if not given.")] = None,
    *,
    name: Name = NAME,
    lines: Annotated[int, typer.Option(min=1, help="How many of the last lines.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as they write.")] = False,
) -> None:
    """Print the last lines that a lab's daemons, or Penstock's components in it, wrote."""
    call("penstock.lab.cli:logs", locals())


def metrics(*, name: Name = NAME, output: ForTools = "") -> None:
    """Print where each component of Penstock in a lab serves its metrics."""
    call("penstock.lab.cli:metrics", locals())


def binaries(
    *,
    kubernetes: Annotated[str, typer.Option(help="Kubernetes version.")] = KUBERNETES,
    real_node: Annotated[
        bool, typer.Option("--real-node", help="Also those of a real node.")
    ] = False,
    output: ForTools = "",
) -> None:
    """Find, download or build every program a lab needs, and print where each is."""
    call("penstock.lab.cli:binaries", locals())


def install_command(  # noqa: PLR0913  (each is a flag)
    *,
    name: Annotated[str, typer.Option(help="Which lab.")] = NAME,
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
    ] = GROVE_ACCOUNT,
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
    call("penstock.lab.install_cli:install_command", locals())


def image_command(
    *,
    name: Annotated[
        str | None, typer.Option(help="A lab with a real node to load the image into.")
    ] = None,
) -> None:
    """Make Penstock's image from this checkout, with no builder and no registry.

    It is made of this machine's Python and of what requirements-traces.txt pins, for real nodes of
    labs. For clusters, build the Containerfile.
    """
    call("penstock.lab.images.cli:image_command", locals())
