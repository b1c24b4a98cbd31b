"""Which judge answers at which path, whose patches count, and what is said if time is short."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from api import names
from api.jsons import JsonObject
from policies import (
    binding_admission,
    managed_admission,
    pod_admission,
    pod_claims,
    podcliqueset_admission,
    policy_admission,
)
from policies.admission import Judge, Operation, Request
from policies.answers import Allow, Answer, Code, Refuse

OVERLOADED: Final = "Penstock's webhook has more to do than it can answer in time; try again"


@dataclass(frozen=True)
class Route:
    """One webhook of ours as the API server calls it.

    `concerns` tells whether a review has any business here: what has none shows that a webhook
    configuration selects too much. `crowded` is the answer where nobody gets to a review in time.
    """

    path: str
    judge: Judge
    concerns: Callable[[Request], bool]
    crowded: Answer
    patches: bool = False
    is_judged_again: bool = False
    """Whether another path judges the same request the same way after this one."""


def _about(kind: str) -> Callable[[Request], bool]:
    # A Scale comes by way of the subresource of the kind.
    return lambda request: request.kind == kind or request.subresource == "scale"


def _is_gang_pod(request: Request) -> bool:
    return (
        request.kind == "Pod"
        and request.operation is Operation.CREATE
        and request.object is not None
        and pod_claims.is_gang_pod(request.object)
    )


def _is_policy(request: Request) -> bool:
    return request.kind == policy_admission.KIND and policy_admission.is_ours(request.object)


def _is_managed(request: Request) -> bool:
    return any(map(_says_managed, (request.object, request.old_object)))


def _says_managed(raw: JsonObject | None) -> bool:
    metadata = raw.get("metadata") if raw else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    found = labels.get(names.MANAGED_BY_LABEL) if isinstance(labels, dict) else None
    return found == names.MANAGED_BY


_TRY_AGAIN: Final = Refuse(Code.UNAVAILABLE, OVERLOADED)

ROUTES: Final = (
    Route(
        "/default/podcliquesets",
        podcliqueset_admission.judge,
        _about("PodCliqueSet"),
        _TRY_AGAIN,
        patches=True,
        is_judged_again=True,
    ),
    Route(
        "/validate/podcliquesets", podcliqueset_admission.judge, _about("PodCliqueSet"), _TRY_AGAIN
    ),
    Route(
        "/validate/clustertopologybindings",
        binding_admission.judge,
        _about("ClusterTopologyBinding"),
        _TRY_AGAIN,
    ),
    Route(
        "/mutate/pods",
        pod_admission.judge,
        _is_gang_pod,
        # Safe, since what comes without its gate is refused by a guard that needs no webhook; and
        # what was made with it must not wait for us.
        Allow(warnings=(f"{OVERLOADED} if this pod is refused for want of its gate",)),
        patches=True,
    ),
    Route("/authorize/managed", managed_admission.judge, _is_managed, _TRY_AGAIN),
    Route(
        "/validate/policy",
        policy_admission.judge,
        _is_policy,
        # What cannot be gone by is ignored in any case; whoever mends it must not wait for us.
        Allow(warnings=(f"{OVERLOADED} if this edit is not gone by",)),
    ),
)

PATHS: Final[Mapping[str, Route]] = {route.path: route for route in ROUTES}
