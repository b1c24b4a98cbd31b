"""A Grove manifest of every field applies as it is, and applying it again changes nothing."""

import pytest
import yaml

from api.jsons import JsonObject
from kube.resources import PODCLIQUESETS, TOPOLOGY_BINDINGS
from tests.cluster.rules import judging
from tests.cluster.rules.asking import Ask, Server, create, speaking
from tests.cluster.rules.manifests import BROAD
from tests.cluster.rules.whole import FIELDS, FILLED_IN, whole
from tests.support.edits import GONE, at, edited, lost
from tests.support.installed import Installed
from tests.support.living import Kubectl


async def _stored(server: Server, space: str) -> JsonObject:
    path = PODCLIQUESETS.path(space, "chat")
    answer = await server.ask(Ask("GET", path, query={}))
    assert answer.stored, answer.message
    return answer.body


@pytest.mark.cluster
async def test_a_whole_manifest_is_stored_with_defaults_and_applied_again_changes_nothing(
    installed: Installed, kubectl: Kubectl, space: str
) -> None:
    async with speaking(installed.lab.kubeconfig) as server:
        await server.ask(Ask("POST", TOPOLOGY_BINDINGS.path(), judging.BINDINGS[0], query={}))
        try:
            await server.until(create(PODCLIQUESETS, whole(), space), "the binding known")
            text = yaml.safe_dump(whole(), allow_unicode=True)
            first = kubectl.run("apply", "-f", "-", text=text, check=True)
            assert first.stdout == "podcliqueset.grove.io/chat created\n"
            assert first.stderr == ""
            stored = await _stored(server, space)
            assert lost(edited(whole(), FILLED_IN), stored) == []
            assert lost(stored["spec"], edited(whole(), FILLED_IN)["spec"]) == []
            for side in ((), ("--server-side", "--force-conflicts")):
                # kubectl sends lists whole, and says "configured" whatever becomes of them.
                kubectl.run("apply", *side, "-f", "-", text=text, check=True)
                again = await _stored(server, space)
                assert again["spec"] == stored["spec"]
                assert at(again, "metadata.generation") == 1
        finally:
            await server.ask(Ask("DELETE", TOPOLOGY_BINDINGS.path(name=BROAD), query={}))


def test_the_whole_manifest_has_every_field() -> None:
    filled = edited(whole(), FILLED_IN)
    assert [field for field in FIELDS if at(filled, field) is GONE] == []
    assert judging.judged(whole()).stored
