"""`penstock audit query`, `explain`, `top` and `verify`."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from api import exits, names
from certs import seals
from certs.seals import Signer
from kube import credentials
from kube.client import Client
from kube.clock import SystemClock
from penstock.audit import logs, reports
from penstock.audit.logs import BadLogError, Gathered, Log
from penstock.ending import run_to_end
from penstock.lab import auditing
from penstock.lab.folders import Labs
from penstock.policy import files
from penstock.policy.files import BadFileError
from policies import audit_reading, audit_verifying, policy_source
from policies.audit_building import timestamp
from policies.audit_reading import Entry, Wanted
from policies.audit_verifying import Trust
from policies.known import NOTHING
from policies.policy import Policy
from policies.policy_source import BadPolicyError

Logs = Sequence[Log]

_AGO: Final = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_KEY: Final = re.compile("[0-9a-f]{64}")


class Output(StrEnum):
    """How results are written."""

    TEXT = "text"
    JSON = "json"


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
    limit: Annotated[int, typer.Option(min=0, help="Only the last so many; 0 for all.")] = 100,
    output: Form = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show records of the audit log, the oldest first: who asked for what, and what was wrong.

    Ends with 0 also where there are none, and with 2 if the log cannot be read.
    """
    with _complaining("query"):
        wanted = Wanted(namespace, user, rule, decision, name, _since(since))
        found = [
            each
            for each in _entries(_logs(folders, kubeconfig, context))
            if wanted.takes(each.record)
        ]
    found = sorted(found, key=lambda each: each.record.ts)[-limit:]
    if output is Output.JSON:
        typer.echo(reports.json({"records": [*map(reports.entry_json, found)]}))
        return
    for each in found:
        typer.echo(reports.entry_text(each))


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
    with _complaining("explain"):
        by = _policy(policy, folders, kubeconfig, context)
        found = [
            each
            for each in _entries(_logs(folders, kubeconfig, context))
            if each.record.audit_id == audit_id
        ]
    if not found:
        typer.echo(f"penstock audit explain: there is no record {audit_id}", err=True)
        sys.exit(exits.UNEXPECTED)
    now = SystemClock().now()
    for each in found:
        anew = audit_reading.explained(each.record, by, NOTHING, now)
        if output is Output.JSON:
            shown = {"record": reports.entry_json(each), "today": reports.anew_json(anew)}
            typer.echo(reports.json(shown))
        else:
            typer.echo(reports.entry_text(each))
            typer.echo(reports.anew_text(anew))


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

    What was too much for records of its own is counted with what it was like.
    """
    with _complaining("top"):
        wanted = Wanted(namespace, user, rule, since=_since(since))
        segments = [
            segment for log in _logs(folders, kubeconfig, context) for segment in log.segments
        ]
        found = audit_reading.top(segments, wanted)
    typer.echo(
        reports.json(reports.top_json(found)) if output is Output.JSON else reports.top_text(found)
    )


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
    with _complaining("verify"):
        trust = Trust(seals.is_signed, _trusted(key, public or []))
        found = [
            (log.replica, audit_verifying.verify(log.segments, log.head, trust))
            for log in _logs(folders, kubeconfig, context)
        ]
    whole = all(report.is_whole for _, report in found)
    if output is Output.JSON:
        each = [reports.report_json(replica, report) for replica, report in found]
        typer.echo(reports.json({"whole": whole, "logs": [*each]}))
    else:
        for replica, report in found:
            typer.echo(reports.report_text(replica, report))
    sys.exit(exits.OK if whole else exits.UNEXPECTED)


def _logs(folders: list[Path] | None, kubeconfig: Path | None, context: str | None) -> Logs:
    if folders:
        return logs.read(folders)

    async def work() -> Gathered:
        clock = SystemClock()
        found = credentials.load(kubeconfig, context, clock, os.environ)
        async with Client(found, "audit", clock) as client:
            beside = auditing.folder_of(client.server, Labs.of(os.environ))
            return await logs.gather(client, beside)

    gathered = run_to_end("audit", work())
    for replica in gathered.unreachable:
        typer.echo(f"penstock audit: {replica} does not answer; its log is missing here", err=True)
    if not gathered.logs:
        raise BadLogError("no replica of the webhook has an audit log")
    return gathered.logs


def _policy(
    path: Path | None, folders: list[Path] | None, kubeconfig: Path | None, context: str | None
) -> Policy:
    if path is not None:
        return files.policy(path).policy
    if folders:
        raise BadLogError("say which policy is today's: --policy FILE")

    async def work() -> str:
        clock = SystemClock()
        found = credentials.load(kubeconfig, context, clock, os.environ)
        async with Client(found, "audit", clock) as client:
            return await logs.policy_text(client)

    text = run_to_end("audit", work())
    return policy_source.read(f"ConfigMap {names.NAMESPACE}/{names.POLICY_CONFIG}", text).policy


def _entries(found: Logs) -> Iterator[Entry]:
    for log in found:
        yield from audit_reading.entries(log.segments)


def _since(text: str) -> str:
    if not text:
        return ""
    ago = _AGO.fullmatch(text)
    if ago:
        span = timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return timestamp(SystemClock().now() - span)
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadLogError(f"--since {text}: write 90m, 2h, 7d or an instant") from error
    if when.tzinfo is None:
        raise BadLogError(f"--since {text}: say which time zone, as in 2027-01-31T00:00:00Z")
    return timestamp(when.astimezone(SystemClock().now().tzinfo))


def _trusted(key: Path | None, public: list[str]) -> frozenset[str]:
    for each in public:
        if not _KEY.fullmatch(each):
            raise BadLogError(f"--public {each}: a key has 64 digits from 0 to f")
    if key is None:
        return frozenset(public)
    try:
        secret = key.read_bytes()
    except OSError as error:
        raise BadLogError(f"--key {key} cannot be read: {error.strerror}") from error
    return frozenset((*public, Signer.of(secret).public))


@contextmanager
def _complaining(command: str) -> Iterator[None]:
    try:
        yield
    except (BadLogError, BadFileError, BadPolicyError) as error:
        typer.echo(f"penstock audit {command}: {error}", err=True)
        sys.exit(exits.BAD_SETTINGS)
