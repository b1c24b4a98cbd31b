"""Whether another makes the gangs, the plugin asks the cluster, unless the person says it."""

import pytest

from api import names
from api.jsons import JsonObject
from kube.access import Credentials
from kube.client import Client
from kube.tokens import FixedHeader
from penstock.plugin.asking import Where
from penstock.plugin.running import mode_of
from tests.support import fakeapi
from tests.support.fakeapi import Answer, FakeApi
from tests.support.manualclock import LeapingClock


def config(labels: JsonObject) -> Answer:
    return fakeapi.json({"metadata": {"name": names.CAPACITY_CONFIG, "labels": labels}})


CASES = [
    pytest.param(config({names.COMPANION_LABEL: "true"}), None, True, id="the chart says so"),
    pytest.param(config({names.COMPANION_LABEL: "false"}), None, False, id="the chart denies it"),
    pytest.param(config({}), None, False, id="an older chart"),
    pytest.param(fakeapi.status(404, "NotFound"), None, False, id="no chart"),
    pytest.param(fakeapi.status(403, "Forbidden"), None, False, id="an older role"),
    pytest.param(config({}), True, True, id="the person says so"),
    pytest.param(config({names.COMPANION_LABEL: "true"}), False, False, id="the person denies it"),
]


@pytest.mark.parametrize(("answer", "said", "companion"), CASES)
async def test_the_mode_is_found_out(answer: Answer, said: bool | None, companion: bool) -> None:  # noqa: FBT001
    api = FakeApi()
    api.answers.append(answer)
    async with fakeapi.serving(api):
        found = Credentials(api.url, None, FixedHeader())
        async with Client(found, "plugin", LeapingClock()) as client:
            assert (await mode_of(client, Where(companion=said))).companion is companion
    assert len(api.seen) == (1 if said is None else 0)
