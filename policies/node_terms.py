"""The terms of a pod's required node affinity: a node must match one of them."""

from typing import Final

from api.jsons import Json, JsonObject
from policies import reading

PATH: Final = (
    "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
)
# Nobody writes more; whether any of them says something is not looked for then.
MOST_TERMS: Final = 1_024


def of(pod_spec: JsonObject) -> list[Json] | None:
    """Give the terms, or None if there are none to look at."""
    found: Json = pod_spec
    for field in PATH.split("."):
        found = reading.mapping(found).get(field)
    return found if isinstance(found, list) and len(found) <= MOST_TERMS else None


def say_nothing(terms: list[Json]) -> bool:
    """Whether all of them are empty: such a term matches no node, and must stay empty.

    What cannot be read counts as saying something: others refuse it.
    """
    return all(
        isinstance(term, dict) and not (term.get("matchExpressions") or term.get("matchFields"))
        for term in terms
    )
