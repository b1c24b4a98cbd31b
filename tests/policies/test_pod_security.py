"""Pods beyond the Pod Security Standards."""

from typing import Final

import pytest

from api.jsons import Json, JsonObject
from policies import bounds, pod_security
from policies.pod_security import Level

HARDENED: Final[JsonObject] = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(
    context: JsonObject | None = None, container: JsonObject | None = None, **spec: Json
) -> JsonObject:
    main: JsonObject = {"name": "main", "securityContext": context or HARDENED, **(container or {})}
    return {"containers": [main], **spec}


def broken(level: Level, spec: JsonObject) -> list[str]:
    return [problem.path for problem in pod_security.check(level, "spec", spec)]


def test_a_hardened_pod_passes_the_strictest_level() -> None:
    assert broken("restricted", pod()) == []


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (pod(hostNetwork=True), "spec.hostNetwork"),
        (pod(hostPID=True), "spec.hostPID"),
        (pod(hostIPC=True), "spec.hostIPC"),
        (pod({**HARDENED, "privileged": True}), "spec.containers[0].securityContext.privileged"),
        (
            pod({**HARDENED, "capabilities": {"add": ["SYS_ADMIN"]}}),
            "spec.containers[0].securityContext.capabilities.add[0]",
        ),
        (pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), "spec.volumes[0].hostPath"),
        (pod(container={"ports": [{"hostPort": 80}]}), "spec.containers[0].ports[0].hostPort"),
        (
            pod({**HARDENED, "seccompProfile": {"type": "Unconfined"}}),
            "spec.containers[0].securityContext.seccompProfile.type",
        ),
        (
            pod(securityContext={"appArmorProfile": {"type": "Unconfined"}}),
            "spec.securityContext.appArmorProfile.type",
        ),
        (
            pod(securityContext={"seLinuxOptions": {"type": "spc_t"}}),
            "spec.securityContext.seLinuxOptions.type",
        ),
        (
            pod(securityContext={"seLinuxOptions": {"role": "r"}}),
            "spec.securityContext.seLinuxOptions.role",
        ),
        (
            pod({**HARDENED, "procMount": "Unmasked"}),
            "spec.containers[0].securityContext.procMount",
        ),
        (
            pod(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
            "spec.securityContext.sysctls[0].name",
        ),
        (
            pod(securityContext={"windowsOptions": {"hostProcess": True}}),
            "spec.securityContext.windowsOptions.hostProcess",
        ),
    ],
)
def test_the_baseline_takes_nothing_of_the_nodes_own(spec: JsonObject, path: str) -> None:
    assert broken("baseline", spec) == [path]
    assert path in broken("restricted", spec)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (pod(volumes=[{"name": "v", "nfs": {}}]), "spec.volumes[0].nfs"),
        (
            pod({**HARDENED, "allowPrivilegeEscalation": True}),
            "spec.containers[0].securityContext.allowPrivilegeEscalation",
        ),
        (
            pod({**HARDENED, "capabilities": {"drop": ["NET_RAW"]}}),
            "spec.containers[0].securityContext.capabilities.drop",
        ),
        (
            pod({**HARDENED, "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}}),
            "spec.containers[0].securityContext.capabilities.add[0]",
        ),
        (
            pod({**HARDENED, "runAsNonRoot": False}),
            "spec.containers[0].securityContext.runAsNonRoot",
        ),
        (pod({**HARDENED, "runAsUser": 0}), "spec.containers[0].securityContext.runAsUser"),
        (
            pod({k: v for k, v in HARDENED.items() if k != "seccompProfile"}),
            "spec.containers[0].securityContext.seccompProfile.type",
        ),
    ],
)
def test_the_restricted_level_wants_containers_hardened(spec: JsonObject, path: str) -> None:
    assert broken("baseline", spec) == []
    assert broken("restricted", spec) == [path]


def test_what_is_said_for_the_whole_pod_holds_for_its_containers() -> None:
    bare: JsonObject = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    whole: JsonObject = {"runAsNonRoot": True, "seccompProfile": {"type": "Localhost"}}
    assert broken("restricted", pod(bare, securityContext=whole)) == []


def test_all_lists_of_containers_are_looked_at() -> None:
    bad: JsonObject = {"name": "x", "securityContext": {"privileged": True}}
    spec: JsonObject = {field: [bad] for field in bounds.CONTAINERS}
    assert len(broken("baseline", spec)) == 3


@pytest.mark.parametrize("odd", [None, [], "x", 1, [None], {"a": 1}, [[]]])
def test_what_is_of_a_wrong_type_is_no_concern_of_these(odd: Json) -> None:
    for field in ("containers", "volumes", "securityContext", "os"):
        broken("restricted", {field: odd})
