"""Credentials of a ServiceAccount: from inside a pod, or from a kubeconfig around its token.

Read without the `kubernetes` package, which a process that must stay small cannot afford. What that
package is for (client certificates, plugins) a ServiceAccount does not have.
"""

import base64
import binascii
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kube import kubeconfig
from kube.access import Credentials
from kube.clock import Clock
from kube.errors import BadCredentials
from kube.tokens import FileToken, FixedHeader, TokenSource

SERVICE_ACCOUNT_MOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST: Final = "KUBERNETES_SERVICE_HOST"
PORT: Final = "KUBERNETES_SERVICE_PORT"

_CLUSTER_KEYS: Final = frozenset(
    (
        *("server", "certificate-authority", "certificate-authority-data"),
        *("tls-server-name", "proxy-url", "extensions"),
    )
)
_USER_KEYS: Final = frozenset(("token", "tokenFile", "extensions"))


def load(path: Path | None, clock: Clock, environ: Mapping[str, str]) -> Credentials:
    """Return credentials from `path`, else from the pod we run in.

    Raises BadCredentials with one line that names the file and the fault.
    """
    if path is not None:
        return from_kubeconfig(kubeconfig.choose([path], None), clock)
    if not environ.get(HOST):
        raise BadCredentials(
            "this is no pod, so say with --kubeconfig how to reach the cluster, or --no-cluster"
        )
    return in_cluster(SERVICE_ACCOUNT_MOUNT, clock, environ)


def in_cluster(mount: Path, clock: Clock, environ: Mapping[str, str]) -> Credentials:
    """Return the credentials a pod's ServiceAccount has in the folder `mount`."""
    where = f"in-cluster credentials in {mount}"
    host, port = environ.get(HOST), environ.get(PORT)
    if not host or not port:
        raise BadCredentials(f"{where}: {HOST} and {PORT} are not both set")
    tokens = FileToken(mount / "token", clock)
    try:
        tokens.read()
        authority = (mount / "ca.crt").read_text(encoding="ascii")
    except BadCredentials as error:
        raise BadCredentials(f"{where}: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadCredentials(f"{where}: ca.crt cannot be read: {error}") from error
    address = f"[{host}]" if ":" in host else host
    return Credentials(f"https://{address}:{port}", _trusting(authority, where), tokens)


def suffices(choice: kubeconfig.Choice) -> bool:
    """Whether a kubeconfig asks for nothing but a token and a server, which can be read here."""
    keys = choice.cluster.keys() <= _CLUSTER_KEYS and choice.user.keys() <= _USER_KEYS
    return keys and any(_text(choice.user.get(key)) for key in ("token", "tokenFile"))


def from_kubeconfig(choice: kubeconfig.Choice, clock: Clock) -> Credentials:
    """Return the credentials for one chosen cluster and the account whose token is named there."""
    cluster = choice.cluster
    for key in (*(cluster.keys() - _CLUSTER_KEYS), *(choice.user.keys() - _USER_KEYS)):
        raise BadCredentials(
            f"{choice.source}: {key} is not taken here: this process speaks as a ServiceAccount, "
            "by token or tokenFile, to a server with a certificate-authority"
        )
    server = cluster.get("server")
    if not isinstance(server, str) or not server.startswith(("http://", "https://")):
        raise BadCredentials(f"{choice.source}: the cluster's server is no URL: {server!r}")
    secure = server.startswith("https://")
    return Credentials(
        server.rstrip("/"),
        _trusting(_authority(choice), choice.source) if secure else None,
        _tokens(choice, clock),
        _text(cluster.get("tls-server-name")),
        _text(cluster.get("proxy-url")),
    )


def _tokens(choice: kubeconfig.Choice, clock: Clock) -> TokenSource:
    file, text = _text(choice.user.get("tokenFile")), _text(choice.user.get("token"))
    if file:
        tokens = FileToken(Path(file), clock)
        tokens.read()
        return tokens
    if text:
        return FixedHeader(f"Bearer {text}")
    raise BadCredentials(
        f"{choice.source}: user {choice.user_name!r} has neither token nor tokenFile"
    )


def _authority(choice: kubeconfig.Choice) -> str | None:
    """Give the certificates to trust; None for those the system trusts."""
    data = _text(choice.cluster.get("certificate-authority-data"))
    file = _text(choice.cluster.get("certificate-authority"))
    try:
        if data:
            return base64.b64decode(data, validate=True).decode("ascii")
        return Path(file).read_text(encoding="ascii") if file else None
    except (OSError, UnicodeDecodeError, binascii.Error) as error:
        raise BadCredentials(
            f"{choice.source}: the certificate authority cannot be read: {error}"
        ) from error


def _trusting(authority: str | None, source: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=authority)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise BadCredentials(
            f"{source}: the certificate authority cannot be used: {error}"
        ) from error


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
