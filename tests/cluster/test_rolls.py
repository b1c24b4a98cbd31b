"""A rolling restart of all webhooks while objects are created: none is refused."""

import secrets
from collections.abc import Iterator

import pytest

from kube.resources import NAMESPACES
from tests.support.asking import asking
from tests.support.creating import calls, creating
from tests.support.installed import Installed
from tests.support.rolling import roll

pytestmark = pytest.mark.cluster

RATE = 20.0


@pytest.fixture
def place(installed: Installed) -> Iterator[str]:
    name = f"rolls-{secrets.token_hex(4)}"
    with asking(installed.lab.kubeconfig) as asker:
        assert asker.ask("POST", NAMESPACES.path(), {"metadata": {"name": name}}).done
        yield name
        asker.ask("DELETE", NAMESPACES.path(None, name))


def test_a_rolling_restart_refuses_nobody(installed: Installed, place: str) -> None:
    kubeconfig = installed.lab.kubeconfig
    before = calls(kubeconfig)
    with creating(kubeconfig, place, RATE) as tally:
        roll(installed.installation)
    assert tally.failures == []
    assert tally.asked > RATE
    assert calls(kubeconfig) - before >= tally.asked
