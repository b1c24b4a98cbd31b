"""The flags of `penstock audit`.

These are what `--help` needs; what does the work is imported when it is called.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from penstock.lazy import call


class Output(StrEnum):
    """How results are written."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


Folders = Annotated[
    list[Path] | None,
    typer.Option(
        "--dir",
        help="A folder with the log of a replica, or with such folders"
        " (default: ask the cluster; of a lab, its own).",
    ),
]
Kubeconfig = Annotated[
    Path | None, typer.Option(help="How to reach the cluster (default: as kubectl does).")
]
Context = Annotated[str | None, typer.Option(help="Which context of the kubeconfig.")]
Form = Annotated[Output, typer.Option("--output", "-o", help="How to write results.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Only of this namespace.")]
Whose = Annotated[str, typer.Option("--user", "-u", help="Only what this user asked for.")]
Rule = Annotated[str, typer.Option(help="Only where this rule was broken.")]
Since = Annotated[
    str, typer.Option(help="Not older than this, such as 90m, 2h or 7d, or 2027-01-31T00:00:00Z.")
]


def query(  # noqa: PLR0913  (each is a flag)
    *,
    folders: Folders = None,
    namespace: Namespace = "",
    user: Whose = "",
    rule: Rule = "",
    since: Since = "",
    name: Annotated[str, typer.Option(help="Only about objects of this name.")] = "",
    decision: Annotated[
        str, typer.Option(help="Only deny, warn, audit, shed, deadline, error or allow.")
    ] = "",
    dry_run: Annotated[
        bool | None,
        typer.Option(
            "--dry-run/--no-dry-run", help="Only dry runs, or none of them.", show_default=False
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Only the last so many; 0 for all.")] = 100,
    output: Form = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show records of the audit log, the oldest first: who asked for what, and what was wrong.

    Ends with 0 also where there are none, and with 2 if the log cannot be read.
    """
    call("penstock.audit.cli:query", locals())


def explain(
    audit_id: Annotated[str, typer.Argument(metavar="ID", help="The record's audit_id.")],
    *,
    folders: Folders = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            help="Today's policy, or its ConfigMap (default, but for --dir: the cluster's)."
        ),
    ] = None,
    output: Form = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show one record, and what a policy makes of what is kept of its object.

    Texts in specs are not kept, so that rules about images and names cannot always be told.
    Ends with 0, with 1 if there is no such record, and with 2 if something cannot be read.
    """
    call("penstock.audit.cli:explain", locals())


def top(  # noqa: PLR0913  (each is a flag)
    *,
    folders: Folders = None,
    namespace: Namespace = "",
    user: Whose = "",
    rule: Rule = "",
    since: Since = "",
    output: Form = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Count what was noted by decision, rule, namespace and user.

    What was too much for records of its own is counted with what it was like. Dry runs are counted
    as such and with nothing else, since nothing of them would have been stored.
    """
    call("penstock.audit.cli:top", locals())


def verify(
    *,
    folders: Folders = None,
    key: Annotated[
        Path | None, typer.Option(help="The file that --audit-key of the webhook names.")
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(help="A public key, in hex, whose signatures count; repeatable."),
    ] = None,
    output: Form = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Tell whether the log is whole: no line changed, taken out, moved, and none cut off its end.

    Without --key or --public, signatures are held against the keys that the log itself names.
    Ends with 0 if all is whole, 1 if anything is not, and 2 if something cannot be read.
    """
    call("penstock.audit.cli:verify", locals())
