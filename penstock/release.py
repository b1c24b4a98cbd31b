"""`penstock release`: breaks the glass, and lets gated pods go without their gangs."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import typer

from api import exits, names
from api.jsons import JsonObject
from api.streams import Pod
from controller import pace
from controller.gangs import freeing
from kube import credentials
from kube.client import Client
from kube.clock import Clock, SystemClock
from kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from kube.resources import PODS, Resource
from penstock.documents import document
from penstock.ending import run_to_end
from penstock.releasing import Batch, Scope, batches, counted, still_held

NAMESPACE: Final = "default"
AT_ONCE: Final = 16
TRIES: Final = 5  # for a pod that others write at the same time
REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview",
    namespaced=False,
)  # fmt: skip

Say = Callable[[str], None]


class _Verdict(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Verdict = _Verdict()


@dataclass
class Tally:
    """How far a release has come; `of_gang` counts the pods lifted of each gang looked at."""

    lifted: int = 0
    passed: int = 0
    """Pods that somebody else lifted or deleted meanwhile."""
    refused: list[str] = field(default_factory=list)
    of_gang: list[tuple[Batch, int]] = field(default_factory=list)

    def json(self) -> JsonObject:
        """Give it for tools."""
        return {
            "gangs": [
                {
                    "namespace": batch.namespace, "name": batch.name or None,
                    "pods": [pod.metadata.name for pod in batch.pods], "lifted": lifted,
                }
                for batch, lifted in self.of_gang
            ],
            "lifted": self.lifted,
            "byOthers": self.passed,
            "refused": [*self.refused],
            "otherGates": [*still_held([batch for batch, _ in self.of_gang])],
        }  # fmt: skip


def release(  # noqa: PLR0913  (each is a flag)
    name: str,
    *,
    everything: bool,
    namespace: str,
    yes: bool,
    output: str,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Let gated pods go at once, without waiting for room for their gangs."""
    if everything == bool(name or namespace):
        typer.echo(
            "penstock release: say what to release: --all, --namespace NAMESPACE, or NAME (see "
            "--help)",
            err=True,
        )
        sys.exit(exits.BAD_SETTINGS)
    scope = Scope(None if everything else namespace or NAMESPACE, name)

    async def work() -> Tally:
        clock = SystemClock()
        found = credentials.load(kubeconfig, context, clock, os.environ)
        # Whoever reads the answer as data reads how it goes on the side.
        say = partial(typer.echo, err=bool(output))
        async with Client(found, "release", clock) as client:
            return await carry_out(client, clock, scope, say, sure=yes)

    tally = run_to_end("release", work())
    if output:
        typer.echo(document(tally.json(), output), nl=False)
    if tally.refused:
        sys.exit(exits.UNEXPECTED)


async def carry_out(client: Client, clock: Clock, scope: Scope, say: Say, *, sure: bool) -> Tally:
    """Lift what is meant, or show it if not `sure`; returns what became of it."""
    pods = (await client.list_pages(PODS, Pod, scope.namespace)).items
    found = batches(pods, scope)
    total = sum(len(batch.pods) for batch in found)
    if not total:
        say(f"No pod {scope.text} waits behind the gate {names.GATE}.")
        return Tally()
    for gate in still_held(found):
        say(f"Some of these wait behind {gate} as well, and go on doing so.")
    if not sure:
        for batch in found:
            say(f"would lift {batch.text}")
        what = f"{counted(total)} of {counted(len(found), 'gang')}"
        say(f"{what} would be lifted. Nothing was changed; add --yes to lift them.")
        return Tally(of_gang=[(batch, 0) for batch in found])
    await _see_that_we_may(client)
    tally = Tally()
    for batch in found:
        await lift_all(client, clock, batch, tally)
        done = tally.lifted + tally.passed + len(tally.refused)
        say(f"lifted {batch.title}: {counted(len(batch.pods))} ({done} of {total})")
    for line in tally.refused:
        typer.echo(f"not lifted: {line}", err=True)
    gone = f", {tally.passed} were lifted or deleted by others" if tally.passed else ""
    left = f", {len(tally.refused)} refused" if tally.refused else ""
    say(f"{counted(tally.lifted)} lifted{gone}{left}.")
    return tally


async def _see_that_we_may(client: Client) -> None:
    """Ask first, as the guard will: halfway through is no time to learn of it."""
    asked: JsonObject = {
        "group": names.GROUP, "resource": names.GATES_RESOURCE, "verb": names.LIFT_VERB,
    }  # fmt: skip
    body: JsonObject = {
        "apiVersion": REVIEWS.api_version,
        "kind": REVIEWS.kind,
        "spec": {"resourceAttributes": asked},
    }
    answer = msgspec.json.decode(await client.create(REVIEWS, body), type=_Review)
    if not answer.status.allowed:
        right = f"{names.LIFT_VERB} on {names.GATES_RESOURCE}.{names.GROUP}"
        line = (
            f"it takes the verb {right}, granted cluster-wide, which you lack: nothing was lifted"
        )
        raise Forbidden(403, "Forbidden", line)


async def lift_all(client: Client, clock: Clock, batch: Batch, tally: Tally) -> None:
    """Set the pods of a gang free, and count them as its own."""
    before = tally.lifted
    requests = [partial(lift, client, clock, pod, tally) for pod in batch.pods]
    await pace.all_of(requests, AT_ONCE)
    tally.of_gang.append((batch, tally.lifted - before))


async def lift(client: Client, clock: Clock, pod: Pod, tally: Tally) -> None:
    """Set one pod free, looking again where somebody else has written it, and count it."""
    meta = pod.metadata
    why = ""
    for _ in range(TRIES):
        if names.GATE not in pod.gates or pod.metadata.uid != meta.uid:
            tally.passed += 1
            return
        try:
            await client.json_patch(
                PODS, meta.name, freeing.patch(pod, clock.now()), meta.namespace
            )
        except NotFound:
            tally.passed += 1
            return
        except (Conflict, Invalid) as error:
            why = error.message
        except ApiError as error:
            tally.refused.append(f"{meta.namespace}/{meta.name}: {error.message}")
            return
        else:
            tally.lifted += 1
            return
        try:
            pod = await client.get(PODS, Pod, meta.name, meta.namespace)
        except NotFound:
            tally.passed += 1
            return
    tally.refused.append(f"{meta.namespace}/{meta.name}: {why}")
