"""What nodes say themselves of the pods they take, for all nodes at once.

An answer once given is given again while no node changed; `after` goes on from there and looks only
at nodes that are not the same objects any more.
"""

from collections.abc import Callable, Sequence
from itertools import compress
from operator import is_not
from typing import Final, TypeAlias, TypeVar

import numpy as np

from api.streams import Expression, Node, NodeSelector, Taint, Term, Toleration
from scheduler.filters.classes import CORDONED, NOT_READY, NOT_SELECTED, TAINTED, VOLUMES
from scheduler.filters.columns import Column
from scheduler.filters.constraints import Constraints
from scheduler.filters.selecting import NAME_FIELD, UNSCHEDULABLE, bars, matches, tolerated
from scheduler.topology import Bools, Ints

_Answer = TypeVar("_Answer")
_State: TypeAlias = tuple[bool, bool, tuple[Taint, ...]]

_MOST_ANSWERS: Final = 1_000  # a mask takes a byte a node


class Nodes:
    """Answers for one sequence of nodes. What is given out is never written."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._columns: dict[str, Column] = {}
        self.order = object()  # one for each order of names
        self._row_of: dict[str, int] = {}
        self._states: dict[_State, int] = {}
        self._state: Ints | None = None
        self._masks: dict[Constraints, Bools] = {}
        self._barriers: dict[Constraints, tuple[tuple[str, Bools], ...]] = {}

    def after(self, nodes: Sequence[Node]) -> "Nodes":
        """Go on with these nodes; where most are the same objects that costs little."""
        if nodes is self.nodes:
            return self
        fresh = Nodes(nodes)
        if len(nodes) != len(self.nodes):
            return fresh
        rows = list(compress(range(len(nodes)), map(is_not, nodes, self.nodes)))
        if any(nodes[row].metadata.name != self.nodes[row].metadata.name for row in rows):
            return fresh
        rows = [row for row in rows if _differ(nodes[row], self.nodes[row])]
        fresh.order, fresh._row_of = self.order, self._row_of
        fresh._columns = self._columns
        fresh._states, fresh._state = self._states, self._state
        if not rows:
            fresh._masks, fresh._barriers = self._masks, self._barriers
            return fresh
        fresh._columns = {
            key: column.after({row: nodes[row].metadata.labels.get(key) for row in rows})
            for key, column in self._columns.items()
        }
        if self._state is not None:
            fresh._states = dict(self._states)
            fresh._state = self._state.copy()
            fresh._state[rows] = [fresh._code(nodes[row]) for row in rows]
        return fresh

    def keeps(self, before: "Nodes") -> bool:
        """Whether rows are the same nodes as before, by name."""
        return self.order is before.order

    def column(self, key: str) -> Column:
        """Give a node label as codes; coded once."""
        if key not in self._columns:
            self._columns[key] = Column([node.metadata.labels.get(key) for node in self.nodes])
        return self._columns[key]

    def mask(self, constraints: Constraints) -> Bools:
        """Which nodes the pod may use, as far as they tell by themselves."""
        found = self._masks.get(constraints.alone)
        if found is None:
            found = self._fitting(constraints.alone)
            found.flags.writeable = False
            _keep(self._masks, constraints.alone, found)
        return found

    def barriers(self, constraints: Constraints) -> tuple[tuple[str, Bools], ...]:
        """Give for each filter the nodes that it keeps such pods off, in kube-scheduler's order."""
        found = self._barriers.get(constraints.alone)
        if found is None:
            found = self._excluding(constraints.alone)
            _keep(self._barriers, constraints.alone, found)
        return found

    def tolerating(self, tolerations: tuple[Toleration, ...]) -> Bools:
        """Which nodes have no taint that keeps such pods off; cordons do not count."""
        return self._by_state(lambda state: _tolerated(state, tolerations))

    def selected(self, constraints: Constraints) -> Bools:
        """Which nodes the pod's selector and required affinity choose."""
        taken = np.ones(len(self.nodes), dtype=np.bool_)
        for key, value in constraints.selector:
            taken &= self.column(key).rows(Expression(key, "In", (value,)))
        if constraints.required is not None:
            taken &= self._chosen(constraints.required)
        return taken

    def _fitting(self, constraints: Constraints) -> Bools:
        taken = self._by_state(lambda state: not _obstacle(state, constraints))
        taken &= self.selected(constraints)
        for volume in constraints.volumes:
            taken &= self._chosen(volume)
        return taken

    def _excluding(self, constraints: Constraints) -> tuple[tuple[str, Bools], ...]:
        reached = np.ones(len(self.nodes), dtype=np.bool_)
        for volume in constraints.volumes:
            reached &= self._chosen(volume)
        return (
            (NOT_READY, self._by_state(lambda s: _obstacle(s, constraints) == NOT_READY)),
            (CORDONED, self._by_state(lambda s: _obstacle(s, constraints) == CORDONED)),
            (TAINTED, self._by_state(lambda s: _obstacle(s, constraints) == TAINTED)),
            (NOT_SELECTED, ~self.selected(constraints)),
            (VOLUMES, ~reached),
        )

    def _by_state(self, judge: Callable[[_State], bool]) -> Bools:
        """Judge each kind of node once; nodes of a cluster are of a few kinds."""
        if self._state is None:
            self._state = np.fromiter(map(self._code, self.nodes), np.int64, len(self.nodes))
        table = np.fromiter(map(judge, self._states), np.bool_, len(self._states))
        return table[self._state]

    def _code(self, node: Node) -> int:
        state = (node.ready, node.spec.unschedulable, node.spec.taints)
        return self._states.setdefault(state, len(self._states))

    def _chosen(self, selector: NodeSelector) -> Bools:
        taken = np.zeros(len(self.nodes), dtype=np.bool_)
        for term in selector.node_selector_terms:
            self._choose(term, taken)
        return taken

    def _choose(self, term: Term, taken: Bools) -> None:
        """Add the nodes that the term matches."""
        if not term.match_expressions and not term.match_fields:
            return  # an empty term matches nothing
        by_name = next((f for f in term.match_fields if f.operator == "In"), None)
        if by_name is not None:  # one node at most, so nobody else is looked at
            row = self._row(by_name.values[0]) if len(by_name.values) == 1 else None
            if row is not None and matches(term, self.nodes[row]):
                taken[row] = True
            return
        fitting = np.ones(len(self.nodes), dtype=np.bool_)
        for expression in term.match_expressions:
            fitting &= self.column(expression.key).rows(expression)
        for field in term.match_fields:
            if field.operator != "NotIn" or field.key != NAME_FIELD or len(field.values) != 1:
                return  # nothing else can be asked of a field, and what cannot matches nothing
            row = self._row(field.values[0])
            if row is not None:
                fitting[row] = False
        taken |= fitting

    def _row(self, name: str) -> int | None:
        if not self._row_of:
            self._row_of = {node.metadata.name: row for row, node in enumerate(self.nodes)}
        return self._row_of.get(name)


def _differ(one: Node, other: Node) -> bool:
    """Whether a filter could tell them apart."""
    return (
        one.ready != other.ready
        or one.spec != other.spec
        or one.metadata.labels != other.metadata.labels
    )


def _tolerated(state: _State, tolerations: tuple[Toleration, ...]) -> bool:
    return all(tolerated(taint, tolerations) for taint in state[2] if bars(taint))


def _obstacle(state: _State, constraints: Constraints) -> str:
    ready, unschedulable, _ = state
    if not ready:
        return NOT_READY
    if unschedulable and not tolerated(UNSCHEDULABLE, constraints.tolerations):
        return CORDONED
    return "" if _tolerated(state, constraints.tolerations) else TAINTED


def _keep(answers: dict[Constraints, _Answer], asked: Constraints, answer: _Answer) -> None:
    if len(answers) >= _MOST_ANSWERS:
        answers.clear()
    answers[asked] = answer
