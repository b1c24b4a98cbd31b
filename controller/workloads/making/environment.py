"""The variables by which a pod's containers learn their place in set, group and clique. Pure.

They stand first in every container, so that the author's own may refer to them; one of the author's
with the same name is dropped.
"""

from collections.abc import Sequence
from functools import partial

from api import names
from api.jsons import JsonObject
from api.podcliqueset import PodCliqueSetSpec
from api.streams import Meta
from controller.workloads import containers
from controller.workloads.belonging import headless_host
from controller.workloads.wants import Place, WantedClique


def of_group(spec: PodCliqueSetSpec, place: Place) -> list[JsonObject]:
    """Give the variables that members of a scaling group have beyond others."""
    group = next(g for g in spec.template.pod_clique_scaling_groups if g.name == place.group)
    members = [c for c in spec.template.cliques if c.name in group.clique_names]
    return [
        _label("GROVE_PCSG_NAME", names.SCALING_GROUP_LABEL),
        # As the template says: it must not change while pods run, as the live count may.
        _value("GROVE_PCSG_TEMPLATE_NUM_PODS", str(sum(c.spec.replicas for c in members))),
        _label("GROVE_PCSG_INDEX", names.SCALING_GROUP_REPLICA_LABEL),
    ]


def of_pod(owner: Meta, clique: WantedClique) -> list[JsonObject]:
    """Give the variables that every pod has."""
    return [
        _value("GROVE_PCS_NAME", owner.name),
        _value("GROVE_PCS_INDEX", str(clique.place.replica)),
        _value("GROVE_PCLQ_NAME", clique.name),
        _value("GROVE_HEADLESS_SERVICE", headless_host(owner, clique.place.replica)),
        _label("GROVE_PCLQ_POD_INDEX", names.POD_INDEX_LABEL),
    ]


def given(pod_spec: JsonObject, variables: Sequence[JsonObject]) -> JsonObject:
    """Give a podSpec's containers these variables; the podSpec itself stays as it is."""
    return containers.changed(pod_spec, partial(_container, variables))


def _container(variables: Sequence[JsonObject], container: JsonObject) -> JsonObject:
    written = container.get("env")
    taken = {variable["name"] for variable in variables}
    own = [
        each
        for each in (written if isinstance(written, list) else [])
        if not (isinstance(each, dict) and each.get("name") in taken)
    ]
    return {**container, "env": [*variables, *own]}


def _value(name: str, value: str) -> JsonObject:
    return {"name": name, "value": value}


def _label(name: str, label: str) -> JsonObject:
    path = f"metadata.labels['{label}']"
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
