"""`penstock tree`: a set with its gangs, groups, cliques and pods, and who waits for whom."""

from collections.abc import Iterator

from api.jsons import Json, JsonObject
from api.streams import Custom, Pod
from kube.client import Client
from kube.errors import Forbidden, NotFound
from kube.objects import Key, key_of
from kube.resources import PODCLIQUESETS
from penstock import tree
from penstock.ending import AskedWronglyError
from penstock.looking import look
from penstock.plugin import judging
from penstock.plugin.reports import Report
from penstock.plugin.scenes import not_served
from penstock.tree import Clique, SetSeen


async def asked(client: Client, namespace: str, *, name: str) -> Report:
    """Read one set and all that belongs to it; a namespace's reader may."""
    key = judging.key_meant(name, namespace)
    try:
        seen = await look(client, *key)
    except NotFound:
        there = await _sets(client, key[0])
        raise AskedWronglyError(judging.unknown("set", key, there), judging.NOT_FOUND) from None
    return Report(_data(seen), lambda wide: [tree.draw(seen, wide=wide)])


async def _sets(client: Client, namespace: str) -> list[Key]:
    """Name the sets that there are; whoever may read one namespace only is told of its own."""
    try:
        found = await client.list_pages(PODCLIQUESETS, Custom)
    except Forbidden:
        found = await client.list_pages(PODCLIQUESETS, Custom, namespace)
    except NotFound:
        raise not_served([PODCLIQUESETS]) from None
    return [key_of(each) for each in found.items]


def _data(seen: SetSeen) -> JsonObject:
    return {
        "set": {"namespace": seen.metadata.namespace, "name": seen.metadata.name},
        "replicas": seen.spec.replicas,
        "available": seen.status.available_replicas,
        "gangs": [
            {
                "name": gang.metadata.name,
                "phase": gang.status.phase.value,
                "score": gang.status.placement_score,
                "base": gang.base[1] if gang.base else None,
                "waits": [*tree.reasons(gang)],
                "cliques": [_clique(seen, clique) for clique in tree.cliques(seen, gang)],
            }
            for gang in sorted(seen.gangs, key=lambda gang: gang.metadata.name)
        ],
    }


def _clique(seen: SetSeen, clique: Clique) -> Json:
    return {
        "name": clique.name,
        "group": clique.group or None,
        "minimum": clique.minimum,
        "pods": [*_pods(seen, clique)],
        "after": [
            {"clique": parent.name, "up": parent.up, "minimum": parent.minimum}
            for parent in tree.parents(seen, clique)
        ],
    }


def _pods(seen: SetSeen, clique: Clique) -> Iterator[Json]:
    for name in clique.pods:
        pod = seen.pods.get(name)
        if pod is None:
            yield {"name": name, "phase": None, "node": None, "domain": None}
        else:
            yield {
                "name": name,
                "phase": _phase(pod),
                "node": pod.spec.node_name or None,
                "domain": [*tree.domain(pod, seen.nodes)] or None,
            }


def _phase(pod: Pod) -> str:
    return pod.status.phase if pod.spec.node_name else "Gated" if pod.gates else "Pending"
