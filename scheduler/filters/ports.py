"""Host ports: a number and a protocol, at one address of the node or at all of them."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final, TypeAlias

from api.streams import Port

ANYWHERE: Final = "0.0.0.0"  # noqa: S104 - compared with, never listened on

Number: TypeAlias = tuple[str, int]  # protocol and port


def addresses(ports: Iterable[Port]) -> Iterator[tuple[Number, str]]:
    """List what is taken, with what was left out filled in."""
    for port in ports:
        if port.host_port > 0:
            yield (port.protocol or "TCP", port.host_port), port.host_ip or ANYWHERE


def clash(address: str, taken: Collection[str]) -> bool:
    """Whether a port at this address is taken by one who has it at these."""
    return bool(taken) and (address == ANYWHERE or ANYWHERE in taken or address in taken)
