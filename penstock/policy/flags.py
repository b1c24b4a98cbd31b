"""The flags of `penstock policy`.

These are what `--help` needs; what does the work is imported when it is called.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from penstock.lazy import call
from penstock.plugin import commands
from penstock.plugin.asking import Form as Shape
from penstock.plugin.asking import Where


class Output(StrEnum):
    """How results are written."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    JUNIT = "junit"


class Pair(StrEnum):
    """How differences are written."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


Policies = Annotated[
    list[Path], typer.Argument(help="Policies, or the manifest of the ConfigMap with them.")
]
Manifests = Annotated[
    list[Path], typer.Argument(help="Manifests, or folders of them; lists are taken apart.")
]
Form = Annotated[Output, typer.Option("--output", "-o", help="How to write results.")]
As = Annotated[str, typer.Option(help="Who applies them; left out, nobody is asked who they are.")]
Groups = Annotated[
    list[str] | None, typer.Option("--group", help="A group of that user; repeatable.")
]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", help="Where to, whatever the manifests say.")
]
Candidate = Annotated[
    bool, typer.Option("--candidate", help="Of a ConfigMap, take candidate.yaml.")
]
At = Annotated[
    str, typer.Option(help="When, as exemptions have it: 2027-01-31T00:00:00Z (default: now).")
]


def lint(
    paths: Policies,
    *,
    output: Form = Output.TEXT,
    strict: Annotated[
        bool, typer.Option("--strict", help="Let what is doubtful count as a fault.")
    ] = False,
) -> None:
    """Find all that is wrong with policies, with file, line and field.

    What is only doubtful, such as a rule for a queue that there is not, is told too. Ends with 0 if
    all can be gone by, 1 if not, 2 if a file cannot be read.
    """
    call("penstock.policy.cli:lint", locals())


def try_out(  # noqa: PLR0913  (each is a flag)
    policy: Annotated[Path, typer.Argument(help="The policy, or its ConfigMap's manifest.")],
    manifests: Manifests,
    *,
    user: As = "",
    group: Groups = None,
    namespace: Namespace = "",
    candidate: Candidate = False,
    expect: Annotated[
        Path | None, typer.Option(help="A file that says what is to become of what.")
    ] = None,
    at: At = "",
    output: Form = Output.TEXT,
) -> None:
    """Judge manifests as the webhook would if they were applied now.

    Sets, pods of plain gangs, workloads that make such pods, and topology bindings are judged; the
    bindings among the files are the only ones that are known. What depends on the cluster's size is
    left out. Ends with 0 if all is let in, or is as expected; 1 if not; 2 if there is nothing to
    judge, or a file cannot be read.
    """
    call("penstock.policy.cli:try_out", locals())


def diff(  # noqa: PLR0913  (each is a flag)
    old: Annotated[Path, typer.Argument(help="A policy; /dev/null for the built-in one.")],
    new: Annotated[Path, typer.Argument(help="Another one.")],
    manifests: Manifests,
    *,
    user: As = "",
    group: Groups = None,
    namespace: Namespace = "",
    candidate: Annotated[
        bool,
        typer.Option("--candidate", help="Of the second ConfigMap, take candidate.yaml."),
    ] = False,
    at: At = "",
    output: Annotated[Pair, typer.Option("--output", "-o", help="How to write.")] = Pair.TEXT,
) -> None:
    """Show which manifests two policies judge otherwise.

    Ends with 0 if none, 1 if there are some, 2 if there is nothing to judge, or a file cannot be
    read.
    """
    call("penstock.policy.cli:diff", locals())


def status(
    *,
    kubeconfig: commands.Kubeconfig = "",
    context: commands.Context = "",
    system: commands.System = commands.SYSTEM,
    output: commands.Output = "",
    watch: commands.Watch = False,
    interval: commands.Interval = 2.0,
) -> None:
    """Tell whether the cluster's policy is in force, since when, and what is wrong with it if not.

    Told too are what is tried beside it, and what of all that is there breaks it. Ends with 0 if
    what is written is in force, or nothing is written; with 11 if it is new and not in force yet,
    and with 12 if it cannot be gone by.
    """
    where, form = Where(kubeconfig, context), Shape("policy status", output, watch, interval)
    told = {"name": "penstock.policy.in_force", "where": where, "form": form}
    call("penstock.plugin.running:run", {**told, "told": {"system": system}})
