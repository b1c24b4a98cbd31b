"""Whether a value nests too deep, as a writer of JSON in C tells that goes no deeper itself."""

from typing import Final

import orjson

from api.jsons import Json


def _deepest_written() -> int:
    """Find how many levels orjson writes, which is a few hundred."""
    value: Json = []
    levels = 1
    while _is_written(value):
        value, levels = [value], levels + 1
    return levels - 1


def _is_written(value: Json) -> bool:
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


class Nesting:
    """Tells whether values as JSON gives them nest within so many levels. Safe in many threads.

    A value is put into a nest of lists that leaves it just these levels of those that are written.
    To look through it in Python would take as long as to judge it.
    """

    def __init__(self, levels: int) -> None:
        self._around: Final = _deepest_written() - levels
        # Of each nest the outermost list and the innermost. Made once for each of the threads.
        self._free: list[tuple[list[Json], list[Json]]] = []

    def holds(self, value: Json) -> bool:
        """Tell whether the value nests no deeper."""
        try:
            outermost, innermost = self._free.pop()
        except IndexError:
            outermost, innermost = self._nest()
        innermost[0] = value
        found = _is_written(outermost)
        innermost[0] = None
        self._free.append((outermost, innermost))
        return found

    def _nest(self) -> tuple[list[Json], list[Json]]:
        innermost: list[Json] = [None]
        outermost = innermost
        for _ in range(self._around - 1):
            outermost = [outermost]
        return outermost, innermost
