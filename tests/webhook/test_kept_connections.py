"""How long a connection is kept for an API server that has nothing to ask for a while."""

from pathlib import Path

from kube.clock import SystemClock
from tests.webhook.running import HOST, files_in
from webhook import beginning, server, settings, tls
from webhook.patience import PatientSocket

IDLE = 90  # seconds after which an API server lets a connection go that it does not use


def test_it_is_the_api_server_that_lets_go_of_an_idle_connection(tmp_path: Path) -> None:
    # If both may, a review now and then meets a connection that is being closed.
    files = files_in(tmp_path / "tls")
    files.issue()
    chosen = settings.parse(["--tls-dir", str(files.folder), "--no-cluster"])
    clock = SystemClock()
    listener = server.bind(HOST, 0)
    assert not isinstance(listener, server.CannotListen)
    contexts = tls.Contexts(chosen.tls_dir, PatientSocket, settings.terms(chosen))
    made = server.Server(chosen, listener, contexts, beginning.lay(chosen, clock), clock)
    assert made.cfg.keepalive > IDLE
