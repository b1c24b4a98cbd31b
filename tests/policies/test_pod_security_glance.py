"""The quick look lets nothing pass that a rule of the level would find."""

from typing import Final, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from api.jsons import Json, JsonObject
from policies import pod_security
from policies.pod_security import Level
from policies.pod_security_glance import Glance
from tests.policies.chaos import JSONS
from tests.policies.test_pod_security import HARDENED, pod

_PROFILES: Final = st.sampled_from(["RuntimeDefault", "Localhost", "Unconfined", None])
_CONTEXTS: Final = (
    st.none()
    | st.fixed_dictionaries(
        {},
        optional={
            "allowPrivilegeEscalation": st.booleans(),
            "privileged": st.booleans(),
            "runAsNonRoot": st.booleans(),
            "runAsUser": st.sampled_from([0, 1000]),
            "capabilities": st.sampled_from([{"drop": ["ALL"]}, {"add": ["SYS_ADMIN"]}, {}]),
            "seccompProfile": st.builds(lambda kind: {"type": kind}, _PROFILES),
            "procMount": st.sampled_from(["Default", "Unmasked"]),
            "readOnlyRootFilesystem": st.booleans(),
            "fsGroup": st.just(1),
        },
    )
    | st.just(HARDENED)
)
_PORTS: Final = st.none() | st.lists(st.sampled_from([{"containerPort": 1}, {"hostPort": 1}, {}]))
_CONTAINERS: Final = st.lists(
    st.fixed_dictionaries({}, optional={"securityContext": _CONTEXTS, "ports": _PORTS}), max_size=3
)
_PODS: Final[SearchStrategy[object]] = st.fixed_dictionaries(
    {"containers": _CONTAINERS},
    optional={
        "initContainers": _CONTAINERS,
        "securityContext": _CONTEXTS,
        "hostNetwork": st.booleans(),
        "hostIPC": st.booleans(),
        "volumes": st.lists(st.sampled_from([{"emptyDir": {}}, {"hostPath": {}}, {"nfs": {}}])),
        "os": st.just({"name": "windows"}),
    },
) | st.dictionaries(st.sampled_from(["containers", "volumes", "securityContext"]), JSONS)


@given(pods=st.lists(_PODS, max_size=4), level=st.sampled_from(["baseline", "restricted"]))
def test_who_passes_the_glance_passes_every_rule(pods: list[object], level: Level) -> None:
    glance = Glance(level)
    for each in cast("list[JsonObject]", pods):
        if glance.surely_keeps(each):
            assert [*pod_security.check(level, "spec", each)] == []


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_a_hardened_pod_passes_after_any_other(level: Level) -> None:
    glance = Glance(level)
    assert glance.surely_keeps(pod())
    assert not glance.surely_keeps(pod(hostNetwork=True))
    assert not glance.surely_keeps(pod({**HARDENED, "privileged": True}))
    assert glance.surely_keeps(pod())


def test_what_the_whole_pod_says_counts_for_its_containers() -> None:
    own: JsonObject = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    whole: Json = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    glance = Glance("restricted")
    assert glance.surely_keeps(pod(own, securityContext=whole))
    assert not glance.surely_keeps(pod(own, securityContext=cast("JsonObject", {"fsGroup": 1})))
    assert not glance.surely_keeps(pod(own))
