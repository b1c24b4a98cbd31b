"""Where the API server is and how to prove who we are, from a kubeconfig or from inside a pod."""

from collections.abc import Mapping
from pathlib import Path

from kube import accounts, kubeconfig
from kube.access import Credentials
from kube.clock import Clock


def load(
    path: Path | None, context: str | None, clock: Clock, environ: Mapping[str, str]
) -> Credentials:
    """Return credentials from `path`, else from the pod we run in, else from kubectl's own places.

    Raises BadCredentials with one line that names the file and the fault.
    """
    if path is not None:
        return from_kubeconfig(kubeconfig.choose([path], context), clock)
    if context is None and environ.get(accounts.HOST):
        return accounts.in_cluster(accounts.SERVICE_ACCOUNT_MOUNT, clock, environ)
    return from_kubeconfig(kubeconfig.choose(kubeconfig.default_files(environ), context), clock)


def from_kubeconfig(choice: kubeconfig.Choice, clock: Clock) -> Credentials:
    """Return the credentials for one chosen cluster and user."""
    if accounts.suffices(choice):
        return accounts.from_kubeconfig(choice, clock)
    # Here, since it loads the `kubernetes` package, which takes a third of all it takes to start.
    from kube import persons  # noqa: PLC0415 - see above

    return persons.from_kubeconfig(choice, clock)
