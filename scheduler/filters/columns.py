"""One label of all nodes as whole numbers, so that a requirement is judged once for each value."""

from collections.abc import Mapping, Sequence

import numpy as np

from api.streams import Expression
from scheduler.filters.selecting import accepts
from scheduler.topology import Bools, Ints


class Column:
    """A code for each row's value; 0 where the node has no such label. Never written."""

    def __init__(self, values: Sequence[str | None]) -> None:
        found: dict[str | None, int] = {None: 0}
        self.codes: Ints = np.fromiter(
            (found.setdefault(value, len(found)) for value in values), np.int64, len(values)
        )
        self._code_of = found

    @property
    def size(self) -> int:
        """How many codes there are, that of no label included."""
        return len(self._code_of)

    def after(self, changed: Mapping[int, str | None]) -> "Column":
        """Give the column with other values in these rows."""
        code_of = self._code_of
        if all(code_of.get(value, -1) == self.codes[row] for row, value in changed.items()):
            return self
        fresh = Column(())
        fresh._code_of = dict(code_of)
        fresh.codes = self.codes.copy()
        for row, value in changed.items():
            fresh.codes[row] = fresh._code_of.setdefault(value, len(fresh._code_of))
        return fresh

    def rows(self, expression: Expression) -> Bools:
        """In which rows a requirement on this label holds."""
        taken = np.zeros(self.size, dtype=np.bool_)
        if expression.operator in ("In", "NotIn") and expression.values:
            codes = [self._code_of[v] for v in expression.values if v in self._code_of]
            taken[codes] = True
            if expression.operator == "NotIn":
                taken = ~taken
        else:
            for value, code in self._code_of.items():
                taken[code] = accepts(expression, value)
        return taken[self.codes]
