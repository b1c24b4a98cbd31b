"""Each kind of rule in each mode, as people with rights of their own meet it at the API server."""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from api import names
from api.jsons import JsonObject
from kube.client import Client
from kube.errors import NotFound
from kube.resources import CONFIGMAPS, PODCLIQUESETS, PODS
from penstock.lab.layout import Layout
from tests.support import policies, ruled
from tests.support.asking import DRY_RUN, JSON, MERGE_PATCH, Asker, Seen, asking
from tests.support.installed import Installed
from tests.support.living import connect, namespace
from tests.support.ruled import ANNA, BERTA, MODES, OF_PODS, OF_SETS, SUBMITTERS, Breaks
from tests.support.tenants import RBAC, ROLEBINDINGS, ROLES

pytestmark = pytest.mark.cluster

TRIES: Final = 200


@dataclass(frozen=True)
class Place:
    """A namespace under the policy, and who asks in it."""

    asker: Asker
    space: str

    def set(self, body: JsonObject, user: str = ANNA, group: str = SUBMITTERS) -> Seen:
        """Try to create a set; nothing is stored."""
        path = f"{PODCLIQUESETS.path(self.space)}{DRY_RUN}"
        return self.asker.ask("POST", path, body, user=user, group=group)

    def pod(self, body: JsonObject, user: str = ANNA, group: str = SUBMITTERS) -> Seen:
        path = f"{PODS.path(self.space)}{DRY_RUN}"
        return self.asker.ask("POST", path, body, user=user, group=group)


@pytest.fixture(scope="module")
def place(installed: Installed) -> Iterator[Place]:
    """Have the policy hold in a namespace where two people may write sets and pods."""
    kubeconfig = installed.lab.kubeconfig
    with asyncio.Runner() as runner, asking(kubeconfig) as asker:
        client = connect(kubeconfig)
        runner.run(client.__aenter__())
        space = namespace(client, f"ruled-{secrets.token_hex(4)}")
        name = runner.run(space.__aenter__())
        try:
            runner.run(_prepare(client, name))
            _until(lambda: _counts(Place(asker, name)), "the policy and the rights count")
            yield Place(asker, name)
        finally:
            runner.run(policies.take_back(client))
            runner.run(space.__aexit__(None, None, None))
            runner.run(client.__aexit__(None, None, None))


def _counts(place: Place) -> bool:
    broken = ruled.plain("enforce")
    ruled.too_many_gangs(broken)
    seen = [place.set(broken) for _ in range(5)]
    return place.set(ruled.plain("enforce")).done and all(each.code == 422 for each in seen)


async def _prepare(client: Client, space: str) -> None:
    rules: JsonObject = {
        "rules": [
            {
                "apiGroups": ["grove.io"],
                "resources": ["podcliquesets"],
                "verbs": ["get", "create", "update", "patch", "delete"],
            },
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]},
            {
                "apiGroups": [""],
                "resources": ["serviceaccounts"],
                "resourceNames": ["default"],
                "verbs": ["use"],
            },
        ]
    }
    await client.create(ROLES, {"metadata": {"name": "people"}, **rules}, space)
    people = [{"apiGroup": RBAC, "kind": "User", "name": name} for name in (ANNA, BERTA)]
    role = {"apiGroup": RBAC, "kind": "Role", "name": "people"}
    binding = {"metadata": {"name": "people"}, "roleRef": role, "subjects": people}
    await client.create(ROLEBINDINGS, binding, space)
    body: JsonObject = {"data": {names.POLICY_KEY: ruled.policy(space)}}
    try:
        await client.merge_patch(CONFIGMAPS, names.POLICY_CONFIG, body, names.NAMESPACE)
    except NotFound:
        metadata: JsonObject = {"name": names.POLICY_CONFIG}
        await client.create(CONFIGMAPS, {"metadata": metadata, **body}, names.NAMESPACE)


def _until(attempt: Callable[[], bool], what: str) -> None:
    """Try until it is so."""
    for _ in range(TRIES):
        if attempt():
            return
        time.sleep(0.1)
    raise AssertionError(f"not after {TRIES} looks: {what}")


def comes_of(seen: Seen, rule: str, mode: str) -> None:
    """Hold an answer against what a broken rule comes to in its mode."""
    told = f"(policy rule {rule})"
    if mode == "enforce":
        assert seen.code == 422, seen.body
        assert told in seen.message
        return
    assert seen.code == 201, seen.message
    assert any(told in each for each in seen.warnings) == (mode == "warn"), seen.warnings


@pytest.mark.parametrize("mode", MODES)
def test_who_keeps_to_all_rules_is_let_in_in_every_mode(place: Place, mode: str) -> None:
    for seen in (place.set(ruled.plain(mode)), place.pod(ruled.gang_pod(mode))):
        assert seen.code == 201, seen.message
        assert not [each for each in seen.warnings if "policy rule" in each]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("rule", "breaks"), OF_SETS, ids=[f"{rule}-{each.__name__}" for rule, each in OF_SETS]
)
def test_a_set_that_breaks_a_rule(place: Place, rule: str, breaks: Breaks, mode: str) -> None:
    body = ruled.plain(mode)
    breaks(body)
    comes_of(place.set(body), rule if rule.startswith("queue-") else f"{rule}-{mode}", mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("rule", "breaks"), OF_PODS, ids=[f"{rule}-{each.__name__}" for rule, each in OF_PODS]
)
def test_a_plain_pod_that_breaks_a_rule(place: Place, rule: str, breaks: Breaks, mode: str) -> None:
    body = ruled.gang_pod(mode)
    breaks(body)
    comes_of(place.pod(body), f"{rule}-{mode}", mode)


@pytest.mark.parametrize("mode", MODES)
def test_who_is_not_among_a_queues_submitters(place: Place, mode: str) -> None:
    for seen in (
        place.set(ruled.plain(mode), BERTA, "others"),
        place.pod(ruled.gang_pod(mode), BERTA, "others"),
    ):
        comes_of(seen, "queue-submitter", mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", names.QUEUE_LABELS)
def test_a_queue_of_other_namespaces_is_not_had_by_its_label(
    place: Place, mode: str, key: str
) -> None:
    body, pod = ruled.plain(), ruled.gang_pod("")
    for each in (body, pod):
        ruled.label(each, key, f"{ruled.CLOSED}-{mode}")
    comes_of(place.set(body), "queue-open", mode)
    comes_of(place.pod(pod), "queue-open", mode)


def test_who_is_exempt_is_let_off_those_rules_until_that_is_over(place: Place) -> None:
    def named(name: str, *breaks: Breaks) -> Seen:
        body = ruled.plain("enforce")
        metadata = body["metadata"]
        assert isinstance(metadata, dict)
        metadata["name"] = name
        for each in breaks:
            each(body)
        return place.set(body)

    assert named("excused", ruled.too_many_gangs).code == 201
    comes_of(named("late", ruled.too_many_gangs), "queue-gangs-are-few", "enforce")
    comes_of(named("excused", ruled.too_important), "queue-priorities-are-allowed", "enforce")


def test_no_second_label_and_no_clique_names_another_queue(place: Place) -> None:
    two = ruled.plain("enforce")
    ruled.label(two, names.KAI_QUEUE_LABEL, ruled.OWN)
    within = ruled.plain("enforce")
    ruled.cliques(within)[0]["labels"] = {names.QUEUE_LABEL: ruled.OWN}
    for body in (two, within):
        comes_of(place.set(body), "queue-open", "enforce")


def test_who_names_no_queue_is_given_the_default_ones_label_and_what_it_gives(
    place: Place,
) -> None:
    made = place.set(ruled.plain()).object
    metadata = made["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["labels"] == {names.QUEUE_LABEL: ruled.OWN}
    assert metadata["annotations"] == {names.STARTUP_ANNOTATION: "gate"}
    main = ruled.container(made)
    assert main["resources"] == ruled.container(ruled.plain())["resources"]
    port: JsonObject = {"name": "http", "containerPort": 8000, "protocol": "TCP"}
    assert main["ports"] == [port]

    pod = place.pod(ruled.gang_pod("")).object
    spec = pod["spec"]
    assert isinstance(spec, dict)
    assert spec["readinessGates"] == [{"conditionType": names.READINESS_GATE}]
    main = ruled.container(pod)
    assert (main["resources"], main["ports"]) == ({"requests": {"cpu": "250m"}}, [port])


def test_a_set_that_is_stored_keeps_to_its_queue_and_to_its_people(place: Place) -> None:
    stored = ruled.plain("enforce")
    stored["metadata"] = {**dict(stored["metadata"]), "name": "kept"}  # type: ignore[arg-type]
    ruled.pod(stored)["schedulingGates"] = [{"name": "example.com/never"}]
    path = PODCLIQUESETS.path(place.space, "kept")
    made = place.asker.ask(
        "POST", PODCLIQUESETS.path(place.space), stored, user=ANNA, group=SUBMITTERS
    )
    assert made.code == 201, made.message
    try:
        body: JsonObject = {"spec": {"replicas": 2}}
        elsewhere = f"{ruled.CLOSED}-enforce"
        move: JsonObject = {"metadata": {"labels": {names.QUEUE_LABEL: elsewhere}}}

        def patched(what: JsonObject, user: str, group: str) -> Seen:
            return place.asker.ask(
                "PATCH", f"{path}{DRY_RUN}", what, media=MERGE_PATCH, user=user, group=group
            )

        assert patched(body, ANNA, SUBMITTERS).done
        refused = patched(body, BERTA, "others")
        assert refused.code == 422
        assert "(policy rule queue-submitter)" in refused.message
        refused = patched(move, ANNA, SUBMITTERS)
        assert refused.code == 422
        assert "(policy rule queue-open)" in refused.message
    finally:
        gone = place.asker.ask("DELETE", path, user=ANNA, group=SUBMITTERS, media=JSON)
        assert gone.done, gone.message


def test_those_who_ask_have_no_rights_but_their_own(place: Place) -> None:
    body = ruled.plain("off")
    assert place.set(body, "carla@example.com", SUBMITTERS).code == 403
    other = PODCLIQUESETS.path("default") + DRY_RUN
    assert place.asker.ask("POST", other, body, user=ANNA, group=SUBMITTERS).code == 403
    policy = CONFIGMAPS.path(names.NAMESPACE, names.POLICY_CONFIG)
    assert place.asker.ask("GET", policy, user=ANNA, group=SUBMITTERS).code == 403


def test_what_is_only_noted_is_in_the_audit_log_and_what_is_off_is_not(
    place: Place, installed: Installed
) -> None:
    for mode in ("off", "audit"):
        body = ruled.plain(mode)
        ruled.forbidden(body)
        assert place.set(body).code == 201
    folder = Layout.of(installed.lab.directory).audit
    _until(lambda: _noted(folder, place.space, "cel-set-audit"), "the note is in the log")
    assert not _noted(folder, place.space, "cel-set-off")


def _noted(folder: Path, space: str, rule: str) -> bool:
    files = [each for each in folder.rglob("*") if each.is_file()]
    lines = [line for each in files for line in each.read_text(errors="replace").splitlines()]
    return any(f'"{space}"' in line and f'"{rule}"' in line for line in lines)
