"""A set, and all that it is judged by."""

import msgspec

from policies.known import Known
from policies.podcliqueset_view import SetView
from policies.policy import Policy


class Case(msgspec.Struct, frozen=True):
    """A set to be judged, by what policy and knowing what."""

    set: SetView
    policy: Policy
    known: Known
    is_new: bool
