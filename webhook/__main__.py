"""Serve admission reviews: `python -m webhook --tls-dir DIR`, see --help."""

import signal
import sys
import threading
from collections.abc import Sequence

from api import exits
from kube import logs
from kube.clock import SystemClock
from kube.exposing import bind
from kube.startup import StartupFailure
from kube.tracing import load
from webhook import beginning, server, settings, tls
from webhook.patience import PatientSocket


def main(arguments: Sequence[str]) -> int:
    """Serve until told to stop; returns the exit code if it comes to that."""
    chosen = settings.parse(arguments)
    server.configure_logging(chosen)
    for number in (signal.SIGTERM, signal.SIGINT):
        # Until there is something to drain, stopping is simple.
        signal.signal(number, lambda _number, _frame: sys.exit(exits.OK))
    listener = server.bind(chosen.host, chosen.port)
    if isinstance(listener, server.CannotListen):
        return _cannot_listen(chosen, listener)
    clock = SystemClock()
    exposed = None
    try:
        if chosen.metrics_address is not None:
            exposed = bind(chosen.metrics_address)
        if chosen.traces_endpoint:
            load()
        foundation = beginning.lay(chosen, clock)
    except StartupFailure as failure:
        return _end(chosen, failure.exit_code, failure.line)
    contexts = tls.Contexts(chosen.tls_dir, PatientSocket, settings.terms(chosen))
    missing = tls.wait(contexts, chosen.tls_dir, chosen.tls_wait, threading.Event().wait)
    if missing is not None:
        line = f"no certificate after {chosen.tls_wait:g} s: {missing.reason}"
        return _end(chosen, exits.NO_CERTIFICATE, line)
    refused = server.listen(listener)
    if refused is not None:
        return _cannot_listen(chosen, refused)
    made = server.Server(chosen, listener, contexts, foundation, clock)
    if exposed is not None:
        made.expose(exposed)
    made.run()
    return exits.OK


def _cannot_listen(chosen: settings.Settings, why: server.CannotListen) -> int:
    return _end(chosen, exits.PORT_TAKEN if why.taken else exits.BAD_SETTINGS, why.reason)


def _end(chosen: settings.Settings, code: int, line: str) -> int:
    logs.last_words(chosen.log_format, "python -m webhook", line)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
