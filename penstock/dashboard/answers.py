"""What is asked over HTTP, and what is answered: who may ask, with which headers. Pure."""

import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, urlsplit

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - it is compared, not bound

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
STREAM: Final = "text/event-stream; charset=utf-8"

# Nothing comes from elsewhere, nothing is put into a page of others, and no text becomes markup.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
    "Connection": "close",
}


# What browsers say of requests by our own page, and by people. Pages at another port are others.
_OWN: Final = (["none"], ["same-origin"])


class BadRequestError(Exception):
    """The request is none that is answered; `status` is HTTP's code and word for it."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Request:
    """A GET as it was asked."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Names:
    """The names by which we may be asked. A page of others can only come by its own name."""

    bound: str
    others: frozenset[str] = frozenset()

    def takes(self, host: str) -> bool:
        """Tell whether a Host header is one of ours; the port may be that of a tunnel."""
        name = _name(host)
        if name in LOOPBACK or name == self.bound.lower() or name in self.others:
            return True
        return self._is_everywhere and _is_address(name)

    @property
    def _is_everywhere(self) -> bool:
        return self.bound in EVERYWHERE


def read(head: bytes, names: Names) -> Request:
    """Read a request up to its empty line; raises what is to be answered instead."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequestError("400 Bad Request", "this is no HTTP/1.1 request")
    headers = _headers(lines[1:])
    if len(headers.get("host", ())) != 1 or not names.takes(headers["host"][0]):
        raise BadRequestError(
            "421 Misdirected Request",
            "this is not served under that name; if it is meant to be, start it with --host NAME",
        )
    if words[0] != "GET":
        raise BadRequestError("405 Method Not Allowed", "only GET: nothing can be changed here")
    if headers.get("sec-fetch-site", ["none"]) not in _OWN and not _is_opened(headers):
        raise BadRequestError("403 Forbidden", "pages of others are told nothing")
    parts = urlsplit(words[1])
    asked = parse_qs(parts.query)
    return Request(parts.path, {key: values[0] for key, values in asked.items()})


def head(status: str, kind: str, length: int | None) -> bytes:
    """Give the head of an answer; one that goes on has no length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}"]
    lines += [] if length is None else [f"Content-Length: {length}"]
    if status.startswith("405"):
        lines.append("Allow: GET")
    lines += [f"{name}: {value}" for name, value in HEADERS.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def whole(status: str, kind: str, body: bytes) -> bytes:
    """Give an answer that is all there."""
    return head(status, kind, len(body)) + body


def _headers(lines: Collection[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip().lower(), []).append(value.strip())
    return found


def _is_opened(headers: Mapping[str, list[str]]) -> bool:
    """Whether somebody follows a link to us, rather than a page asking behind his back."""
    return headers.get("sec-fetch-mode") == ["navigate"]


def _name(host: str) -> str:
    """Take the port off a Host header."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
