"""One sentence on why a gang was not placed, for its condition."""

from collections.abc import Mapping

from api import quantities
from scheduler.answers import NoFit
from scheduler.placing import largest_pod


def sentence(refusal: NoFit) -> str:
    """Say what is missing, the scarcest resource first, and which nodes do not count and why."""
    pods = _plural(len(refusal.gang.minimum), "pod")
    tail = _left_out(refusal.nodes, refusal.usable, refusal.obstacles)
    short = _shortages(refusal)
    if short:
        return f"no room for all {pods} of the minimum: {'; '.join(short)}{tail}"
    largest = ", ".join(
        f"{quantities.text(name, amount)} {name}"
        for name, amount in sorted(largest_pod(refusal.gang).items(), key=_scarcest)
        if name != quantities.PODS
    )
    return (
        f"no room for all {pods} of the minimum: {refusal.fitted} would fit; there is enough in "
        f"total but not on single nodes, the largest pod needs {largest} on one node{tail}"
    )


def _shortages(refusal: NoFit) -> list[str]:
    found = []
    for name, needed in sorted(refusal.needed.items(), key=_scarcest):
        free = refusal.free.get(name, 0)
        if needed > free:
            what = "pod slots" if name == quantities.PODS else name
            wanted, there, missing = (
                quantities.text(name, amount) for amount in (needed, free, needed - free)
            )
            found.append(f"{what}: {wanted} needed, {there} free, {missing} short")
    return found


def _scarcest(item: tuple[str, int]) -> tuple[bool, str]:
    return "/" not in item[0], item[0]


def _left_out(nodes: int, usable: int, obstacles: Mapping[str, int]) -> str:
    if usable == nodes:
        return f" (counting all {_plural(nodes, 'node')})"
    reasons = ", ".join(f"{count} {reason}" for reason, count in obstacles.items())
    return f" (counting {usable} of {_plural(nodes, 'node')}: {reasons})"


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
