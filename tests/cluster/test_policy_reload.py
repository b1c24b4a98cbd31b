"""The policy is edited while Penstock runs: what counts when, and what outlives a bad edit."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from api import exits, names
from api.jsons import JsonObject
from api.objects import condition_of
from api.streams import Custom
from controller.gangs.policy_keeping import NOT_TAKEN
from controller.podgang import read_gang
from kube.client import Client
from kube.errors import ApiError, Invalid, NotFound
from kube.resources import CONFIGMAPS, EVENTS, PODCLIQUESETS, PODGANGS
from kube.transport import Call
from penstock.plugin import planning
from penstock.policy import in_force
from tests.support import policies
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl, connect, engine_set
from tests.webhook.running import JSON, VALIDATE, files_in, serving

_log = logging.getLogger(__name__)

pytestmark = pytest.mark.cluster

SMALL = "queues: [{name: small, namespaces: ['*'], default: true, limits: {gangs: %d}}]"
BAD = "queues:\n  - nam: small\n"
# Five times what a policy may take to be gone by everywhere.
PATIENCE = 10.0
EDITS, PACE = 1000, 0.06
# The machine's two cores are the cluster's, too: who asks without a rest slows the edits down.
EDITORS, ASKERS, REST = 4, 4, 0.05


class Editor:
    """A person who edits the policy."""

    def __init__(self, person: Client) -> None:
        self._person = person

    async def says(self, text: str) -> None:
        body: JsonObject = {"data": {names.POLICY_KEY: text}}
        try:
            await self._person.merge_patch(CONFIGMAPS, names.POLICY_CONFIG, body, names.NAMESPACE)
        except NotFound:
            kind: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap"}
            metadata: JsonObject = {"name": names.POLICY_CONFIG}
            whole: JsonObject = {**kind, "metadata": metadata, **body}
            await self._person.create(CONFIGMAPS, whole, names.NAMESPACE)

    async def told(self) -> list[str]:
        """Read the notes of Events that warn of a policy that is not gone by."""
        found = msgspec.json.decode(await self._person.raw_get(EVENTS.path(names.NAMESPACE)))
        return [
            str(each["note"]) for each in found["items"] if each.get("reason") == NOT_TAKEN
        ]  # fmt: skip

    async def status(self) -> JsonObject:
        """Read what the policy is said to have become."""
        path = CONFIGMAPS.path(names.NAMESPACE, names.POLICY_CONFIG)
        found = msgspec.json.decode(await self._person.raw_get(path))
        told = found["metadata"].get("annotations", {}).get(names.POLICY_STATUS, "{}")
        read: JsonObject = msgspec.json.decode(told)
        return read


@pytest.fixture
async def editor(installed: Installed, person: Client) -> AsyncIterator[Editor]:
    async with policies.unlooked_at(person):
        yield Editor(person)
        await policies.take_back(person)


async def refusal(person: Client, space: str, replicas: int) -> str:
    """Try a set of so many gangs; what it is refused with, or nothing."""
    body = engine_set("tried", pods=1, gpus=0, replicas=replicas)
    tried = Call("POST", PODCLIQUESETS.path(space), {"dryRun": "All"}, msgspec.json.encode(body))
    try:
        await person._transport.send(tried)
    except Invalid as error:
        return error.message
    return ""


def review_of(gangs: int) -> bytes:
    """Ask what becomes of a set of so many gangs."""
    asked = {
        "uid": "u-1",
        "operation": "CREATE",
        "kind": {"kind": "PodCliqueSet"},
        "namespace": "anywhere",
        "userInfo": {"username": "system:masters", "groups": ["system:masters"]},
        "object": engine_set("tried", pods=1, gpus=0, replicas=gangs),
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    return msgspec.json.encode(review)


@asynccontextmanager
async def patience(what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(PATIENCE):
            yield
    except TimeoutError:
        raise AssertionError(f"not within {PATIENCE:.0f} s: {what}") from None


async def test_an_edit_counts_at_once_and_a_bad_one_leaves_the_last_good_one(
    editor: Editor, cluster: Cluster, person: Client, space: str
) -> None:
    assert await refusal(person, space, 3) == ""
    await editor.says(SMALL % 2)
    async with patience("the policy is gone by"):
        while "policy rule queue-gangs-are-few" not in await refusal(person, space, 3):
            await asyncio.sleep(0.1)
    assert await refusal(person, space, 2) == ""
    async with patience("it is said that the policy is good"):
        while (await editor.status()).get("valid") is not True:
            await asyncio.sleep(0.1)
    good = (await editor.status())["revision"]
    told = await in_force.asked(person, "", system=names.NAMESPACE)
    assert (told.code, told.data["state"]) == (exits.OK, "InForce")

    await editor.says(BAD)
    async with patience("it is said that the policy is bad"):
        while (await editor.status()).get("valid") is not False:
            await asyncio.sleep(0.1)
    status = await editor.status()
    assert "line 2: queues[0]" in str(status["fault"])
    assert status["revision"] == good
    assert "queue-gangs-are-few" in await refusal(person, space, 3)
    after = await in_force.asked(person, "", system=names.NAMESPACE)
    assert (after.code, after.data["state"]) == (planning.REFUSED, "Refused")
    before = told.data["inForce"]
    assert isinstance(before, dict)
    assert before["since"]
    assert after.data["inForce"] == {**before, "from": "LastGood"}
    async with patience("an Event tells of it"):
        while not any("line 2: queues[0]" in note for note in await editor.told()):
            await asyncio.sleep(0.1)


async def test_a_gang_timeout_counts_for_gangs_that_wait_already(
    editor: Editor, cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(engine_set("patient", pods=1, gpus=1, selector="no-node-has-this"))
    await cluster.gang("patient-0", reason=names.REASON_NEVER_FITS)

    async def told(status: str, reason: str) -> None:
        async def attempt() -> bool | None:
            found = await cluster.client.get(PODGANGS, Custom, "patient-0", cluster.namespace)
            gang = read_gang(found)
            late = condition_of(gang.status.conditions, names.TIMED_OUT) if gang else None
            return (late is not None and (late.status, late.reason) == (status, reason)) or None

        await cluster.until(attempt, f"{names.TIMED_OUT} {status} {reason}")

    await editor.says("timeouts: {gang: 1s}")
    await told("True", names.REASON_TIMED_OUT)
    await editor.says("timeouts: {gang: 1h}")
    await told("False", names.REASON_MAY_WAIT_LONGER)


async def test_to_delete_the_config_map_is_not_to_have_no_policy(
    editor: Editor, cluster: Cluster, person: Client, space: str
) -> None:
    await editor.says(SMALL % 2)
    async with patience("the policy is kept"):
        while (await editor.status()).get("valid") is not True:
            await asyncio.sleep(0.1)
    await person.delete(CONFIGMAPS, names.POLICY_CONFIG, names.NAMESPACE)
    for _ in range(20):
        assert "queue-gangs-are-few" in await refusal(person, space, 3)
        await asyncio.sleep(0.05)


async def test_a_webhook_that_starts_beside_a_bad_policy_goes_by_the_last_good_one(
    editor: Editor, installed: Installed, tmp_path: Path
) -> None:
    await editor.says(SMALL % 7)
    async with patience("the policy is kept"):
        while (await editor.status()).get("valid") is not True:
            await asyncio.sleep(0.1)
    await editor.says(BAD)
    files = files_in(tmp_path / "tls")
    files.issue()
    own = installed.installation.kubeconfig(names.WEBHOOK_ACCOUNT)
    with serving(files, tmp_path / "log", "--kubeconfig", str(own)) as running:
        connection = running.connect()
        connection.request("GET", "/metrics")
        written = connection.getresponse().read().decode()
        answers = []
        for gangs in (7, 8):
            connection.request("POST", VALIDATE, body=review_of(gangs), headers=JSON)
            answers.append(msgspec.json.decode(connection.getresponse().read())["response"])
        connection.close()
    assert answers[0]["allowed"], answers[0]
    assert "policy rule queue-gangs-are-few" in answers[1]["status"]["message"]
    assert f"{names.KEPT_POLICY_CONFIG} key policy.yaml" in written


# Both are broken by every set that is tried, and each says which policy it is of.
TWOFOLD = SMALL.replace("limits: {gangs: %d}", "limits: {gangs: %d, podsPerGang: {min: %d}}")
FEW, LOW = re.compile(r"takes at most (\d+) of one set"), re.compile(r"takes none below (\d+)")


def twofold(number: int) -> str:
    return TWOFOLD % (number, number + 1000)


def policy_of(said: str) -> int | None:
    """Tell by which policy a set was refused, seeing that it was by that one alone."""
    if not said:
        return None
    few, low = FEW.findall(said), LOW.findall(said)
    assert (len(few), len(low)) == (1, 1), said
    assert int(low[0]) == int(few[0]) + 1000, said
    return int(few[0])


def test_an_answer_by_two_policies_would_be_seen() -> None:
    mixed = "takes at most 3 of one set; takes none below 1004"
    assert policy_of(mixed.replace("1004", "1003")) == 3
    for each in (mixed, "takes at most 3 of one set", f"{mixed}; {mixed}"):
        with pytest.raises(AssertionError):
            policy_of(each)


@dataclass
class Storm:
    """People who try sets, and people who edit the policy, each over a connection of their own."""

    person: Client
    space: str
    over: asyncio.Event = field(default_factory=asyncio.Event)
    seen: list[int] = field(default_factory=list)

    async def ask(self) -> None:
        """Try sets until it is over; each is refused, by one policy."""
        while not self.over.is_set():
            try:
                said = await refusal(self.person, self.space, 60)
            except ApiError as error:
                raise AssertionError(f"a request failed: {error}") from error
            found = policy_of(said)
            # There is always one: a bad edit leaves the last good policy.
            assert found is not None, "a set was let in"
            self.seen.append(found)
            await asyncio.sleep(REST)

    async def everywhere(self, number: int) -> None:
        """Wait until all replicas go by this policy, as so many answers in a row show."""
        async with patience(f"policy {number} is gone by"):
            in_a_row = 0
            while in_a_row < 20:
                same = policy_of(await refusal(self.person, self.space, 60)) == number
                in_a_row = in_a_row + 1 if same else 0

    async def edits(self, kubeconfig: Path) -> float:
        """Edit the policy at its pace, every tenth time badly; give how many minutes that took."""
        loop = asyncio.get_running_loop()
        numbers, begun = iter(range(EDITS)), loop.time()

        async def edit() -> None:
            async with connect(kubeconfig) as own:
                for number in numbers:
                    await asyncio.sleep(begun + number * PACE - loop.time())
                    await Editor(own).says(BAD if number % 10 == 9 else twofold(number % 50 + 1))

        async with asyncio.TaskGroup() as group:
            for _ in range(EDITORS):
                group.create_task(edit())
        return (loop.time() - begun) / 60


@pytest.mark.long
async def test_a_storm_of_edits_fails_no_request_and_mixes_no_policies(
    editor: Editor, installed: Installed, cluster: Cluster, person: Client, space: str
) -> None:
    """A thousand edits a minute, every tenth of them bad; each policy's limits are its own."""
    storm = Storm(person, space)
    await editor.says(twofold(1))
    await storm.everywhere(1)
    async with asyncio.TaskGroup() as group:
        for _ in range(ASKERS):
            group.create_task(storm.ask())
        minutes = await storm.edits(installed.lab.kubeconfig)
        # The last word is a bad one, so that what holds is what was good before it.
        await editor.says(twofold(51))
        await storm.everywhere(51)
        await editor.says(BAD)
        async with patience("it is said that the last edit is bad"):
            while (await editor.status()).get("valid") is not False:
                await asyncio.sleep(0.1)
        await storm.everywhere(51)
        storm.over.set()
    policies_met = len({*storm.seen})
    _log.info("%.0f edits a minute, %d answers", EDITS / minutes, len(storm.seen))
    assert len(storm.seen) > 100
    assert policies_met > 20, "the policy hardly changed while it was asked"
    assert minutes < 5 * EDITS * PACE / 60
