"""Kubernetes' Pod Security Standards, baseline and restricted, over a pod's spec."""

from collections.abc import Callable, Iterator
from typing import Final, Literal

from api.jsons import JsonObject
from policies import bounds, reading
from policies.problems import Problem

Level = Literal["baseline", "restricted"]
Part = tuple[str, JsonObject]
Check = Callable[[str, JsonObject], Iterator[Problem]]

_ADDABLE: Final = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
        *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
_SYSCTLS: Final = frozenset(
    (
        "kernel.shm_rmid_forced",
        *(
            f"net.ipv4.{name}"
            for name in (
                *("ip_local_port_range", "ip_unprivileged_port_start", "ip_local_reserved_ports"),
                *("ping_group_range", "tcp_syncookies", "tcp_fin_timeout", "tcp_rmem", "tcp_wmem"),
                *("tcp_keepalive_time", "tcp_keepalive_intvl", "tcp_keepalive_probes"),
            )
        ),
    )
)
_SELINUX_TYPES: Final = (
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
)
_VOLUMES: Final = frozenset(
    (
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image"),
        *("persistentVolumeClaim", "projected", "secret"),
    )
)
_PROFILES: Final = ("RuntimeDefault", "Localhost")


def check(level: Level, path: str, pod: JsonObject) -> Iterator[Problem]:
    """Find all in a pod's spec that is beyond the level."""
    for each in BASELINE:
        yield from each(path, pod)
    if level == "restricted":
        for each in RESTRICTED:
            yield from each(path, pod)


def _containers(path: str, pod: JsonObject) -> Iterator[Part]:
    for field in bounds.CONTAINERS:
        for i, each in enumerate(bounds.listed(pod, field)):
            yield f"{path}.{field}[{i}]", reading.mapping(each)


def _contexts(path: str, pod: JsonObject) -> Iterator[Part]:
    """Give the security contexts of the containers."""
    for where, each in _containers(path, pod):
        yield f"{where}.securityContext", reading.mapping(each.get("securityContext"))


def _all_contexts(path: str, pod: JsonObject) -> Iterator[Part]:
    """Give the pod's security context and those of its containers."""
    yield f"{path}.securityContext", reading.mapping(pod.get("securityContext"))
    yield from _contexts(path, pod)


def no_host_namespaces(path: str, pod: JsonObject) -> Iterator[Problem]:
    """Refuse the node's own network, processes and shared memory."""
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(field) is True:
            yield Problem(f"{path}.{field}", "must be left out")


def no_privileges(path: str, pod: JsonObject) -> Iterator[Problem]:
    """Refuse containers that may do everything, on Windows too."""
    for where, context in _contexts(path, pod):
        if context.get("privileged") is True:
            yield Problem(f"{where}.privileged", "must be left out")
    for where, context in _all_contexts(path, pod):
        if reading.mapping(context.get("windowsOptions")).get("hostProcess") is True:
            yield Problem(f"{where}.windowsOptions.hostProcess", "must be left out")


def no_added_capabilities(path: str, pod: JsonObject) -> Iterator[Problem]:
    """Refuse capabilities beyond those that container runtimes give."""
    for where, context in _contexts(path, pod):
        added = bounds.listed(reading.mapping(context.get("capabilities")), "add")
        for i, name in enumerate(added):
            if name not in _ADDABLE:
                yield Problem(f"{where}.capabilities.add[{i}]", f"{name!r} must not be added")


def no_host_paths(path: str, pod: JsonObject) -> Iterator[Problem]:
    """Refuse volumes that are directories of the node."""
    for i, each in enumerate(bounds.listed(pod, "volumes")):
        if "hostPath" in reading.mapping(each):
            yield Problem(f"{path}.volumes[{i}].hostPath", "must be left out")


def no_host_ports(path: str, pod: JsonObject) -> Iterator[Problem]:
    """Refuse ports of the node."""
    for where, container in _containers(path, pod):
        for i, each in enumerate(bounds.listed(container, "ports")):
            if reading.mapping(each).get("hostPort"):
                yield Problem(f"{where}.ports[{i}].hostPort", "must be left out")


def profiles_are_kept(path: str, pod: JsonObject) -> Iterator[Problem]:
    """Refuse to switch off what confines containers: AppArmor, seccomp, SELinux, /proc masks."""
    for where, context in _all_contexts(path, pod):
        for field in ("appArmorProfile", "seccompProfile"):
            if reading.mapping(context.get(field)).get("type") == "Unconfined":
                yield Problem(f"{where}.{field}.type", "must not be Unconfined")
        options = reading.mapping(context.get("seLinuxOptions"))
        if options.get("type", "") not in _SELINUX_TYPES:
            yield Problem(f"{where}.seLinuxOptions.type", "must be a container's type")
        for field in ("user", "role"):
            if options.get(field):
                yield Problem(f"{where}.seLinuxOptions.{field}", "must be left out")
        if context.get("procMount") not in (None, "", "Default"):
            yield Problem(f"{where}.procMount", "must be Default")


def sysctls_are_safe(path: str, pod: JsonObject) -> Iterator[Problem]:
    """Refuse settings of the kernel that reach beyond the pod."""
    context = reading.mapping(pod.get("securityContext"))
    for i, each in enumerate(bounds.listed(context, "sysctls")):
        name = reading.mapping(each).get("name")
        if name not in _SYSCTLS:
            yield Problem(f"{path}.securityContext.sysctls[{i}].name", f"{name!r} is not safe")


def volumes_are_plain(path: str, pod: JsonObject) -> Iterator[Problem]:
    """Take only volumes that no driver inside the kubelet mounts."""
    for i, each in enumerate(bounds.listed(pod, "volumes")):
        for kind in sorted(reading.mapping(each).keys() - _VOLUMES - {"name", "hostPath"}):
            yield Problem(f"{path}.volumes[{i}].{kind}", "is no volume of the restricted kind")


def nothing_is_gained(path: str, pod: JsonObject) -> Iterator[Problem]:
    """Refuse containers whose processes may become more than they began as."""
    if reading.mapping(pod.get("os")).get("name") == "windows":
        return
    for where, context in _contexts(path, pod):
        if context.get("allowPrivilegeEscalation") is not False:
            yield Problem(f"{where}.allowPrivilegeEscalation", "must be false")
        capabilities = reading.mapping(context.get("capabilities"))
        if "ALL" not in bounds.listed(capabilities, "drop"):
            yield Problem(f"{where}.capabilities.drop", "must hold ALL")
        for i, name in enumerate(bounds.listed(capabilities, "add")):
            if name in _ADDABLE and name != "NET_BIND_SERVICE":
                yield Problem(f"{where}.capabilities.add[{i}]", f"{name!r} must not be added")


def nobody_is_root(path: str, pod: JsonObject) -> Iterator[Problem]:
    """Refuse containers that may run as root."""
    whole = reading.mapping(pod.get("securityContext"))
    for where, context in _contexts(path, pod):
        if context.get("runAsNonRoot", whole.get("runAsNonRoot")) is not True:
            yield Problem(f"{where}.runAsNonRoot", "must be true, here or for the whole pod")
    for where, context in _all_contexts(path, pod):
        user = context.get("runAsUser")
        if user == 0 and not isinstance(user, bool):
            yield Problem(f"{where}.runAsUser", "must not be 0")


def seccomp_is_on(path: str, pod: JsonObject) -> Iterator[Problem]:
    """Refuse containers without a seccomp profile."""
    if reading.mapping(pod.get("os")).get("name") == "windows":
        return
    whole = reading.mapping(pod.get("securityContext")).get("seccompProfile")
    for where, context in _contexts(path, pod):
        profile = reading.mapping(context.get("seccompProfile", whole)).get("type")
        if profile not in (*_PROFILES, "Unconfined"):  # that one is told already
            yield Problem(
                f"{where}.seccompProfile.type",
                f"must be {' or '.join(_PROFILES)}, here or for the whole pod",
            )


BASELINE: Final[tuple[Check, ...]] = (
    no_host_namespaces,
    no_privileges,
    no_added_capabilities,
    no_host_paths,
    no_host_ports,
    profiles_are_kept,
    sysctls_are_safe,
)
RESTRICTED: Final[tuple[Check, ...]] = (
    volumes_are_plain,
    nothing_is_gained,
    nobody_is_root,
    seccomp_is_on,
)
