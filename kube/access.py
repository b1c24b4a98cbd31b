"""What it takes to be let in by an API server, however it was found."""

import ssl
from dataclasses import dataclass

from kube.tokens import TokenSource


@dataclass(frozen=True)
class Credentials:
    """An API server's address (no trailing slash) and everything needed to be let in.

    `ssl_context` is None for plain HTTP. `server_name` replaces the host name in the TLS check.
    """

    server: str
    ssl_context: ssl.SSLContext | None
    tokens: TokenSource
    server_name: str | None = None
    proxy: str | None = None
