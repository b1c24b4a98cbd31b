"""A set, and all that it is judged by."""

from dataclasses import dataclass

from policies.known import Known
from policies.podcliqueset_view import SetView
from policies.policy import Policy


@dataclass(frozen=True)
class Case:
    """A set to be judged, by what policy and knowing what."""

    set: SetView
    policy: Policy
    known: Known
    is_new: bool
