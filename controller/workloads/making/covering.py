"""What there is, held against what is wanted: is it all there, and what puts it right. Pure.

The API server fills in defaults, and people and other controllers add words of their own; neither
is a reason to write. Only what is wanted and not there is.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from api import quantities
from api.jsons import Json, JsonObject
from api.quantities import BadQuantityError
from controller.workloads.stepping import Change, Create, Remove, Step
from controller.workloads.views import Thing
from kube.resources import Resource

# In the target of a metric, and nowhere else, are texts such as 1000m amounts.
_AMOUNT_TYPES: Final = ("Value", "AverageValue")
_AMOUNTS: Final = ("value", "averageValue")

_ONCE: Final = ("apiVersion", "kind", "metadata", "status")


def covers(there: Json, wanted: Json) -> bool:
    """Tell whether all that is wanted is there, whatever else is.

    Lists must be of one length and cover each other in order. What is wanted to be nothing may be
    left out.
    """
    match wanted:
        case None:
            return there is None
        case dict():
            return isinstance(there, dict) and all(
                _covers_field(there.get(key), value, key, wanted) for key, value in wanted.items()
            )
        case list():
            return (
                isinstance(there, list)
                and len(there) == len(wanted)
                and all(map(covers, there, wanted))
            )
    # To Python, but not to anybody else, true is 1.
    return isinstance(there, bool) is isinstance(wanted, bool) and there == wanted


def kept(
    resource: Resource, there: Mapping[str, Thing], wanted: Mapping[str, JsonObject]
) -> Iterator[Step]:
    """Make what is missing, put right what was changed, remove what is wanted no more."""
    for name, body in wanted.items():
        thing = there.get(name)
        if thing is None:
            yield Create(resource, body)
        elif thing.metadata.deletion_timestamp is None and not covers(thing.body, _lasting(body)):
            yield Change(resource, name, thing.metadata.uid, _lasting(body))
    for name, thing in there.items():
        if name not in wanted and thing.metadata.deletion_timestamp is None:
            yield Remove(resource, name, thing.metadata.uid)


def _covers_field(there: Json, wanted: Json, key: str, holder: JsonObject) -> bool:
    if key in _AMOUNTS and holder.get("type") in _AMOUNT_TYPES:
        return _same_amount(there, wanted)
    return covers(there, wanted)


def _same_amount(there: Json, wanted: Json) -> bool:
    if there is None or wanted is None:
        return there is wanted
    try:
        return quantities.parse(str(there)) == quantities.parse(str(wanted))
    except BadQuantityError:
        return there == wanted


def _lasting(body: JsonObject) -> JsonObject:
    """Leave out what an object is told at its making only: whose it is, and what it is."""
    metadata = body.get("metadata")
    told = metadata if isinstance(metadata, dict) else {}
    return {
        "metadata": {key: told[key] for key in ("labels", "annotations") if told.get(key)},
        **{key: value for key, value in body.items() if key not in _ONCE},
    }
