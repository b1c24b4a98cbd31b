"""A quick look at a pod that tells whether it surely keeps to a level of pod security.

Most pods of which a level is asked keep to it, and holding one against each rule takes ten times
as long. Whoever does not pass here is held against the rules, and may pass there.
"""

from typing import Final

from api.jsons import Json, JsonObject

_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
# What a security context may say, whatever it is, without coming near any rule of baseline.
_HARMLESS: Final = frozenset(
    (
        *("allowPrivilegeEscalation", "fsGroup", "fsGroupChangePolicy", "readOnlyRootFilesystem"),
        *("runAsGroup", "runAsNonRoot", "runAsUser", "supplementalGroups"),
    )
)
_PROFILED: Final = _HARMLESS | {"seccompProfile", "capabilities"}
_VOLUMES: Final = frozenset(
    (
        *("name", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral"),
        *("persistentVolumeClaim", "projected", "secret"),
    )
)
_DROPPED: Final[Json] = {"drop": ["ALL"]}
_PROFILE: Final[Json] = {"type": "RuntimeDefault"}


class Glance:
    """Looks at pods in turn; most containers say the same as one before them."""

    def __init__(self, level: str) -> None:
        self._is_restricted = level == "restricted"
        self._whole: Json = None
        self._context: Json = None
        self._knows = False

    def surely_keeps(self, pod: JsonObject) -> bool:
        """Tell whether no rule of the level could find anything in the pod."""
        if pod.get("hostNetwork") or pod.get("hostPID") or pod.get("hostIPC"):
            return False
        whole = pod.get("securityContext")
        if whole != self._whole or not self._knows:
            if whole is not None and not (isinstance(whole, dict) and _is_plain(whole)):
                return False
            self._whole, self._knows = whole, False
        for field in _LISTS:
            listed = pod.get(field)
            if listed and not self._keep(listed):
                return False
        return _volumes_are_plain(pod.get("volumes"))

    def _keep(self, containers: Json) -> bool:
        for each in containers if isinstance(containers, list) else ():
            if not isinstance(each, dict):
                return False
            ports = each.get("ports")
            if ports and not _are_plain(ports):
                return False
            context = each.get("securityContext")
            if self._knows and context == self._context:
                continue
            if not self._allows(context):
                return False
            self._context, self._knows = context, True
        return True

    def _allows(self, context: Json) -> bool:
        if context is not None and not (isinstance(context, dict) and _is_plain(context)):
            return False
        return not self._is_restricted or _is_confined(context, self._whole)


def _are_plain(ports: Json) -> bool:
    for port in ports if isinstance(ports, list) else ():
        if not isinstance(port, dict) or port.get("hostPort"):
            return False
    return True


def _is_plain(context: JsonObject) -> bool:
    if _HARMLESS.issuperset(context):
        return True
    return (
        _PROFILED.issuperset(context)
        and context.get("seccompProfile", _PROFILE) == _PROFILE
        and context.get("capabilities", _DROPPED) == _DROPPED
    )


def _volumes_are_plain(volumes: Json) -> bool:
    for each in volumes if isinstance(volumes, list) else ():
        if not isinstance(each, dict) or not _VOLUMES.issuperset(each):
            return False
    return True


def _is_confined(context: Json, whole: Json) -> bool:
    """Tell whether a container, in such a pod, has all that the restricted level asks for."""
    if not isinstance(context, dict):
        return False
    around = whole if isinstance(whole, dict) else {}
    return (
        context.get("allowPrivilegeEscalation") is False
        and context.get("capabilities") == _DROPPED
        and context.get("runAsNonRoot", around.get("runAsNonRoot")) is True
        and context.get("runAsUser") != 0
        and around.get("runAsUser") != 0
        and context.get("seccompProfile", around.get("seccompProfile")) == _PROFILE
    )
