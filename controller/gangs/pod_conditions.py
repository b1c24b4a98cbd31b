"""Has a pod say something in a condition, beside all that others have it say."""

from api.jsons import JsonObject
from api.streams import Pod
from kube.client import Client
from kube.resources import PODS


async def say(client: Client, pod: Pod, condition: JsonObject, manager: str) -> bytes:
    """Write the condition, and give the answer.

    What a manager applies replaces all that it applied before, so each condition has its own.
    """
    meta = pod.metadata
    body: JsonObject = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        # With the UID, what is said of a pod that is gone cannot land on its namesake.
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
        "status": {"conditions": [condition]},
    }
    return await client.apply(
        PODS, meta.name, body, meta.namespace, subresource="status", manager=manager
    )
