"""The terms of a pod's required node affinity: a node must match one of them."""

from api.jsons import Json


def say_nothing(terms: list[Json]) -> bool:
    """Whether all of them are empty: such a term matches no node, and must stay empty.

    What cannot be read counts as saying something: others refuse it.
    """
    return all(
        isinstance(term, dict) and not (term.get("matchExpressions") or term.get("matchFields"))
        for term in terms
    )
