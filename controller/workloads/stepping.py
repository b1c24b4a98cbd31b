"""What can be done for a set, each as a value: one write, one word to people, or one wish. Pure.

Every step can be repeated, and each prefix of a list of them can be where a process died: the next
look at the set finds what is left to do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from api.jsons import JsonObject
from controller.voicing import Tell
from kube.resources import Resource


@dataclass(frozen=True)
class Create:
    """Make an object; its name and owner are in the body. One that is there already is enough."""

    resource: Resource
    body: JsonObject


@dataclass(frozen=True)
class Change:
    """Merge something into an object of ours, unless it has been replaced by a namesake.

    A `version` makes it fail when the object has changed since it was looked at.
    """

    resource: Resource
    name: str
    uid: str
    patch: JsonObject
    version: str = ""


@dataclass(frozen=True)
class Remove:
    """Delete an object of ours; its UID guards a namesake.

    A `version` makes it fail when the object has changed since it was looked at.
    """

    resource: Resource
    name: str
    uid: str
    version: str = ""


@dataclass(frozen=True)
class Say:
    """Write the status of an object: all that `workloads` says of it, in one apply.

    While its `words` still change, which are the status without its times, it may wait for
    `patience` seconds. What nobody `acts_on` may wait for other sets that are at work.
    """

    resource: Resource
    name: str
    uid: str
    status: JsonObject
    words: Mapping[str, object] = field(default_factory=dict, compare=False)
    patience: float = 0.0
    acts_on: bool = True


@dataclass(frozen=True)
class Again:
    """Look at the set again at this instant, though nothing may have changed."""

    at: datetime


Step: TypeAlias = Create | Change | Remove | Say | Tell | Again
