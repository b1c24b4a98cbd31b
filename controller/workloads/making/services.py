"""The headless service of each replica of a set, by which its pods find each other. Pure.

While a service's pods are made, let go and bound, Kubernetes looks at all of them again and again
for addresses that they do not have. So it is made when all pods that were let go of one of its
cliques have theirs, or a while after its replica: whatever else happens, it will be there. Where
many sets are on their way at once, the lists of addresses of each would take the API server's time
from all that are not bound yet: there it waits for these, and the while is longer.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from api import names
from api.jsons import Json, JsonObject
from controller.workloads import belonging, naming
from controller.workloads.making.covering import kept
from controller.workloads.stepping import Again, Remove, Step
from controller.workloads.views import Clique, SetView, Thing
from controller.workloads.wants import Wanted
from kube.resources import PODCLIQUESETS, SERVICES

COMPONENT: Final = "pcs-headless-service"
# After a replica's first clique was made; so long many sets at once are on their way to nodes.
LATEST: Final = timedelta(seconds=10)
LATEST_IN_CROWD: Final = timedelta(seconds=20)


def steps(view: SetView, wanted: Wanted, now: datetime) -> Iterator[Step]:
    """Keep one service a replica, and none of a replica that is gone.

    Pods that end still find each other: services go when no clique is left that is to go.
    """
    in_use = not view.cliques.keys() <= wanted.cliques.keys()
    there = view.things_of(SERVICES)
    bodies: dict[str, JsonObject] = {}
    for replica, cliques in _cliques(view, wanted).items():
        name = naming.base_gang(view.metadata.name, replica)
        due = _due(view, cliques, now) if name not in there else now
        if due is not None and due <= now:
            bodies[name] = _body(view, replica, name, there.get(name))
        elif due is not None:
            yield Again(due)
    for step in kept(SERVICES, there, bodies):
        if not (in_use and isinstance(step, Remove)):
            yield step


def is_starting(view: SetView) -> bool:
    """Tell whether a replica has no service yet, as it has not for its first seconds."""
    there = view.things_of(SERVICES)
    bases = (naming.base_gang(view.metadata.name, index) for index in range(view.spec.replicas))
    return any(name not in there for name in bases)


def _cliques(view: SetView, wanted: Wanted) -> dict[int, list[Clique | None]]:
    """Give the cliques of each replica, and None for each that is yet to be made."""
    found: dict[int, list[Clique | None]] = {index: [] for index in range(view.spec.replicas)}
    for clique in wanted.cliques.values():
        if clique.name not in view.unread:
            found[clique.place.replica].append(view.cliques.get(clique.name))
    return found


def _due(view: SetView, cliques: Sequence[Clique | None], now: datetime) -> datetime | None:
    """Tell from when on a replica of these cliques has its service; None if other news will."""
    there = [clique for clique in cliques if clique is not None]
    if not cliques:
        return now
    # Whoever is let go after them, or cannot start, does not keep them from being found.
    if not view.in_a_crowd and any(_have_addresses(view, clique) for clique in there):
        return now
    made = (clique.metadata.creation_timestamp for clique in there)
    first = min((each for each in made if each is not None), default=None)
    if first is None:
        return None
    latest = LATEST_IN_CROWD if view.in_a_crowd else LATEST
    # A clock that is behind the API server's keeps nobody waiting.
    return first + latest if first <= now else now


def _have_addresses(view: SetView, clique: Clique) -> bool:
    """Tell whether some pods of a clique were let go, and all of those can be found."""
    let_go = [
        pod
        for pod in view.pods_of(clique.metadata.name)
        if not (pod.gates or pod.finished or pod.metadata.deletion_timestamp)
    ]
    return bool(let_go) and all(pod.status.pod_ip for pod in let_go)


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
