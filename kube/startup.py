"""Whether a process has what it needs of the API server; if not, one line and an exit code."""

import asyncio
from collections.abc import Sequence

from api import exits
from kube.client import Client
from kube.errors import (
    ApiError,
    BadCredentials,
    Forbidden,
    NotFound,
    ServerFault,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from kube.resources import Resource

_POLL_SECONDS = 0.5
_BUILT_IN = (".k8s.io",)


class StartupFailure(Exception):  # noqa: N818 - the name processes and their users know it by
    """The process cannot start: print `line` on stderr and exit with `exit_code`."""

    def __init__(self, exit_code: int, line: str) -> None:
        super().__init__(line)
        self.exit_code = exit_code
        self.line = line


async def preflight(
    client: Client, kinds: Sequence[Resource], wait: float, namespace: str | None = None
) -> None:
    """Return once the server answers and serves every kind to us; raise StartupFailure if not.

    An absent or failing server is asked again for `wait` seconds. Namespaced kinds are tried in
    `namespace` where one is given, else over all namespaces.
    """
    deadline = client.clock.monotonic() + wait
    for kind in kinds:
        await _probe_until(client, kind, namespace if kind.namespaced else None, deadline)


async def _probe_until(
    client: Client, kind: Resource, namespace: str | None, deadline: float
) -> None:
    while True:
        left = deadline - client.clock.monotonic()
        try:
            # A server that accepts and says nothing must not outlast the wait either.
            async with asyncio.timeout(max(left, _POLL_SECONDS)):
                return await client.probe(kind, namespace)
        except (Unreachable, ServerFault, TooManyRequests, TimeoutError) as error:
            if left <= _POLL_SECONDS:
                raise StartupFailure(exits.NO_API_SERVER, _no_server(client, error)) from error
        except (BadCredentials, Unauthorized, Forbidden) as error:
            raise StartupFailure(exits.BAD_CREDENTIALS, _not_let_in(client, error)) from error
        except NotFound as error:
            raise StartupFailure(exits.MISSING_KIND, _missing(kind)) from error
        except ApiError as error:
            line = f"the API server at {client.server} refuses to list {kind.full_name}: {error}"
            raise StartupFailure(exits.UNEXPECTED, line) from error
        await client.clock.sleep(_POLL_SECONDS)


def _no_server(client: Client, error: Exception) -> str:
    problem = str(error).removeprefix(f"cannot reach {client.server}: ") or "no answer in time"
    return (
        f"no API server at {client.server}: {problem}; "
        "check that it runs and that the address in the kubeconfig is right"
    )


def _not_let_in(client: Client, error: ApiError) -> str:
    match error:
        case Unauthorized():
            return (
                f"the API server at {client.server} does not accept our credentials: {error}; "
                "check the token or certificate in the kubeconfig"
            )
        case Forbidden():
            return f"a right is missing: {error}; install the chart's RBAC for this account"
        case _:
            return str(error)


def _missing(kind: Resource) -> str:
    if not kind.group or kind.group.endswith(_BUILT_IN):
        return f"the API server does not serve {kind.full_name} in version {kind.version}"
    return (
        f"CustomResourceDefinition {kind.full_name} (version {kind.version}) is not installed; "
        "install Penstock's Helm chart, which brings it, and start again"
    )
