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

SHORT_SILENCE: Final = 0.5
"""The same where so many clients are waited for that others could find no thread."""

SHORT_WHOLE: Final = 1.0
"""And the same of a whole request."""

NO_STALL: Final = 0.1
"""Seconds within which whoever means to go on does so."""


class Crowd:
    """The clients that are waited for in the middle of their requests, each by a thread.

    Half of the threads are for the patient: while they are taken, whoever else stalls is cut off
    soon, so that reviews find a thread.
    """

    def __init__(self, threads: int) -> None:
        self._most = max(1, threads // 2)
        # Since when each is waited for. Each change is a single step, whichever threads do so.
        self._since: dict[int, float] = {}

    def presses(self, now: float) -> bool:
        """Tell whether as many stall as there is patience for."""
        if len(self._since) < self._most:
            return False
        since = [*self._since.values()]
        return sum(now - each > NO_STALL for each in since) >= self._most

    def enter(self, client: object, now: float) -> None:
        """Wait for one more."""
        self._since[id(client)] = now

    def leave(self, client: object) -> None:
        """Wait for it no longer."""
        self._since.pop(id(client), None)


class PatientSocket(ssl.SSLSocket):
    """A server's end of a TLS connection, with a limit on how long a request may take to arrive.

    The limit shows as a lost connection: the server gives the client up, and what reads from the
    socket deals with clients that leave anyway.
    """

    arrived: float = 0.0
    """When the first bytes of the request that is being read were there."""

    stranger: bool = False
    """Whether a client certificate is asked for and this client has shown none that will do."""

    given_up: bool = False
    """Whether patience with this client is over."""

    _clock: Callable[[], float] | None = None
    _begun: float = 0.0
    _crowd: Crowd = Crowd(2)
    _held: bytes | None = None

    def expect_request(self, clock: Callable[[], float], crowd: Crowd) -> None:
        """Start the limit for the request that is arriving now, with others in a crowd."""
        self._clock = clock
        self._crowd = crowd
        self._begun = clock()

    def expect_nothing(self) -> None:
        """Leave time-outs to the caller, who is about to close."""
        self._clock = None

    @override
    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Read what has arrived, or lose the connection when patience is over."""
        if self._clock is not None:
            self._limit(self._clock())
        try:
            return super().recv(buflen, flags)
        except TimeoutError:
            raise self._give_up() from None
        finally:
            self._crowd.leave(self)

    def _limit(self, now: float) -> None:
        """Wait for the client no longer than there is patience for."""
        pressed = self._crowd.presses(now)
        silence, whole = (SHORT_SILENCE, SHORT_WHOLE) if pressed else (SILENCE, WHOLE)
        left = self._begun + whole - now
        if left <= 0:
            raise self._give_up()
        self.settimeout(min(silence, left))
        self._crowd.enter(self, now)

    def _give_up(self) -> ConnectionResetError:
        self.given_up = True
        return ConnectionResetError(
            errno.ECONNRESET, "the client took too long to send its request"
        )

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
