"""The init way: what a pod that waits carries, and what its account may do."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
import pytest

from api.jsons import JsonObject
from api.podcliqueset import PodCliqueSetSpec
from api.streams import (
    Condition,
    Container,
    ContainerState,
    ContainerStatus,
    Meta,
    Pod,
    PodStatus,
    Running,
)
from controller.voicing import Tell
from controller.workloads.expansion import expand
from controller.workloads.making import rights, waiting
from controller.workloads.planning import plan
from controller.workloads.stepping import Again, Change, Create, Remove, Say, Step
from controller.workloads.views import Choices, SetView, Startup, Thing
from kube.resources import (
    PODCLIQUESETS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICEACCOUNTS,
    Resource,
)
from tests.support.setviews import NOW, clique, made, set_spec, with_pods

INIT = Choices(startup=Startup.INIT, waiter_image="registry.example/waiter:1")
ACCOUNT, ROLE, TOKEN = "demo", "grove.io:pcs:demo", "demo-ic-sat"
LABELS = {
    "app.kubernetes.io/managed-by": "grove-operator",
    "app.kubernetes.io/part-of": "demo",
}


def spec_of(
    how: str = "CliqueStartupTypeInOrder", pod_spec: JsonObject | None = None
) -> PodCliqueSetSpec:
    spec: JsonObject = pod_spec or {"containers": [{"name": "main"}]}
    raw = set_spec(clique("a", 2), clique("b", 1, podSpec=spec)).model_dump(by_alias=True)
    raw["template"]["cliqueStartupType"] = how
    return PodCliqueSetSpec.model_validate(raw)


def view_of(
    spec: PodCliqueSetSpec | None = None, choices: Choices = INIT, *, way: str = ""
) -> SetView:
    view = replace(made(spec or spec_of()), choices=choices)
    notes = {"penstock.dev/startup": way} if way else {}
    return replace(view, metadata=msgspec.structs.replace(view.metadata, annotations=notes))


def pod_spec(view: SetView, name: str = "demo-0-b", spec: JsonObject | None = None) -> JsonObject:
    want = expand(view).cliques[name]
    return waiting.shaped(view, want, 0, want.template.spec.pod_spec if spec is None else spec)


def waiter_of(spec: JsonObject) -> JsonObject:
    containers = spec["initContainers"]
    assert isinstance(containers, list)
    assert isinstance(containers[-1], dict)
    return containers[-1]


def test_a_pod_that_waits_ends_its_init_containers_with_one_that_does_it() -> None:
    author: JsonObject = {"containers": [{"name": "main"}], "initContainers": [{"name": "load"}]}
    made_of = pod_spec(view_of(), spec=author)
    assert isinstance(made_of["initContainers"], list)
    assert made_of["initContainers"][0] == {"name": "load"}
    waiter = waiter_of(made_of)
    assert waiter["name"] == "grove-initc"
    assert waiter["image"] == "registry.example/waiter:1"
    assert waiter["args"] == ["--podcliques=demo-0-a:2"]
    assert waiter["volumeMounts"] == [
        {"name": "pod-info-vol", "mountPath": "/var/grove/pod-info", "readOnly": True},
        {
            "name": "sa-token-secret-vol",
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            "readOnly": True,
        },
    ]
    pod_label = "metadata.labels['grove.io/podgang']"
    assert made_of["volumes"] == [
        {
            "name": "pod-info-vol",
            "downwardAPI": {
                "items": [
                    {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
                    {"path": "podgangname", "fieldRef": {"fieldPath": pod_label}},
                ]
            },
        },
        {
            "name": "sa-token-secret-vol",
            "secret": {"secretName": "demo-ic-sat", "defaultMode": 420},
        },
    ]
    assert author == {"containers": [{"name": "main"}], "initContainers": [{"name": "load"}]}


def test_a_clique_that_waits_for_nobody_is_left_alone() -> None:
    view = view_of()
    assert pod_spec(view, "demo-0-a") == expand(view).cliques["demo-0-a"].template.spec.pod_spec


def test_no_container_of_the_author_gets_the_token() -> None:
    mount: JsonObject = {"name": "sa-token-secret-vol", "mountPath": "/x"}
    own: JsonObject = {"name": "data", "mountPath": "/data"}
    curious: JsonObject = {"name": "c", "volumeMounts": [mount, own]}
    spec = pod_spec(view_of(), spec={"containers": [curious], "initContainers": [curious]})
    for kind in ("containers", "initContainers"):
        containers = spec[kind]
        assert isinstance(containers, list)
        assert containers[0] == {"name": "c", "volumeMounts": [own]}


@pytest.mark.parametrize(
    ("choices", "annotation", "way", "trouble"),
    [
        pytest.param(Choices(), "", Startup.GATE, "", id="the gate unless chosen otherwise"),
        pytest.param(INIT, "", Startup.INIT, "", id="as was chosen"),
        pytest.param(INIT, "gate", Startup.GATE, "", id="the set asks for the gate"),
        pytest.param(
            Choices(waiter_image="i"), "init", Startup.INIT, "", id="the set asks for init"
        ),
        pytest.param(
            Choices(), "init", Startup.GATE,
            "its cliques are to wait in init containers, but workloads has no image for them: they"
            " wait behind the gate instead; start workloads with --waiter-image",
            id="no image",
        ),
        pytest.param(
            INIT, "soon", Startup.INIT,
            "the annotation penstock.dev/startup is 'soon' and must be gate or init; its cliques"
            " wait by init meanwhile",
            id="no such way",
        ),
    ],
)  # fmt: skip
def test_the_way_is_the_sets_else_what_was_chosen(
    choices: Choices, annotation: str, way: Startup, trouble: str
) -> None:
    view = view_of(choices=choices, way=annotation)
    assert waiting.way(view) is way
    assert waiting.way_trouble(view) == trouble
    assert ("initContainers" in pod_spec(view)) == (way is Startup.INIT)


def test_where_containers_see_into_each_other_nobody_waits_beside_the_token() -> None:
    """One that runs from the start would read the waiter's files through its process."""
    shared: JsonObject = {"containers": [{"name": "main"}], "shareProcessNamespace": True}
    view = view_of(spec_of(pod_spec=shared))
    assert waiting.way(view) is Startup.GATE
    assert "share one process namespace" in waiting.way_trouble(view)
    assert pod_spec(view) == shared
    # Nor in a clique that was changed by hand.
    changed = pod_spec(view_of(), spec=shared)
    assert waiter_of(changed)["name"] == "grove-initc"
    assert "shareProcessNamespace" not in changed


def test_a_way_that_cannot_be_gone_is_told_as_an_event() -> None:
    (told,) = steps(view_of(choices=Choices(), way="init"))
    assert isinstance(told, Tell)
    assert (told.name, told.reason, told.warning) == ("demo", "StartupWayUnavailable", True)


def steps(view: SetView) -> list[Step]:
    return list(rights.steps(view, expand(view), NOW))


def thing(body: JsonObject, *, leaving: bool = False) -> Thing:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    name = str(metadata["name"])
    return Thing(
        Meta(name=name, uid=f"uid-{name}", deletion_timestamp=NOW if leaving else None), body
    )


def with_things(view: SetView, creations: Mapping[Resource, JsonObject]) -> SetView:
    found = {r: {(t := thing(body)).metadata.name: t} for r, body in creations.items()}
    return replace(view, things={**view.things, **found})


def passes(view: SetView) -> Iterator[list[Step]]:
    """What each look in turn does, everything having been done that the ones before said."""
    while found := steps(view):
        yield found
        fresh = {
            step.resource: step.body
            for step in found
            if isinstance(step, Create) and step.resource is not SECRETS
        }
        view = with_things(view, fresh)
        if not fresh:
            return


def waiting_view() -> SetView:
    """The first pods of a set are missing."""
    return with_pods(view_of(), "demo-0-b")


def test_rights_are_made_one_after_the_other_and_only_for_the_sets_own_account() -> None:
    created = [
        [step.resource for step in each if isinstance(step, Create)]
        for each in passes(waiting_view())
    ]
    assert created == [
        [SERVICEACCOUNTS],
        [ROLES, SECRETS],
        [ROLE_BINDINGS, SECRETS],
        [SECRETS],
    ]


def test_rights_are_called_and_labelled_as_grove_does_it_and_are_the_sets() -> None:
    bodies = {s.resource: s.body for each in passes(waiting_view()) for s in each
              if isinstance(s, Create)}  # fmt: skip
    expected = {
        SERVICEACCOUNTS: (ACCOUNT, "demo", "pod-service-account"),
        ROLES: (ROLE, "grove.io-pcs-demo", "pod-role"),
        ROLE_BINDINGS: (ROLE, "grove.io-pcs-demo", "pod-role-binding"),
        SECRETS: (TOKEN, "demo-ic-sat", "pod-sa-token-secret"),
    }
    for resource, (name, label, component) in expected.items():
        metadata = bodies[resource]["metadata"]
        assert isinstance(metadata, dict)
        assert (metadata["name"], metadata["namespace"]) == (name, "default")
        more = {"app.kubernetes.io/name": label, "app.kubernetes.io/component": component}
        assert metadata["labels"] == LABELS | more
        owners = metadata["ownerReferences"]
        assert isinstance(owners, list)
        assert isinstance(owners[0], dict)
        assert (owners[0]["uid"], owners[0]["controller"]) == ("set-uid", True)
    assert bodies[ROLES]["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["pods", "pods/status"],
            "verbs": ["get", "list", "watch"],
        }
    ]
    assert bodies[ROLE_BINDINGS]["subjects"] == [
        {"kind": "ServiceAccount", "name": "demo", "namespace": "default"}
    ]


def test_a_token_is_bound_to_the_account_by_its_uid() -> None:
    *_, last = passes(waiting_view())
    (step,) = last
    assert isinstance(step, Create)
    assert step.body["type"] == "kubernetes.io/service-account-token"
    assert "data" not in step.body
    metadata = step.body["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["annotations"] == {
        "kubernetes.io/service-account.name": "demo",
        "kubernetes.io/service-account.uid": "uid-demo",
    }


def test_without_an_account_of_its_own_a_set_gets_neither_role_nor_binding_nor_token() -> None:
    # Somebody else's account is not among the set's things: its creation is refused each time.
    for _ in range(2):
        (only,) = steps(waiting_view())
        assert isinstance(only, Create)
        assert only.resource is SERVICEACCOUNTS


def settled() -> SetView:
    view = waiting_view()
    for found in passes(view):
        for step in found:
            if isinstance(step, Create) and step.resource is not SECRETS:
                view = with_things(view, {step.resource: step.body})
    return with_pods(view, "demo-0-b", "ready")


def test_once_all_is_there_nothing_is_written() -> None:
    assert steps(settled()) == []


def test_a_role_that_was_widened_is_put_right() -> None:
    view = settled()
    role = view.things[ROLES][ROLE]
    wide: JsonObject = {**role.body, "rules": [{"apiGroups": ["*"], "resources": ["*"]}]}
    (step,) = steps(with_things(view, {ROLES: wide}))
    assert isinstance(step, Change)
    assert step.patch["rules"] == role.body["rules"]


def test_a_binding_of_another_role_is_made_anew() -> None:
    view = settled()
    binding = view.things[ROLE_BINDINGS][ROLE]
    odd: JsonObject = {**binding.body, "roleRef": {"kind": "ClusterRole", "name": "admin"}}
    view = with_things(view, {ROLE_BINDINGS: odd})
    assert steps(view) == [Remove(ROLE_BINDINGS, ROLE, f"uid-{ROLE}")]


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(view_of(choices=Choices()), id="the gate"),
        pytest.param(view_of(spec_of("CliqueStartupTypeAnyOrder")), id="no order"),
    ],
)
def test_rights_go_when_nobody_waits_any_more(view: SetView) -> None:
    view = replace(view, things=settled().things)
    assert [step.resource for step in steps(view) if isinstance(step, Remove)] == [
        ROLE_BINDINGS, ROLES, SERVICEACCOUNTS,
    ]  # fmt: skip


def test_rights_stay_while_a_pod_still_has_its_waiter() -> None:
    view = replace(view_of(choices=Choices()), things=settled().things)
    (pod,) = view.pods["demo-0-b"]
    old = msgspec.structs.replace(pod.spec, init_containers=(Container(name="grove-initc"),))
    pods = {**view.pods, "demo-0-b": (msgspec.structs.replace(pod, spec=old),)}
    assert steps(replace(view, pods=pods)) == []


def test_an_account_that_pods_run_as_is_left_to_them() -> None:
    lone: JsonObject = {"containers": [{"name": "main"}], "serviceAccountName": "demo"}
    view = view_of(spec_of("CliqueStartupTypeAnyOrder", lone))
    removed = [s.resource for s in steps(replace(view, things=settled().things))
               if isinstance(s, Remove)]  # fmt: skip
    assert removed == [ROLE_BINDINGS, ROLES]


def test_without_order_nothing_is_made() -> None:
    assert steps(view_of(spec_of("CliqueStartupTypeAnyOrder"))) == []
    assert steps(view_of(choices=Choices())) == []


def waiting_in_vain(
    started: datetime = NOW, up: datetime = NOW, *, ready: int = 2, running: bool = True
) -> SetView:
    """A set whose second clique waits for two pods of the first."""
    view = settled()
    parents = tuple(_ready_since(pod, up) for pod in view.pods["demo-0-a"][:ready])
    (pod,) = view.pods["demo-0-b"]
    spec = msgspec.structs.replace(pod.spec, init_containers=(Container(name="grove-initc"),))
    state = ContainerState(running=Running(started) if running else None)
    inside = (ContainerStatus(name="grove-initc", started=True, state=state),)
    status = PodStatus(init_container_statuses=inside)
    waiter = msgspec.structs.replace(pod, spec=spec, status=status)
    return replace(view, pods={"demo-0-a": parents, "demo-0-b": (waiter,)})


def _ready_since(pod: Pod, since: datetime) -> Pod:
    up = Condition("ContainersReady", "True", last_transition_time=since)
    return msgspec.structs.replace(pod, status=PodStatus(conditions=(up,)))


def codes(view: SetView, now: datetime) -> list[str]:
    return [each.code for each in rights.troubles(view, expand(view), now)]


def test_a_waiter_that_does_not_see_who_is_up_is_told_of_on_its_set() -> None:
    """So it is where somebody else's Secret has the name of the set's."""
    view, late = waiting_in_vain(), NOW + rights.IN_VAIN
    assert codes(view, NOW) == []
    assert Again(late) in rights.steps(view, expand(view), NOW)
    assert codes(view, late) == ["ERR_SECRET_CONFLICT"]
    assert Again(late) not in rights.steps(view, expand(view), late)
    said = [s for s in plan(view, late) if isinstance(s, Say) and s.resource is PODCLIQUESETS]
    errors = said[0].status["lastErrors"]
    assert isinstance(errors, list)
    (error,) = errors
    assert isinstance(error, dict)
    assert error["code"] == "ERR_SECRET_CONFLICT"
    assert "the Secret demo-ic-sat is somebody else's" in str(error["description"])


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(waiting_in_vain(started=NOW + timedelta(minutes=9)), id="it began just now"),
        pytest.param(waiting_in_vain(up=NOW + timedelta(minutes=9)), id="they were up just now"),
        pytest.param(waiting_in_vain(ready=1), id="too few are up"),
        pytest.param(waiting_in_vain(running=False), id="others run before it"),
    ],
)
def test_a_waiter_that_has_reason_to_wait_is_not_told_of(view: SetView) -> None:
    assert codes(view, NOW + timedelta(minutes=9, seconds=30)) == []
