"""What a pod takes of its node, counted the way Kubernetes counts it."""

from collections.abc import Iterable

from api import quantities
from api.quantities import Amounts
from api.streams import Container, PodSpec, Requirements


def of_spec(spec: PodSpec) -> dict[str, int]:
    """Give what the pod takes: containers, init containers, sidecars, overhead and one pod slot.

    Sidecars (init containers that restart always) run beside everything that starts after them, so
    each init container is weighed together with the sidecars declared before it. Requests made for
    the pod as a whole stand in for the sum of its containers', resource by resource.
    """
    running = _sum(_requests(container) for container in spec.containers)
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in spec.init_containers:
        if container.restart_policy == "Always":
            sidecars = quantities.plus(sidecars, _requests(container))
            starting = quantities.larger(starting, sidecars)
        else:
            starting = quantities.larger(starting, quantities.plus(sidecars, _requests(container)))
    whole = quantities.larger(quantities.plus(running, sidecars), starting)
    whole |= _asked(spec.resources)
    whole = quantities.plus(whole, quantities.amounts(spec.overhead))
    return {name: amount for name, amount in whole.items() if amount} | {quantities.PODS: 1}


def _requests(container: Container) -> dict[str, int]:
    return _asked(container.resources)


def _asked(resources: Requirements) -> dict[str, int]:
    # The API server fills in requests from limits; a pod read before that still counts in full.
    return quantities.amounts({**resources.limits, **resources.requests})


def _sum(parts: Iterable[Amounts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        total = quantities.plus(total, part)
    return total
