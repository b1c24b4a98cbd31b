"""Which cluster and which user a kubeconfig means: reading, merging and choosing, without using."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml

from kube.errors import BadCredentials

N = TypeVar("N", bound="_Named")

_CLUSTER_FILES = ("certificate-authority",)
_USER_FILES = ("client-certificate", "client-key", "tokenFile")


class _Named(msgspec.Struct):
    name: str


class _Cluster(_Named):
    cluster: dict[str, object]


class _User(_Named):
    user: dict[str, object] | None = None


class _ContextBody(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str | None = None


class _Context(_Named):
    context: _ContextBody


class _File(msgspec.Struct, rename="kebab"):
    current_context: str | None = None
    clusters: list[_Cluster] | None = None
    users: list[_User] | None = None
    contexts: list[_Context] | None = None


@dataclass(frozen=True)
class Choice:
    """The cluster and user of one context; file names in them are absolute.

    `source` names the files for messages, `folder` is where the user's entry was found.
    `namespace` is the context's, empty where it names none.
    """

    source: str
    folder: Path
    cluster: dict[str, object]
    user: dict[str, object]
    user_name: str
    namespace: str = ""


def default_files(environ: Mapping[str, str]) -> list[Path]:
    """Return the files kubectl would read when it is given none."""
    listed = [Path(part).expanduser() for part in environ.get("KUBECONFIG", "").split(":") if part]
    if len(listed) > 1:
        # Of a list, kubectl forgives the members that do not exist; of a single name it does not.
        return [path for path in listed if path.exists()] or listed[:1]
    return listed or [Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"]


def choose(paths: Sequence[Path], context: str | None) -> Choice:
    """Return what the context (else the files' current one) stands for.

    Of equal names in several files the first counts. Raises BadCredentials with one line that
    names the file and what is wrong in it.
    """
    files = [(path.absolute().parent, _read(path)) for path in paths]
    source = "kubeconfig " + ", ".join(str(path) for path in paths)
    wanted = context or next((f.current_context for _, f in files if f.current_context), None)
    if not wanted:
        raise BadCredentials(f"{source}: it names no current-context; give one with --context")
    contexts = [(folder, entry) for folder, file in files for entry in file.contexts or []]
    clusters = [(folder, entry) for folder, file in files for entry in file.clusters or []]
    users = [(folder, entry) for folder, file in files for entry in file.users or []]
    _, chosen = _named(contexts, wanted, f"{source}: no context")
    cluster_folder, cluster = _named(
        clusters, chosen.context.cluster, f"{source}: context {wanted!r} names the absent cluster"
    )
    user_folder, user = cluster_folder, _User("")
    if chosen.context.user:
        user_folder, user = _named(
            users, chosen.context.user, f"{source}: context {wanted!r} names the absent user"
        )
    return Choice(
        source,
        user_folder,
        _absolute(cluster.cluster, _CLUSTER_FILES, cluster_folder),
        _absolute(user.user or {}, _USER_FILES, user_folder),
        user.name,
        chosen.context.namespace or "",
    )


def _read(path: Path) -> _File:
    try:
        # safe_load can return anything; convert says whether it is a kubeconfig.
        content: object = yaml.safe_load(path.read_text(encoding="utf-8"))
        return msgspec.convert(content, type=_File)
    except FileNotFoundError:
        raise BadCredentials(f"kubeconfig {path}: there is no such file") from None
    except OSError as error:
        raise BadCredentials(f"kubeconfig {path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadCredentials(f"kubeconfig {path}: it is not text") from error
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise BadCredentials(f"kubeconfig {path}: it is not YAML: {problem}") from error
    except msgspec.ValidationError as error:
        raise BadCredentials(f"kubeconfig {path}: it is not a kubeconfig: {error}") from error


def _named(entries: Sequence[tuple[Path, N]], name: str, complaint: str) -> tuple[Path, N]:
    for folder, entry in entries:
        if entry.name == name:
            return folder, entry
    known = ", ".join(repr(entry.name) for _, entry in entries) or "none"
    raise BadCredentials(f"{complaint} {name!r} (it has {known})")


def _absolute(
    entry: Mapping[str, object], file_keys: Sequence[str], folder: Path
) -> dict[str, object]:
    full = dict(entry)
    for key in file_keys:
        value = full.get(key)
        if isinstance(value, str) and value:
            full[key] = str(folder / value)
    return full
