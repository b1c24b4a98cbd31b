"""How much the largest node and the largest domains of a cluster hold.

Written by the process that knows all nodes, read by the one that warns about what can never fit.
Amounts are in the engine's units (thousandths of a CPU; everything else in its own unit).
"""

import msgspec


class Capacity(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """The most of each resource in one node, and in one domain of each level (a node label key)."""

    node: dict[str, int] = {}
    domains: dict[str, dict[str, int]] = {}
