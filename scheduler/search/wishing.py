"""What a gang must have and what it would like: preferences are kept as far as that finds a place.

All wishes at once are tried first. If that fails, what must be is searched for by itself, and then
wishes are added one by one, those of the wider branches first, each as deep as it can be had.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from scheduler.cells import Layout
from scheduler.ranking import dealt
from scheduler.requests import Want
from scheduler.room import Room
from scheduler.search.board import Budget
from scheduler.search.mates import Mates
from scheduler.search.pulling import Pull
from scheduler.search.searching import Found, Question, Search, allowed_columns
from scheduler.search.tree import Asked, Branch, UnplaceableError, depth_of, grown
from scheduler.topology import Bools

_SPARED: Final = 3
_FOR_WISHES: Final = 4  # the share of the budget that may be spent on what need not be


@dataclass(frozen=True)
class Terms:
    """What is insisted on in one search."""

    depths: Mapping[int, int] = field(default_factory=dict)  # of branches, by their index
    zone: bool = False
    apart: int = -1  # which of the masks


@dataclass(eq=False)
class Wishes:
    """A request with its wishes.

    The masks are of positions: those that may be used whatever is wished, those with few siblings
    near, the better ones first, and those in the preferred zone.
    """

    room: Room
    where: Layout
    asked: Asked
    pull: Pull
    mates: Mates
    masks: tuple[Bools | None, Sequence[Bools], Bools | None]
    _searches: dict[Hashable, Search] = field(default_factory=dict)
    _futile: bool = False  # whether some part fitted nowhere

    def best(self, budget: Budget) -> Found | None:
        """Find a place, with as many wishes kept as possible."""
        wishes = list(self._each())
        if not wishes:
            return self._search(Terms(), budget, thorough=True).run()
        slack = Budget(budget.limit // _FOR_WISHES)
        if not self._possible(_all(wishes), slack):
            base = self._search(Terms(), budget, thorough=True)
            if not base.possible():
                return base.run()
            # What a bound excludes by itself is not tried again and again.
            wishes = [[form for form in forms if self._possible(form, slack)] for forms in wishes]
            wishes = [forms for forms in wishes if forms]
        found = self._tried(_all(wishes), slack)
        if (
            found is None
            and self._futile
            and self._search(Terms(), budget, thorough=True).hopeless()
        ):
            budget.spent += slack.spent
            return None
        found = found or self._but_one(wishes, slack)
        budget.spent += slack.spent
        if found is None:
            found = self._search(Terms(), budget, thorough=True).run()
            if found is not None:
                rest = Budget(min(slack.left, budget.left))
                found = self._wished(found, wishes, rest)
                budget.spent += rest.spent
        return found

    def _but_one(self, wishes: Sequence[Sequence[Terms]], slack: Budget) -> Found | None:
        """Keep all wishes but one of the last; often no more than one is too much."""
        found: Found | None = None
        for i in range(len(wishes) - 1, max(-1, len(wishes) - 1 - _SPARED), -1):
            if found is None:
                forms = list(wishes)
                forms[i : i + 1] = [wishes[i][1:]] if wishes[i][1:] else []
                found = self._tried(_all(forms), slack)
        return found

    def _wished(self, found: Found, wishes: Sequence[Sequence[Terms]], slack: Budget) -> Found:
        """Add wishes one by one to what must be, and keep those that leave a place."""
        kept = Terms()
        pods = dealt(found.tree, self.where, found.put)
        for forms in wishes:
            for form in forms:
                if self._granted(form, pods):
                    kept = _with(kept, form)
                    break
                better = self._tried(_with(kept, form), slack)
                if better is not None:
                    kept, found = _with(kept, form), better
                    pods = dealt(found.tree, self.where, found.put)
                    break
        return found

    def _granted(self, wish: Terms, pods: Sequence[tuple[Want, int]]) -> bool:
        """Whether pods are as a wish would have them anyhow."""
        for mask in self._insisted(wish):
            return all(mask[position] for _, position in pods)
        return all(
            self._together(self.asked.branches[index], depth, pods)
            for index, depth in wish.depths.items()
        )

    def _together(self, branch: Branch, depth: int, pods: Sequence[tuple[Want, int]]) -> bool:
        positions = {self.where.positions[row] for row in branch.rows}
        positions.update(position for want, position in pods if want.clique in branch.cliques)
        if depth > self.where.deepest:
            return len(positions) <= 1
        cells = self.where.depths[depth]
        there = {cells.at_list[position] for position in positions}
        return len(there) <= 1 and all(bool(cells.real[cell]) for cell in there)

    def _each(self) -> Iterator[list[Terms]]:
        """Give the wishes one by one, each in the forms it may be kept in, the best first."""
        _, apart, zone = self.masks
        if apart:
            yield [Terms(apart=i) for i in range(len(apart))]
        if zone is not None:
            yield [Terms(zone=True)]
        for branch in self.asked.branches:
            preferred = depth_of(self.where, branch.near.preferred) or 0
            required = depth_of(self.where, branch.near.required) or 0
            forms = [Terms({branch.index: d}) for d in range(preferred, required, -1)]
            if forms:
                yield forms

    def _insisted(self, terms: Terms) -> Iterator[Bools]:
        """Give the masks that terms insist on."""
        _, apart, zone = self.masks
        if terms.apart >= 0:
            yield apart[terms.apart]
        if terms.zone and zone is not None:
            yield zone

    def _possible(self, terms: Terms, budget: Budget) -> bool:
        try:
            return self._search(terms, budget, thorough=False).possible()
        except UnplaceableError:  # pods that are there already are apart from each other
            return False

    def _tried(self, terms: Terms, budget: Budget) -> Found | None:
        try:
            search = self._search(terms, budget, thorough=False)
        except UnplaceableError:
            return None
        found = search.run()
        self._futile |= search.futile
        return found

    def _search(self, terms: Terms, budget: Budget, *, thorough: bool) -> Search:
        """Ask with these terms; what has been worked out of them before is kept."""
        key = tuple(sorted(terms.depths.items())), terms.zone, terms.apart, thorough
        found = self._searches.get(key)
        if found is None or found.budget is not budget:
            found = self._searches[key] = self._asking(terms, budget, thorough=thorough)
        return found

    def _asking(self, terms: Terms, budget: Budget, *, thorough: bool) -> Search:
        tree = grown(self.asked, self.where, terms.depths, self.room)
        allowed, *_ = self.masks
        for mask in self._insisted(terms):
            allowed = mask if allowed is None else allowed & mask
        columns = allowed_columns(self.room, self.where, tree, allowed)
        question = Question(self.room, self.where, tree, columns, self.pull, self.mates)
        return Search(question, budget, thorough=thorough)


def _all(wishes: Sequence[Sequence[Terms]]) -> Terms:
    """Put the best form of each wish together."""
    terms = Terms()
    for best, *_ in wishes:
        terms = _with(terms, best)
    return terms


def _with(terms: Terms, change: Terms) -> Terms:
    return Terms(
        {**terms.depths, **change.depths},
        terms.zone or change.zone,
        max(terms.apart, change.apart),
    )
