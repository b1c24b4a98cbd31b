"""`penstock audit query`, `explain`, `top` and `verify`."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import typer

from api import exits, names
from api.jsons import JsonObject
from certs import seals
from certs.seals import Signer
from kube import credentials
from kube.client import Client
from kube.clock import SystemClock
from penstock.audit import logs, reports
from penstock.audit.flags import Output
from penstock.audit.logs import BadLogError, Gathered, Log
from penstock.documents import document
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


def query(  # noqa: PLR0913  (each is a flag)
    *,
    folders: list[Path] | None,
    namespace: str,
    user: str,
    rule: str,
    since: str,
    name: str,
    decision: str,
    dry_run: bool | None,
    limit: int,
    output: Output,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Show records of the audit log, the oldest first: who asked for what, and what was wrong."""
    with _complaining("query"):
        wanted = Wanted(namespace, user, rule, decision, name, _since(since), dry_run)
        found = [
            each
            for each in _entries(_logs(folders, kubeconfig, context))
            if wanted.takes(each.record)
        ]
    found = sorted(found, key=lambda each: each.record.ts)[-limit:]
    if output is not Output.TEXT:
        records: JsonObject = {"records": [*map(reports.entry_json, found)]}
        typer.echo(document(records, output), nl=False)
        return
    for each in found:
        typer.echo(reports.entry_text(each))


def explain(
    audit_id: str,
    *,
    folders: list[Path] | None,
    policy: Path | None,
    output: Output,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Show one record, and what a policy makes of what is kept of its object."""
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
    for number, each in enumerate(found):
        anew = audit_reading.explained(each.record, by, NOTHING, now)
        if output is not Output.TEXT:
            shown = {"record": reports.entry_json(each), "today": reports.anew_json(anew)}
            typer.echo(document(shown, output, first=not number), nl=False)
        else:
            typer.echo(reports.entry_text(each))
            typer.echo(reports.anew_text(anew))


def top(  # noqa: PLR0913  (each is a flag)
    *,
    folders: list[Path] | None,
    namespace: str,
    user: str,
    rule: str,
    since: str,
    output: Output,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Count what was noted by decision, rule, namespace and user."""
    with _complaining("top"):
        wanted = Wanted(namespace, user, rule, since=_since(since))
        segments = [
            segment for log in _logs(folders, kubeconfig, context) for segment in log.segments
        ]
        found = audit_reading.top(segments, wanted)
    if output is Output.TEXT:
        typer.echo(reports.top_text(found))
    else:
        typer.echo(document(reports.top_json(found), output), nl=False)


def verify(
    *,
    folders: list[Path] | None,
    key: Path | None,
    public: list[str] | None,
    output: Output,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Tell whether the log is whole: no line changed, taken out, moved, and none cut off."""
    with _complaining("verify"):
        trust = Trust(seals.is_signed, _trusted(key, public or []))
        found = [
            (log.replica, audit_verifying.verify(log.segments, log.head, trust))
            for log in _logs(folders, kubeconfig, context)
        ]
    whole = all(report.is_whole for _, report in found)
    if output is not Output.TEXT:
        each = [reports.report_json(replica, report) for replica, report in found]
        typer.echo(document({"whole": whole, "logs": [*each]}, output), nl=False)
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
