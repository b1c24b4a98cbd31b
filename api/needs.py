"""What a pod takes of its node, counted the way kube-scheduler counts it.

Kubernetes adds quantities up exactly and rounds the sum, so sums are kept in billionths until the
end. Tests hold this against what Kubernetes' own code says. Pods of a cluster are alike by the
hundred, so of them answers are remembered; what is given is not to be written.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from api import quantities
from api.quantities import Amounts
from api.streams import Container, ContainerStatus, Pod, PodSpec, PodStatus

_List: TypeAlias = tuple[tuple[str, str], ...]
"""A resource list as a value."""
_Exact: TypeAlias = Mapping[str, int]
"""By resource, in billionths of the unit that api.quantities counts in."""

_BILLION: Final = 10**9
_HUGE_PAGES: Final = "hugepages-"
_OF_WHOLE_PODS: Final = ("cpu", "memory")  # huge pages beside
_MOST_REMEMBERED: Final = 1024
_LONGEST_REMEMBERED: Final = 32  # amounts of a pod, so that what is remembered stays small


class _Asks(NamedTuple):
    """What a pod's containers ask for one by one, init containers with whether they stay."""

    running: tuple[_List, ...]
    starting: tuple[tuple[_List, bool], ...]


class _Whole(NamedTuple):
    """What a pod asks for as a whole."""

    overhead: _List
    requests: _List
    limits: _List


class _Told(NamedTuple):
    """What a kubelet says of a pod that is being resized, or was."""

    granted: _Asks
    set_to: _Asks
    whole_granted: _List | None
    whole_set: _List | None
    says_whole: bool
    hopeless: bool  # what is asked can never be


def of_spec(spec: PodSpec) -> Amounts:
    """Give what the pod takes: containers, init containers, sidecars, overhead and one pod slot.

    Sidecars (init containers that restart always) run beside everything that starts after them, so
    each init container is weighed together with the sidecars declared before it. Requests made for
    the pod as a whole stand in for the sum of its containers', for CPU, memory and huge pages.
    """
    return _placed(_asks(spec, _asked), _whole(spec))


def of_pod(pod: Pod) -> Amounts:
    """Give what the pod takes where it is, or where it is about to be.

    Once it has its node, what the kubelet has granted it and set for it counts too: the most of
    what is asked, granted and set; what is asked counts no more once the kubelet said it can never
    be.
    """
    spec, status = pod.spec, pod.status
    if not spec.node_name or _repeats(spec, status):
        return _of_stored(spec)
    known, hopeless = _by_name(status), _infeasible(status)
    said = status.resources.requests if status.resources else None
    told = _Told(
        _asks(spec, lambda c: _granted(c, known.get(c.name), hopeless=hopeless)),
        _asks(spec, lambda c: _set(c, known.get(c.name), hopeless=hopeless)),
        None if status.allocated_resources is None else _list(status.allocated_resources),
        None if said is None else _list(said),
        status.resources is not None,
        hopeless,
    )
    asks = _asks(spec, _asked)
    running = _remembered_running if _short(asks) else _running
    return running(asks, _whole(spec), told)


def _of_stored(spec: PodSpec) -> Amounts:
    """Count a pod whose names and amounts the API server has bounded."""
    if len(spec.containers) == 1 and not (spec.init_containers or spec.overhead):
        whole, asked = spec.resources, _list(_asked(spec.containers[0]))
        if len(asked) <= _LONGEST_REMEMBERED and not (whole.requests or whole.limits):
            return _alone(asked)
    asks = _asks(spec, _asked)
    placed = _remembered_placed if _short(asks) else _placed
    return placed(asks, _whole(spec))


def _short(asks: _Asks) -> bool:
    lists = (*asks.running, *(asked for asked, _ in asks.starting))
    return len(lists) + sum(map(len, lists)) <= _LONGEST_REMEMBERED


@lru_cache(maxsize=_MOST_REMEMBERED)
def _alone(asked: _List) -> Amounts:
    return _placed(_Asks((asked,), ()), _Whole((), (), ()))


def _placed(asks: _Asks, whole: _Whole) -> Amounts:
    return _taken(_together(asks), whole, _exact(whole.requests))


def _running(asks: _Asks, whole: _Whole, told: _Told) -> Amounts:
    if told.whole_granted is not None and told.whole_set is not None:
        taken = quantities.larger(_exact(told.whole_granted), _exact(told.whole_set))
    else:
        taken = quantities.larger(_together(told.granted), _together(told.set_to))
    requests = _exact(whole.requests)
    if told.hopeless:
        whole = whole._replace(limits=())
    else:
        taken = quantities.larger(taken, _together(asks))
    if told.says_whole:
        requests = {} if told.hopeless else requests
        for each in (told.whole_set, told.whole_granted):
            requests = quantities.larger(requests, _exact(each or ()))
    return _taken(taken, whole, requests)


_remembered_placed: Final = lru_cache(maxsize=_MOST_REMEMBERED)(_placed)
_remembered_running: Final = lru_cache(maxsize=_MOST_REMEMBERED)(_running)


def _repeats(spec: PodSpec, status: PodStatus) -> bool:
    """Whether the kubelet says no more than the spec does, as is so for most pods."""
    if len(spec.containers) != 1 or spec.init_containers or spec.resources.requests:
        return False
    (container,) = spec.containers
    asked = container.resources.requests
    for each in status.container_statuses:
        if each.allocated_resources is not None and each.allocated_resources != asked:
            return False
        if each.resources is not None and each.resources.requests not in (None, asked):
            return False
    if status.allocated_resources is not None and status.allocated_resources != asked:
        return False
    if status.resources is not None and status.resources.requests not in (None, asked):
        return False
    return not _infeasible(status)


def _by_name(status: PodStatus) -> dict[str, ContainerStatus]:
    """The first status of a name counts, and those of containers before those of init ones."""
    every = (*status.container_statuses, *status.init_container_statuses)
    return {each.name: each for each in reversed(every)}


def _infeasible(status: PodStatus) -> bool:
    for condition in status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _asked(container: Container) -> Mapping[str, str]:
    asked = container.resources
    # The API server fills in requests from limits; a pod read before that still counts in full.
    return {**asked.limits, **asked.requests} if asked.limits else asked.requests


def _granted(
    container: Container, told: ContainerStatus | None, *, hopeless: bool
) -> Mapping[str, str]:
    if told is not None and told.allocated_resources is not None:
        return told.allocated_resources
    return {} if hopeless else _asked(container)


def _set(
    container: Container, told: ContainerStatus | None, *, hopeless: bool
) -> Mapping[str, str]:
    if told is not None and told.resources is not None and told.resources.requests is not None:
        return told.resources.requests
    return _granted(container, told, hopeless=hopeless)


def _asks(spec: PodSpec, ask: Callable[[Container], Mapping[str, str]]) -> _Asks:
    starting = spec.init_containers
    return _Asks(
        tuple([_list(ask(each)) for each in spec.containers]),
        tuple([(_list(ask(each)), each.restart_policy == "Always") for each in starting])
        if starting
        else (),
    )


def _whole(spec: PodSpec) -> _Whole:
    whole = spec.resources
    return _Whole(_list(spec.overhead), _list(whole.requests), _list(whole.limits))


def _list(asked: Mapping[str, str]) -> _List:
    return tuple(asked.items())


def _together(asks: _Asks) -> _Exact:
    """Weigh a pod's containers together."""
    running: _Exact = {}
    for asked in asks.running:
        running = quantities.plus(running, _exact(asked))
    sidecars: _Exact = {}
    starting: _Exact = {}
    for asked, stays in asks.starting:
        beside = quantities.plus(sidecars, _exact(asked))
        if stays:
            sidecars = beside
        starting = quantities.larger(starting, beside)
    return quantities.larger(quantities.plus(running, sidecars), starting)


def _taken(together: _Exact, whole: _Whole, requests: _Exact) -> Amounts:
    """Let requests for the whole pod stand in where there are any, add overhead, and round."""
    total = {**together}
    # As the API server fills in: what containers ask for goes before limits of the whole pod.
    total |= {
        name: amount
        for name, amount in _exact(whole.limits).items()
        if _of_whole_pods(name) and (name not in total or name.startswith(_HUGE_PAGES))
    }
    if any(_of_whole_pods(name) for name, _ in whole.requests):
        total |= {name: amount for name, amount in requests.items() if _of_whole_pods(name)}
    total = quantities.plus(total, _exact(whole.overhead))
    taken = {name: _rounded(amount) for name, amount in total.items() if amount}
    taken[quantities.PODS] = 1
    return taken


def _of_whole_pods(name: str) -> bool:
    return name in _OF_WHOLE_PODS or name.startswith(_HUGE_PAGES)


def _rounded(amount: int) -> int:
    return min(quantities.MOST, -(-amount // _BILLION))


def _exact(asked: _List) -> dict[str, int]:
    return {name: quantities.billionths(name, text) for name, text in asked}
