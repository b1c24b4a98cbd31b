"""TLS sockets that do not wait for a stalled client for ever."""

import errno
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from typing_extensions import override

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

SILENCE: Final = 5.0
"""Seconds a client may say nothing in the middle of a request."""

WHOLE: Final = 10.0
"""Seconds a whole request may take to arrive, so that a trickle of bytes ends as well."""


class PatientSocket(ssl.SSLSocket):
    """A server's end of a TLS connection, with a limit on how long a request may take to arrive.

    The limit shows as a lost connection: the server gives the client up, and what reads from the
    socket deals with clients that leave anyway.
    """

    arrived: float = 0.0
    """When the first bytes of the request that is being read were there."""

    stranger: bool = False
    """Whether a client certificate is asked for and this client has shown none that will do."""

    _clock: Callable[[], float] | None = None
    _until: float = 0.0
    _held: bytes | None = None

    def expect_request(self, clock: Callable[[], float]) -> None:
        """Start the limit for the request that is arriving now."""
        self._clock = clock
        self._until = clock() + WHOLE

    def expect_nothing(self) -> None:
        """Leave time-outs to the caller, who is about to close."""
        self._clock = None

    @override
    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Read what has arrived, or lose the connection when patience is over."""
        if self._clock is not None:
            left = self._until - self._clock()
            if left <= 0:
                raise _given_up()
            self.settimeout(min(SILENCE, left))
        try:
            return super().recv(buflen, flags)
        except TimeoutError:
            raise _given_up() from None

    def hold(self) -> None:
        """Keep what is sent next until there is more, so that both leave in one piece.

        Two pieces would be two TLS records, and between them other threads have their turn.
        """
        self._held = b""

    @override
    def sendall(self, data: "ReadableBuffer", flags: int = 0) -> None:
        """Send all of it, after what is held, unless this is what to hold."""
        held, self._held = self._held, None
        if held == b"":
            self._held = bytes(data)
        else:
            super().sendall(held + bytes(data) if held else data, flags)


def _given_up() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, "the client took too long to send its request")
