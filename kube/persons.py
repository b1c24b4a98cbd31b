"""Credentials of a person: whatever a kubeconfig may hold.

Its many ways (inline data, certificates, basic auth, OIDC, exec plugins) are read by the
`kubernetes` package, pinned exactly. Two of its habits are not wanted and replaced here: it reads a
`tokenFile` only once, and it logs an exec plugin's failure and goes on without credentials.
"""

import base64
import ssl
import tempfile
from datetime import datetime
from pathlib import Path

import msgspec
from kubernetes.client import Configuration
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.exec_provider import ExecProvider
from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader

from kube import kubeconfig
from kube.access import Credentials
from kube.clock import Clock
from kube.errors import BadCredentials, cut
from kube.tokens import ExecToken, FileToken, FixedHeader, PluginToken, TokenSource


class _PluginStatus(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


def from_kubeconfig(choice: kubeconfig.Choice, clock: Clock) -> Credentials:
    """Return the credentials for one chosen cluster and user."""
    server = choice.cluster.get("server")
    if not isinstance(server, str) or not server.startswith(("http://", "https://")):
        raise BadCredentials(f"{choice.source}: the cluster's server is no URL: {server!r}")
    user = dict(choice.user)
    tokens = _renewable_token(choice, user, clock)
    # Inline keys pass through files, since that is all ssl can load; the folder goes at once.
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        configuration = _read_with_library(choice, user, folder)
        secure = server.startswith("https://")
        context = _tls(configuration, choice.source) if secure else None
    proxy = choice.cluster.get("proxy-url")
    return Credentials(
        server.rstrip("/"),
        context,
        tokens or FixedHeader(configuration.api_key.get("BearerToken")),
        configuration.tls_server_name,
        proxy if isinstance(proxy, str) else None,
    )


def _renewable_token(
    choice: kubeconfig.Choice, user: dict[str, object], clock: Clock
) -> TokenSource | None:
    """Take out of `user` what is ours to read; a plugin's certificate is put in."""
    exec_config = user.pop("exec", None)
    token_file = user.pop("tokenFile", None)
    if isinstance(token_file, str) and token_file:
        user.pop("token", None)
        tokens = FileToken(Path(token_file), clock)
        tokens.read()
        return tokens
    if not isinstance(user.get("token", ""), str):
        raise BadCredentials(f"{choice.source}: the token of user {choice.user_name!r} is no text")
    if exec_config is None or user.get("token"):
        return None
    status = _run_plugin(choice, exec_config)
    if status.client_certificate_data and status.client_key_data:
        user["client-certificate-data"] = _base64(status.client_certificate_data)
        user["client-key-data"] = _base64(status.client_key_data)
    if status.token is None:
        return None

    def run_again() -> PluginToken:
        again = _run_plugin(choice, exec_config)
        return PluginToken(again.token or "", again.expiration_timestamp)

    return ExecToken(PluginToken(status.token, status.expiration_timestamp), run_again, clock)


def _run_plugin(choice: kubeconfig.Choice, exec_config: object) -> _PluginStatus:
    where = f"{choice.source}: the exec plugin of user {choice.user_name!r}"
    try:
        provider = ExecProvider(  # type: ignore[no-untyped-call]  # published untyped
            ConfigNode("exec", exec_config),  # type: ignore[no-untyped-call]  # published untyped
            str(choice.folder),
            ConfigNode("cluster", choice.cluster),  # type: ignore[no-untyped-call]  # the same
        )
        answer: object = provider.run()  # type: ignore[no-untyped-call]  # published untyped
        status = msgspec.convert(answer, type=_PluginStatus)
    except (ConfigException, OSError, TypeError, KeyError, msgspec.ValidationError) as error:
        raise BadCredentials(f"{where}: {cut(str(error))}") from error
    if not status.token and not (status.client_certificate_data and status.client_key_data):
        raise BadCredentials(f"{where}: it printed neither a token nor a client certificate")
    return status


def _read_with_library(
    choice: kubeconfig.Choice, user: dict[str, object], folder: str
) -> Configuration:
    whole = {
        "current-context": "chosen",
        "contexts": [{"name": "chosen", "context": {"cluster": "chosen", "user": "chosen"}}],
        "clusters": [{"name": "chosen", "cluster": choice.cluster}],
        "users": [{"name": "chosen", "user": user}],
    }
    configuration = Configuration()
    try:
        loader = KubeConfigLoader(  # type: ignore[no-untyped-call]  # published untyped
            whole, temp_file_path=folder
        )
        loader.load_and_set(configuration)  # type: ignore[no-untyped-call]  # published untyped
    except (ConfigException, OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise BadCredentials(f"{choice.source}: {cut(str(error))}") from error
    return configuration


def _tls(configuration: Configuration, source: str) -> ssl.SSLContext:
    ca_file = configuration.ssl_ca_cert
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise BadCredentials(
            f"{source}: the certificate authority cannot be used: {error}"
        ) from error
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        try:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
        except OSError as error:
            raise BadCredentials(
                f"{source}: the client certificate and key cannot be used: {error}"
            ) from error
    return context


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
