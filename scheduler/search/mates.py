"""What pods of one plan mean for each other apart from room: judged when a placement is found."""

from collections.abc import Sequence

from scheduler.cells import Layout
from scheduler.filters.constraints import Constraints
from scheduler.filters.together import Seated
from scheduler.requests import GangRequest, Want
from scheduler.room import Room


class Mates:
    """The pods of a gang beside each other, and beside those that the batch has placed before."""

    def __init__(self, room: Room, where: Layout, request: GangRequest) -> None:
        self._room = room
        self._where = where
        wants = (*request.minimum, *request.extras)
        each = {id(want.constraints): want.constraints for want in wants}
        self.constraints: list[Constraints] = list(dict.fromkeys(each.values()))
        self.choosy = room.choosy or not all(each.lonely for each in self.constraints)

    def seats(self, pods: Sequence[tuple[Want, int]]) -> list[Seated]:
        """Give each pod's row and constraints."""
        rows = self._where.rows
        return [(rows[position], want.constraints) for want, position in pods]

    def bear(self, pods: Sequence[tuple[Want, int]]) -> bool:
        """Whether no filter of these pods, or of those before, fails because of them."""
        return not self.choosy or not self._room.seating.conflict(self.seats(pods))
