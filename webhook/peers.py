"""Who a client is, by the certificate it has shown."""

import ssl
from collections.abc import Collection, Iterator, Mapping
from typing import Final, cast

_SUBJECT: Final = "subject"
_ALTERNATIVES: Final = "subjectAltName"


def is_one_of(names: Collection[str], connection: ssl.SSLSocket) -> bool:
    """Tell whether the client has shown a good certificate for one of these names."""
    # Empty where there was none; one that is not good has ended the handshake.
    shown = connection.getpeercert() or {}
    return any(name in names for name in names_in(shown))


def names_in(certificate: Mapping[str, object]) -> Iterator[str]:
    """Give the common names and alternative names of a certificate, as ssl decodes one."""
    for part in cast("tuple[tuple[tuple[str, str], ...], ...]", certificate.get(_SUBJECT, ())):
        yield from (value for key, value in part if key == "commonName")
    for _, value in cast("tuple[tuple[str, str], ...]", certificate.get(_ALTERNATIVES, ())):
        yield value
