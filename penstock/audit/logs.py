"""Audit logs out of folders, or of all replicas in a cluster through its API server."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec

from api import names
from kube.client import Client
from kube.errors import NotFound
from kube.resources import CONFIGMAPS
from policies import audit_chain
from policies.audit_chain import Head
from policies.audit_verifying import Segment
from webhook import audit_api, audit_files
from webhook.audit_api import AuditLog, AuditLogs


class BadLogError(Exception):
    """A log cannot be read; the message is one line that names it."""


@dataclass(frozen=True)
class Log:
    """The log of one replica."""

    replica: str
    segments: Sequence[Segment]
    head: Head | None


def read(folders: Sequence[Path]) -> list[Log]:
    """Read the logs in these folders."""
    found: list[Log] = []
    for folder in folders:
        try:
            homes = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
            found += [_log(home) for home in homes if audit_files.names_in(home)]
        except OSError as error:
            raise BadLogError(f"{folder} cannot be read: {error.strerror}") from error
    if not found:
        raise BadLogError(f"there is no audit log in {', '.join(map(str, folders))}")
    return found


def _log(folder: Path) -> Log:
    # First, since a log that is being written may go on after it, and only that.
    try:
        head = audit_chain.read_head((folder / audit_files.HEAD).read_bytes())
    except FileNotFoundError:
        head = None
    segments = []
    for name in audit_files.names_in(folder):
        try:
            segments.append(Segment(name, (folder / name).read_bytes()))
        except FileNotFoundError:
            continue  # made room for another just now
    return Log(folder.name, segments, head)


@dataclass(frozen=True)
class Gathered:
    """The logs of a cluster's replicas, and those replicas that did not answer."""

    logs: Sequence[Log]
    unreachable: Sequence[str]


async def gather(client: Client, beside: Path | None = None) -> Gathered:
    """Read the logs of all replicas through the API server, which asks whether we may.

    Where it serves none, they are read from the folder `beside` it, as labs have one.
    """
    try:
        text = await client.raw_get(audit_api.LOGS)
    except NotFound as error:
        if beside is not None:
            return Gathered(read([beside]), [])
        raise BadLogError(
            f"this cluster serves no {audit_api.GROUP} (the chart's audit.serve); or read files"
            " with --dir"
        ) from error
    listed = msgspec.json.decode(text, type=AuditLogs)
    found = [await _fetched(client, each) for each in listed.items]
    return Gathered([log for log in found if log.segments], listed.unreachable)


async def _fetched(client: Client, log: AuditLog) -> Log:
    replica = log.metadata.name
    segments = []
    for file in log.files:
        path = f"{audit_api.LOGS}/{quote(replica, safe='')}?file={quote(file.name)}"
        try:
            segments.append(Segment(file.name, await client.raw_get(path)))
        except NotFound:
            continue  # made room for another just now
    return Log(replica, segments, audit_chain.read_head(log.head.encode()))


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


async def policy_text(client: Client) -> str:
    """Read the policy that the cluster goes by; nothing where it is the built-in one."""
    try:
        found = await client.get(CONFIGMAPS, _ConfigMap, names.POLICY_CONFIG, names.NAMESPACE)
    except NotFound:
        return ""
    return found.data.get(names.POLICY_KEY, "")
