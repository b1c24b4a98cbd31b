"""The TLS context of new connections, which follows the certificate files."""

import logging
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOG: Final = logging.getLogger(__name__)

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
# The link that kubelet swaps when a projected volume changes, so that its files change as one.
SWAPPED: Final = "..data"
SAY_EVERY: Final = 10.0
LOOK_EVERY: Final = 0.1

_Mark = tuple[object, ...]


@dataclass(frozen=True)
class Terms:
    """What is asked of clients: a TLS version at least, and whose certificates are looked at."""

    minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    client_authority: Path | None = None


PLAIN: Final = Terms()


@dataclass(frozen=True)
class Missing:
    """There is no pair of files that fits together, and why."""

    reason: str


class Contexts:
    """The context to use now. Safe to ask from many threads."""

    def __init__(self, folder: Path, sockets: type[ssl.SSLSocket], terms: Terms = PLAIN) -> None:
        self._folder = folder
        self._sockets = sockets
        self._terms = terms
        self._lock = threading.Lock()
        self._mark: _Mark = ()
        self._context: ssl.SSLContext | Missing = Missing("not looked yet")
        self._certificate = ""

    def current(self) -> ssl.SSLContext | Missing:
        """Give the context of the files as they are; of the last good ones if these are bad."""
        with self._lock:
            mark = _mark(self._folder, self._terms)
            if mark != self._mark:
                # Marked before it is read: a change while reading is seen at the next call.
                self._mark = mark
                self._take(load(self._folder, self._sockets, self._terms))
            return self._context

    def certificate(self) -> str:
        """Give the certificate that is shown now, in PEM with its chain; empty if there is none."""
        self.current()
        return self._certificate

    def _take(self, found: ssl.SSLContext | Missing) -> None:
        if isinstance(found, ssl.SSLContext):
            self._certificate = _text(self._folder)
            if isinstance(self._context, ssl.SSLContext):
                LOG.info("serving the new certificate in %s", self._folder)
            self._context = found
        elif isinstance(self._context, ssl.SSLContext):
            LOG.warning("keeping the certificate in use: %s", found.reason)
        else:
            self._context = found


def load(
    folder: Path, sockets: type[ssl.SSLSocket], terms: Terms = PLAIN
) -> ssl.SSLContext | Missing:
    """Make a context of the files in `folder`, whose connections are `sockets`."""
    # Resolved once, so that both files are of one generation.
    source = _source(folder)
    for name in (CERTIFICATE, KEY):
        if not (source / name).is_file():
            return Missing(f"{folder / name} is not there")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslsocket_class = sockets
    context.minimum_version = terms.minimum
    # API servers keep connections rather than resume sessions, and a client's certificate is to be
    # looked at for every connection.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    try:
        # An encrypted key must fail; without a password given, it would be asked for on a terminal.
        context.load_cert_chain(source / CERTIFICATE, source / KEY, password=lambda: "")
    except (OSError, ValueError) as error:
        # ssl's errors are OSErrors.
        return Missing(f"{folder / CERTIFICATE} and {KEY} do not fit together: {error}")
    if terms.client_authority is not None:
        # Not required, since probes and Prometheus have none; who may ask for what is seen later.
        context.verify_mode = ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(terms.client_authority)
        except (OSError, ValueError) as error:
            return Missing(f"{terms.client_authority} is no certificate authority: {error}")
    return context


def _source(folder: Path) -> Path:
    return (folder / SWAPPED).resolve() if (folder / SWAPPED).exists() else folder


def _text(folder: Path) -> str:
    try:
        return (_source(folder) / CERTIFICATE).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        # Swapped just now; the next look finds what is there then.
        return ""


def wait(
    contexts: Contexts, folder: Path, seconds: float, pause: Callable[[float], object]
) -> Missing | None:
    """Wait until there is a context; None, or what is missing when the time is over."""
    for step in range(int(seconds / LOOK_EVERY) + 1):
        found = contexts.current()
        if isinstance(found, ssl.SSLContext):
            return None
        if step % int(SAY_EVERY / LOOK_EVERY) == 0:
            LOG.info("waiting for a certificate in %s: %s", folder, found.reason)
        pause(LOOK_EVERY)
    found = contexts.current()
    return found if isinstance(found, Missing) else None


def _mark(folder: Path, terms: Terms) -> _Mark:
    """Give what changes when the files do: where the link points, and the files' own marks."""
    link = folder / SWAPPED
    try:
        target = str(link.readlink())
    except OSError:
        target = ""
    files = [folder / CERTIFICATE, folder / KEY]
    if terms.client_authority is not None:
        files.append(terms.client_authority)
    return (target, *map(_file_mark, files))


def _file_mark(path: Path) -> _Mark:
    try:
        found = path.stat()
    except OSError:
        return ()
    return (found.st_ino, found.st_mtime_ns, found.st_size)
