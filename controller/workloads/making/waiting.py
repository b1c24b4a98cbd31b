"""The init way of a startup order: a container that waits, last of the pod's init containers. Pure.

The other way, the gate, needs nothing in the pod: its clique's pods stay gated until their turn.
Names, paths and arguments are Grove's, so that its own waiter can be run too. The container holds
the token of the set's account, which may read pods, and nobody else in the pod gets to see it.
"""

import copy
from typing import Final

from api import names
from api.jsons import Json, JsonObject
from api.streams import Pod
from controller.workloads import naming
from controller.workloads.views import SetView, Startup
from controller.workloads.wants import Wanted, WantedClique

SHARED_PROCESSES: Final = "shareProcessNamespace"
POD_INFO_PATH: Final = "/var/grove/pod-info"
TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path

_OUR_VOLUMES: Final = (names.POD_INFO_VOLUME, names.TOKEN_VOLUME)
_USER: Final = 65532  # nobody in particular, as images without a shell use it
# Requests equal limits, so that a pod of the class Guaranteed stays one. They add nothing to what a
# pod takes, as long as its own containers ask for as much.
_RESOURCES: Final[JsonObject] = {"cpu": "100m", "memory": "128Mi"}
# What the strictest level of Pod Security asks for, whatever the pod says of itself.
_SECURITY: Final[JsonObject] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "runAsGroup": _USER,
    "runAsNonRoot": True,
    "runAsUser": _USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def way(view: SetView) -> Startup:
    """Say how this set's cliques wait: as its annotation says, else as whoever runs Penstock does.

    The init way takes an image, and pods whose containers do not see into each other. Without
    these it is the gate all the same: the order holds, and `way_trouble` says why.
    """
    asked = _asked(view)
    if asked is Startup.INIT and not (view.choices.waiter_image and _keeps_the_token(view)):
        return Startup.GATE
    return asked


def way_trouble(view: SetView) -> str:
    """Say why the set is not started as its annotation asks, as a sentence; empty if it is."""
    written = view.metadata.annotations.get(names.STARTUP_ANNOTATION)
    if written is not None and written not in list(Startup):
        ways = " or ".join(Startup)
        return (
            f"the annotation {names.STARTUP_ANNOTATION} is {written!r} and must be {ways};"
            f" its cliques wait by {way(view)} meanwhile"
        )
    if _asked(view) is not way(view) and view.choices.waiter_image:
        return (
            "its cliques are to wait in init containers, but share one process namespace with"
            " them, so that others could take the waiter's token: they wait behind the gate"
            f" instead; leave out {SHARED_PROCESSES} or {names.STARTUP_ANNOTATION}"
        )
    if _asked(view) is not way(view):
        return (
            "its cliques are to wait in init containers, but workloads has no image for them:"
            " they wait behind the gate instead; start workloads with --waiter-image"
        )
    return ""


def waits(view: SetView, wanted: Wanted) -> bool:
    """Tell whether any clique of the set is to wait in an init container."""
    return way(view) is Startup.INIT and any(c.waits_for for c in wanted.cliques.values())


def has_waiter(pod: Pod) -> bool:
    """Tell whether the pod was made with a container that waits."""
    return any(container.name == names.WAITER for container in pod.spec.init_containers)


def shaped(view: SetView, clique: WantedClique, _index: int, spec: JsonObject) -> JsonObject:
    """Add the container that waits to a pod's spec, if its clique waits for somebody that way."""
    if not clique.waits_for or way(view) is not Startup.INIT:
        return spec
    made = copy.copy(spec)
    for kind in ("containers", "initContainers"):
        made[kind] = [_without_our_volumes(each) for each in _items(spec.get(kind))]
    made["initContainers"] = [*_items(made["initContainers"]), _container(view, clique)]
    made["volumes"] = [*_items(spec.get("volumes")), *_volumes(view.metadata.name)]
    # A clique that was changed by hand may say what the set's template does not.
    made.pop(SHARED_PROCESSES, None)
    return made


def _asked(view: SetView) -> Startup:
    written = view.metadata.annotations.get(names.STARTUP_ANNOTATION, "")
    return Startup(written) if written in list(Startup) else view.choices.startup


def _keeps_the_token(view: SetView) -> bool:
    """Tell whether none of the set's templates has containers that see each other's files."""
    cliques = view.spec.template.cliques
    return not any(clique.spec.pod_spec.get(SHARED_PROCESSES) for clique in cliques)


def _container(view: SetView, clique: WantedClique) -> JsonObject:
    return {
        "name": names.WAITER,
        "image": view.choices.waiter_image,
        "args": [f"--podcliques={parent.clique}:{parent.minimum}" for parent in clique.waits_for],
        "resources": {"requests": {**_RESOURCES}, "limits": {**_RESOURCES}},
        "securityContext": copy.deepcopy(_SECURITY),
        "volumeMounts": [
            {"name": names.POD_INFO_VOLUME, "mountPath": POD_INFO_PATH, "readOnly": True},
            {"name": names.TOKEN_VOLUME, "mountPath": TOKEN_PATH, "readOnly": True},
        ],
    }


def _volumes(set_name: str) -> list[Json]:
    podgang = f"metadata.labels['{names.PODGANG_LABEL}']"
    return [
        {
            "name": names.POD_INFO_VOLUME,
            "downwardAPI": {
                "items": [
                    {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
                    {"path": "podgangname", "fieldRef": {"fieldPath": podgang}},
                ]
            },
        },
        {
            "name": names.TOKEN_VOLUME,
            "secret": {"secretName": naming.waiter_token(set_name), "defaultMode": 0o644},
        },
    ]


def _without_our_volumes(container: Json) -> Json:
    """Take the waiter's volumes from a container of the author's: the token is not for it."""
    if not isinstance(container, dict) or "volumeMounts" not in container:
        return container
    mounts = [
        mount
        for mount in _items(container["volumeMounts"])
        if not isinstance(mount, dict) or mount.get("name") not in _OUR_VOLUMES
    ]
    return {**container, "volumeMounts": mounts}


def _items(raw: Json) -> list[Json]:
    return raw if isinstance(raw, list) else []
