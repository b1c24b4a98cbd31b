"""The flags that only `workloads` has: what whoever runs Penstock chooses for all sets."""

import argparse

from controller.workloads.views import Choices, Startup


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags to the parser."""
    parser.add_argument(
        "--startup",
        choices=[*(way.value for way in Startup)],
        default=Startup.GATE.value,
        help="how cliques wait for others before they start, where a set does not say: behind the "
        "gate on their reserved nodes, or in an init container (default: gate)",
    )
    parser.add_argument(
        "--waiter-image",
        default="",
        metavar="IMAGE",
        help="the image of that init container; without one all wait behind the gate",
    )
    parser.add_argument(
        "--mnnvl",
        action="store_true",
        help="make ComputeDomains for the NVLink groups that sets name",
    )


def read(told: argparse.Namespace) -> Choices:
    """Turn parsed flags into choices."""
    return Choices(Startup(told.startup), told.waiter_image, told.mnnvl)
