"""Snapshots held against each other."""

import numpy as np

from scheduler.snapshot import Snapshot


def same(left: Snapshot, right: Snapshot) -> None:
    """Fail unless both say the same, to the last bit."""
    assert left.nodes == right.nodes
    assert left.resources == right.resources
    assert left.row_of == right.row_of
    assert left.residents == right.residents
    for one, other in ((left.free, right.free), (left.capacity, right.capacity)):
        assert one.dtype == other.dtype == np.int64
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()
    for found, expected in zip(left.topologies, right.topologies, strict=True):
        assert (found.name, found.keys) == (expected.name, expected.keys)
        assert found.domains == expected.domains
        assert found.order.tobytes() == expected.order.tobytes()
        assert found.position.tobytes() == expected.position.tobytes()
