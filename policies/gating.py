"""Our scheduling gate in a pod's list of gates: after the author's own, never in their place."""

from collections.abc import Sequence

from api import names
from api.jsons import Json, JsonObject


def is_gated(gates: Json) -> bool:
    """Tell whether our gate is among them."""
    listed = gates if isinstance(gates, list) else []
    return any(map(is_ours, listed))


def is_ours(gate: Json) -> bool:
    """Tell whether a gate is ours."""
    return isinstance(gate, dict) and gate.get("name") == names.GATE


def gated(gates: Sequence[Json]) -> list[Json]:
    """Give these gates with ours after them; as they are if it is there."""
    return [*gates] if is_gated([*gates]) else [*gates, our_gate()]


def our_gate() -> JsonObject:
    """Write our gate as a pod carries it."""
    return {"name": names.GATE}
