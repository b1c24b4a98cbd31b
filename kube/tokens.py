"""Who we say we are: the Authorization header, and how it is renewed while we run."""

import asyncio
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from kube.clock import Clock
from kube.errors import BadCredentials

_logger = logging.getLogger(__name__)

REREAD_SECONDS = 60.0
_EXPIRY_MARGIN = timedelta(seconds=60)


class TokenSource(Protocol):
    """Gives the Authorization header for each request."""

    async def authorization(self) -> str | None:
        """Return the header's value, or None where TLS alone says who we are."""
        ...

    def refused(self) -> bool:
        """Note that the server answered 401; return whether asking again may give another."""
        ...


@dataclass(frozen=True)
class FixedHeader:
    """One header for ever, or none at all."""

    value: str | None = None

    async def authorization(self) -> str | None:
        """Return the header."""
        return self.value

    def refused(self) -> bool:
        """Say that there is no other."""
        return False


class FileToken:
    """A bearer token in a file that somebody else renews, as the kubelet does.

    The file is read again once a minute, and at once after a 401. A file that cannot be read for a
    moment leaves the last token in use.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._read_at = -math.inf
        self._token = ""

    async def authorization(self) -> str | None:
        """Return the header, reading the file where that is due."""
        if self._clock.monotonic() - self._read_at >= REREAD_SECONDS:
            self.read()
        return f"Bearer {self._token}"

    def refused(self) -> bool:
        """Have the file read again for the next request."""
        self._read_at = -math.inf
        return True

    def read(self) -> None:
        """Read the file now; raise BadCredentials when there is no earlier token to go on with."""
        try:
            token = self._path.read_text(encoding="ascii").strip()
            problem = "" if token else "it is empty"
        except FileNotFoundError:
            token, problem = "", "there is no such file"
        except (OSError, UnicodeDecodeError) as error:
            token, problem = "", str(error)
        if token:
            self._token = token
            self._read_at = self._clock.monotonic()
        elif self._token:
            _logger.warning("token file %s: %s; the last token stays in use", self._path, problem)
        else:
            raise BadCredentials(f"token file {self._path}: {problem}")


@dataclass(frozen=True)
class PluginToken:
    """What a credential plugin printed: a token and when it ends, where it says so."""

    token: str
    expires: datetime | None


class ExecToken:
    """A bearer token from a kubeconfig's exec plugin, asked again before it ends or after a 401.

    `run` blocks (it starts a process) and raises BadCredentials; it runs in a thread.
    """

    def __init__(self, first: PluginToken, run: Callable[[], PluginToken], clock: Clock) -> None:
        self._current: PluginToken | None = first
        self._run = run
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()

    async def authorization(self) -> str | None:
        """Return the header, running the plugin where that is due."""
        async with self._one_at_a_time:
            if self._current is None or self._ends_soon(self._current):
                self._current = await asyncio.to_thread(self._run)
            return f"Bearer {self._current.token}"

    def refused(self) -> bool:
        """Have the plugin run again for the next request."""
        self._current = None
        return True

    def _ends_soon(self, token: PluginToken) -> bool:
        return token.expires is not None and self._clock.now() >= token.expires - _EXPIRY_MARGIN
