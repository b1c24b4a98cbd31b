"""What the waiter is told: whom it waits for, by flags, and whose pod it is in, by files."""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kube import logs
from kube.accounts import HOST, PORT, SERVICE_ACCOUNT_MOUNT

POD_INFO: Final = Path("/var/grove/pod-info")

_PARENT: Final = re.compile(r"(?P<clique>[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?):(?P<minimum>[0-9]{1,9})")


class BadSettingsError(Exception):
    """The waiter cannot know whom to wait for; the message says why."""


@dataclass(frozen=True)
class Parent:
    """A PodClique of which so many pods must have all their containers ready."""

    clique: str
    minimum: int


@dataclass(frozen=True)
class Settings:
    """Whom to wait for, in which gang, and where the account's token and authority are."""

    parents: tuple[Parent, ...]
    namespace: str
    gang: str
    account: Path
    log_format: str = "text"


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Read flags and files; a mistake in the flags ends the process with usage and fault."""
    options = _parser().parse_args(arguments)
    for variable in (HOST, PORT):
        if not environ.get(variable):
            raise BadSettingsError(f"{variable} is not set; a kubelet sets it in every pod")
    parents: list[Parent] = options.podcliques
    info: Path = options.pod_info
    return Settings(
        tuple(dict.fromkeys(parents)),
        _told(info / "namespace"),
        _told(info / "podgangname"),
        options.account,
        options.log_format,
    )


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m controller.waiter",
        description="Waits until the pods that this one must not start before are up.",
        epilog="example: python -m controller.waiter --podcliques=chat-0-prefill:2",
        allow_abbrev=False,
    )
    made.add_argument(
        "--podcliques",
        type=_parent,
        action="append",
        required=True,
        metavar="NAME:COUNT",
        help="a PodClique by its full name, and how many of its pods must be up; may be repeated",
    )
    logs.add(made)
    made.add_argument(
        "--pod-info",
        type=Path,
        default=POD_INFO,
        metavar="DIR",
        help=f"where the files namespace and podgangname are (default: {POD_INFO})",
    )
    made.add_argument(
        "--account",
        type=Path,
        default=SERVICE_ACCOUNT_MOUNT,
        metavar="DIR",
        help=f"where token and ca.crt of the account are (default: {SERVICE_ACCOUNT_MOUNT})",
    )
    return made


def _parent(text: str) -> Parent:
    found = _PARENT.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a PodClique's full name and a count, as chat-0-prefill:2"
        )
    return Parent(found["clique"], int(found["minimum"]))


def _told(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettingsError(f"{file} cannot be read: {error}") from error
    if not text:
        raise BadSettingsError(f"{file} is empty; it must name the pod's gang and namespace")
    return text
