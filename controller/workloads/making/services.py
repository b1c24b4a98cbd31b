"""The headless service of each replica of a set, by which its pods find each other. Pure."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from api import names
from api.jsons import Json, JsonObject
from controller.workloads import belonging, naming
from controller.workloads.making.covering import kept
from controller.workloads.stepping import Remove, Step
from controller.workloads.views import SetView, Thing
from controller.workloads.wants import Wanted
from kube.resources import PODCLIQUESETS, SERVICES

COMPONENT: Final = "pcs-headless-service"


def steps(view: SetView, wanted: Wanted, _now: datetime) -> Iterator[Step]:
    """Keep one service a replica, and none of a replica that is gone.

    Pods that end still find each other: services go when no clique is left that is to go.
    """
    in_use = not view.cliques.keys() <= wanted.cliques.keys()
    there = view.things_of(SERVICES)
    bodies: dict[str, JsonObject] = {}
    for replica in range(view.spec.replicas):
        name = naming.base_gang(view.metadata.name, replica)
        bodies[name] = _body(view, replica, name, there.get(name))
    for step in kept(SERVICES, there, bodies):
        if not (in_use and isinstance(step, Remove)):
            yield step


def _body(view: SetView, replica: int, name: str, there: Thing | None) -> JsonObject:
    owner = view.metadata
    config = view.spec.template.headless_service_config
    own: JsonObject = {
        names.MANAGED_BY_LABEL: names.MANAGED_BY,
        names.PART_OF_LABEL: owner.name,
        names.SET_REPLICA_LABEL: str(replica),
    }
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": {**belonging.labels_of_set(owner.name, name, COMPONENT, replica)},
            "ownerReferences": [belonging.owned_by(PODCLIQUESETS, owner)],
        },
        "spec": {
            "clusterIP": "None",
            # One more word in it, and pods would lose their names.
            "selector": {**dict.fromkeys(_selected_by(there)), **own},
            # The API server leaves out what is false.
            "publishNotReadyAddresses": config is None
            or config.publish_not_ready_addresses
            or None,
        },
    }


def _selected_by(there: Thing | None) -> JsonObject:
    spec: Json = there.body.get("spec") if there else None
    selector = spec.get("selector") if isinstance(spec, dict) else None
    return selector if isinstance(selector, dict) else {}
