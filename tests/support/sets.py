"""Builders of sets, gangs and reservations as the controllers see them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from api.jsons import Json, JsonObject
from api.objects import timestamp
from api.podcliqueset import PodCliqueSetSpec
from api.podgang import PodGangSpec, PodGangStatus
from api.reservation import ReservationSpec, ReservationStatus, State
from api.streams import Meta, Owner, Pod, PodClique, PodCliqueSpec
from controller.gangs.views import GangView, Member, Reservation, members_of
from controller.podgang import Gang
from tests.support.clusters import pod

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OWNER = Owner(kind="PodCliqueSet", name="demo", uid="set-uid", controller=True)


def clique(name: str, replicas: int, minimum: int | None = None, **more: Json) -> JsonObject:
    spec: JsonObject = {
        "roleName": name,
        "replicas": replicas,
        "podSpec": {"containers": [{"name": "main", "image": "model"}]},
        **more,
    }
    if minimum is not None:
        spec["minAvailable"] = minimum
    return {"name": name, "labels": {"role": name}, "spec": spec}


def set_spec(
    *cliques: JsonObject, replicas: int = 1, groups: list[JsonObject] | None = None
) -> PodCliqueSetSpec:
    template = {"cliques": list(cliques), "podCliqueScalingGroups": groups or []}
    return PodCliqueSetSpec.model_validate({"replicas": replicas, "template": template})


def set_meta(name: str = "demo") -> Meta:
    return Meta(name=name, namespace="default", uid="set-uid", generation=1)


def member(clique_name: str, index: int, *, gated: bool = True, node: str = "") -> Pod:
    """A pod of the gang `demo-0`, gated or lifted, bound if a node is given."""
    gates: Json = [{"name": "penstock.dev/gang"}] if gated else []
    return pod(
        f"{clique_name}-{index}",
        spec={
            "hostname": f"{clique_name}-{index}", "schedulingGates": gates, "nodeName": node,
        },
        metadata={"ownerReferences": [msgspec.to_builtins(owned_by(clique_name))]},
    )  # fmt: skip


def owned_by(clique_name: str) -> Owner:
    """What the pods of a clique, as `pod_clique` makes it, say of their owner."""
    return Owner(kind="PodClique", name=clique_name, uid=f"uid-{clique_name}", controller=True)


def gang(
    groups: Mapping[str, tuple[int, int | Sequence[int]]],
    *,
    name: str = "demo-0",
    initialized: bool = True,
) -> Gang:
    """A gang whose cliques have (minimum, pods referred to: how many, or which)."""
    condition = {
        "type": "Initialized",
        "status": "True" if initialized else "False",
        "reason": "x",
        "lastTransitionTime": timestamp(NOW),
    }
    spec = {
        "podgroups": [
            {
                "name": group,
                "minReplicas": minimum,
                "podReferences": [
                    {"namespace": "default", "name": f"{group}-{i}"}
                    for i in (range(which) if isinstance(which, int) else which)
                ],
            }
            for group, (minimum, which) in groups.items()
        ]
    }
    meta = Meta(name=name, namespace="default", uid=f"uid-{name}", owner_references=(OWNER,))
    return Gang(
        meta,
        PodGangSpec.model_validate(spec),
        PodGangStatus.model_validate({"conditions": [condition]}),
    )


def reservation(
    slots: dict[tuple[str, int], str],
    state: State = State.HELD,
    deadline: datetime = NOW,
    name: str = "demo-0",
    bind_by: datetime | None = NOW + timedelta(days=10),
) -> Reservation:
    """A reservation of these slots; one GPU each. What was lifted has time until `bind_by`."""
    groups = [
        {
            "name": group,
            "requests": {"nvidia.com/gpu": "1", "pods": "1"},
            "slots": [{"index": i, "node": n} for (g, i), n in slots.items() if g == group],
        }
        for group in sorted({group for group, _ in slots})
    ]
    spec = {
        "gang": {"name": name, "uid": f"uid-{name}"},
        "deadline": timestamp(deadline),
        "groups": groups,
    }
    return Reservation(
        Meta(name=name, namespace="default", uid=f"uid-rsv-{name}", resource_version="7"),
        ReservationSpec.model_validate(spec),
        ReservationStatus(state=state, bind_by=timestamp(bind_by) if bind_by else ""),
    )


def view(
    seen: Gang,
    pods: list[Pod],
    booked: Reservation | None = None,
    *,
    base_started: bool = True,
    lost: frozenset[str] = frozenset(),
    cliques: Sequence[PodClique] = (),
) -> GangView:
    by_key = {(p.metadata.namespace, p.metadata.name): p for p in pods}
    groups = seen.spec.pod_groups
    own = {group.name: pod_clique(group.name, group.min_replicas) for group in groups}
    own |= {each.metadata.name: each for each in cliques}
    return GangView(seen, members_of(seen, by_key, own), booked, base_started, lost, own)


def pod_clique(name: str, minimum: int, *after: str) -> PodClique:
    """A PodClique of the set, which waits for the ones named."""
    meta = Meta(name=name, namespace="default", uid=f"uid-{name}", owner_references=(OWNER,))
    return PodClique(meta, PodCliqueSpec(minimum, minimum, after))


def slots_of(members: tuple[Member, ...]) -> list[tuple[str, int]]:
    return [m.slot for m in members]
