"""Pod specs as hypothesis makes them: valid ones, with every part that sets commonly use."""

import functools
from typing import Final, TypeVar, cast

from hypothesis import strategies as st

from api.jsons import Json, JsonObject

Made = TypeVar("Made")

IMAGE: Final = "registry.example/engine:1.0"

# Any text an object can hold: all of Unicode but lone surrogates.
texts: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
# Drawn from lists, since names made letter by letter take most of the time and find nothing more.
_WORDS: Final = (
    "a", "x9", "router", "leader", "worker", "prefill", "decode", "engine", "front", "cache",
    "kv-cache", "r2d2", "a--b", "llm-7b", "z" * 15, "model-loader", "encoder-0", "w-1-2",
)  # fmt: skip
_KEYS: Final = (
    "a", "A", "role", "Role_2", "app.kubernetes.io/name", "x.example/a", "penstock.dev/queue",
    "1", "a.b-c_d", "k" * 63, "long.prefix.example/" + "n" * 63,
)  # fmt: skip
_VALUES: Final = ("", "a", "A.b_c-9", "v" * 63, "0")

words: Final = st.sampled_from(_WORDS)
keys: Final = st.sampled_from(_KEYS)
label_maps: Final = st.dictionaries(keys, st.sampled_from(_VALUES), max_size=3)
annotation_maps: Final = st.dictionaries(keys, texts, max_size=3)


def some(strategy: st.SearchStrategy[Made], most: int = 3) -> st.SearchStrategy[list[Made]]:
    """A short list, perhaps empty."""
    return st.lists(strategy, max_size=most)


def named(
    names: st.SearchStrategy[str], rest: st.SearchStrategy[JsonObject], most: int = 3
) -> st.SearchStrategy[list[Json]]:
    """Objects told apart by their names."""
    return st.lists(names, unique=True, max_size=most).flatmap(
        lambda chosen: st.tuples(*[rest for _ in chosen]).map(
            lambda made: [{"name": n, **more} for n, more in zip(chosen, made, strict=True)]
        )
    )  # fmt: skip


def parts(**optional: st.SearchStrategy[object]) -> st.SearchStrategy[JsonObject]:
    """An object that has some of these, or none."""
    return _json(st.fixed_dictionaries({}, optional={**optional}))


def _json(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[JsonObject]:
    # What is in lists and objects is JSON too; types cannot follow it there.
    return cast("st.SearchStrategy[JsonObject]", strategy)


quantities: Final[st.SearchStrategy[Json]] = st.one_of(
    st.integers(1, 64),
    st.sampled_from(["250m", "1.5", "8", "512Mi", "128Gi", "1e3", "0.5Ti"]),
)
_amounts: Final = st.fixed_dictionaries(
    {}, optional={"cpu": quantities, "memory": quantities, "nvidia.com/gpu": st.integers(1, 8)}
)
_variables: Final = named(
    st.sampled_from(["MODE", "_a", "PATH_2", "a.b-c", "x"]),
    st.one_of(
        st.builds(lambda value: {"value": value}, texts),
        st.just({"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
        st.just({"valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": True}}}),
    ),
)
_ports: Final = st.lists(
    st.fixed_dictionaries(
        {"containerPort": st.integers(1, 65535)},
        optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": words},
    ),
    max_size=2,
    unique_by=lambda port: port["containerPort"],
)
_probes: Final = st.one_of(
    st.just({"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5}),
    st.just({"tcpSocket": {"port": 8080}, "initialDelaySeconds": 0}),
    st.just({"exec": {"command": ["true"]}}),
)


@functools.cache
def containers(*, beside: bool = False) -> st.SearchStrategy[JsonObject]:
    """Containers without their names; one beside the others runs as long as they do."""
    optional: dict[str, st.SearchStrategy[object]] = {
        "command": some(texts),
        "args": some(texts),
        "env": _variables,
        "ports": _ports,
        "readinessProbe": _probes,
        "imagePullPolicy": st.sampled_from(["Always", "IfNotPresent", "Never"]),
        "resources": parts(limits=_amounts, requests=_amounts),
        "securityContext": parts(
            runAsNonRoot=st.booleans(), readOnlyRootFilesystem=st.booleans(),
            capabilities=st.just({"drop": ["ALL"]}),
        ),
        "volumeMounts": st.just([{"name": "scratch", "mountPath": "/scratch"}]),
        "tty": st.booleans(),
    }  # fmt: skip
    if beside:
        optional["restartPolicy"] = st.just("Always")
    return _json(st.fixed_dictionaries({"image": st.just(IMAGE)}, optional=optional))


_expressions: Final = st.one_of(
    st.builds(lambda key, value: {"key": key, "operator": "In", "values": value},
              keys, st.lists(words, min_size=1, max_size=2)),
    st.builds(lambda key: {"key": key, "operator": "Exists"}, keys),
    st.builds(lambda key, n: {"key": key, "operator": "Gt", "values": [str(n)]},
              keys, st.integers(0, 99)),
)  # fmt: skip
_terms: Final = st.builds(
    lambda found: {"matchExpressions": found}, st.lists(_expressions, min_size=1, max_size=2)
)
_affinities: Final = parts(
    nodeAffinity=parts(
        requiredDuringSchedulingIgnoredDuringExecution=st.builds(
            lambda terms: {"nodeSelectorTerms": terms}, st.lists(_terms, min_size=1, max_size=2)
        ),
        preferredDuringSchedulingIgnoredDuringExecution=some(
            st.builds(lambda w, t: {"weight": w, "preference": t}, st.integers(1, 100), _terms), 2
        ),
    ),
    podAntiAffinity=st.just({
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname",
             "labelSelector": {"matchLabels": {"app": "other"}}}
        ]
    }),
)  # fmt: skip
_tolerations: Final = some(
    st.one_of(
        st.just({"operator": "Exists"}),
        st.builds(
            lambda key: {"key": key, "operator": "Equal", "value": "x", "effect": "NoSchedule"},
            keys,
        ),
        st.just({"key": "k", "effect": "NoExecute", "tolerationSeconds": 0, "operator": "Exists"}),
    )
)
_volumes: Final[st.SearchStrategy[Json]] = st.just(
    [
        {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"name": "config", "configMap": {"name": "c", "items": [{"key": "a", "path": "b"}]}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "models", "readOnly": True}},
        {"name": "all", "projected": {"sources": [{"downwardAPI": {"items": [
            {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]}},
    ]
)  # fmt: skip


@functools.cache
def pod_specs(schedulers: tuple[str, ...] = ("",)) -> st.SearchStrategy[JsonObject]:
    """Pod specs that an API server takes; schedulerName is one of these."""
    optional: dict[str, st.SearchStrategy[object]] = {
        "initContainers": named(words.map("init-{}".format), containers(beside=True), 2),
        "restartPolicy": st.sampled_from(["Always", "OnFailure", "Never"]),
        "terminationGracePeriodSeconds": st.integers(0, 600),
        "activeDeadlineSeconds": st.integers(1, 600),
        "schedulerName": st.sampled_from(schedulers),
        "nodeSelector": label_maps,
        "tolerations": _tolerations,
        "affinity": _affinities,
        "volumes": _volumes,
        "priorityClassName": st.sampled_from(["", "high"]),
        "preemptionPolicy": st.sampled_from(["Never", "PreemptLowerPriority"]),
        "securityContext": parts(
            runAsUser=st.integers(0, 2**31 - 1), fsGroup=st.integers(0, 2**31 - 1),
            sysctls=st.just([{"name": "net.core.somaxconn", "value": "1"}]),
        ),
        "schedulingGates": named(words.map("a.example/{}".format), st.just({}), 2),
        "resourceClaims": st.just([{"name": "g", "resourceClaimTemplateName": "gpu"}]),
        "hostAliases": st.just([{"ip": "10.0.0.1", "hostnames": ["db"]}]),
        "dnsPolicy": st.sampled_from(["ClusterFirst", "Default"]),
        "dnsConfig": st.just({"options": [{"name": "ndots", "value": "2"}]}),
        "enableServiceLinks": st.booleans(),
        "shareProcessNamespace": st.booleans(),
        "runtimeClassName": st.just("fast"),
        "readinessGates": st.just([{"conditionType": "a.example/up"}]),
        "overhead": st.just({"cpu": "100m"}),
    }  # fmt: skip
    required = {"containers": named(words, containers(), 2).filter(bool)}
    return _json(st.fixed_dictionaries(required, optional=optional))
