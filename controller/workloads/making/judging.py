"""Pods that the webhook would let in as they are, and say so: the API server need not ask it. Pure.

The judge is the webhook's own. Of a pod that it would change, warn of or refuse nothing is said, so
that the webhook is asked and does that.
"""

from dataclasses import dataclass
from typing import Final

from api import names
from api.jsons import JsonObject
from kube.resources import PODS
from policies import pod_admission
from policies.admission import Operation, Request
from policies.answers import Allow
from policies.known import NOTHING
from policies.policy import Policy

_AS_IT_IS: Final = Allow()


@dataclass(frozen=True)
class GoesBy:
    """The policy that the webhook goes by, and what it is called in a few characters."""

    policy: Policy
    revision: str


def noted(pod: JsonObject, goes_by: GoesBy | None) -> JsonObject:
    """Note on a pod under which policy it is let in as it is, if it is known to be.

    A note that came with its template was not made here, and is left out.
    """
    metadata = pod.get("metadata")
    told = metadata if isinstance(metadata, dict) else {}
    written = told.get("annotations")
    notes = dict(written) if isinstance(written, dict) else {}
    if notes.pop(names.JUDGED_ANNOTATION, None) is not None:
        pod = {**pod, "metadata": {**told, "annotations": notes}}
    if goes_by is None:
        return pod
    # Of the cluster, nothing bears on a set's pod.
    request = Request(Operation.CREATE, PODS.kind, _as_shown(pod))
    if pod_admission.judge(goes_by.policy, NOTHING, request) != _AS_IT_IS:
        return pod
    judged: JsonObject = {**notes, names.JUDGED_ANNOTATION: goes_by.revision}
    return {**pod, "metadata": {**told, "annotations": judged}}


def _as_shown(pod: JsonObject) -> JsonObject:
    """Fill in what the API server does before it shows the webhook a pod, and what counts there."""
    written = pod.get("spec")
    spec = written if isinstance(written, dict) else {}
    scheduler = spec.get("schedulerName") or names.DEFAULT_SCHEDULER
    return {**pod, "spec": {**spec, "schedulerName": scheduler}}
