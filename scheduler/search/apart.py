"""Where a gang must go, or best goes, to keep apart from its siblings."""

from scheduler import spacing
from scheduler.cells import Layout
from scheduler.requests import GangRequest
from scheduler.room import Room
from scheduler.search.tree import UnplaceableError, depth_of
from scheduler.topology import Bools


def apart(room: Room, where: Layout, request: GangRequest) -> tuple[Bools | None, list[Bools]]:
    """Give the positions that the gang must keep to, and those that it should, the best ones first.

    It must keep to domains that one more leaves even enough, or should keep to those that have
    fewest siblings.
    """
    for spread in request.spread:
        if spread.hard and not depth_of(where, spread.level):
            raise UnplaceableError(spread.level)
    hard = spacing.kept(room, where, request)
    if hard is not None and hard.all():
        hard = None
    return hard, spacing.liked(room, where, request)
