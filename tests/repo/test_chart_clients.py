"""Whom the chart has the webhook answer, where only API servers are to be."""

from pathlib import Path
from typing import Final

import pytest

from api.jsons import JsonObject
from tests.support.chart_pods import arguments, container, listed, mapping, pod
from tests.support.charts import Objects, Render, items
from webhook import settings

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

CONFIG: Final = "webhook.clients.configMap=mine"
NAMES: Final = "webhook.clients.names={kube-apiserver,system:second}"


def volume(objects: Objects) -> list[JsonObject]:
    return [each for each in listed(pod(objects, "webhook"), "volumes") if "configMap" in each]


def test_clients_are_held_to_the_authority_in_a_config_map_and_to_names(render: Render) -> None:
    made = render(CONFIG, NAMES)
    told = settings.parse(arguments(made, "webhook"))
    assert told.client_name == ("kube-apiserver", "system:second")
    (found,) = volume(made)
    config = mapping(found, "configMap")
    assert config["name"] == "mine"
    (item,) = listed(config, "items")
    (mount,) = [each for each in listed(container(made, "webhook"), "volumeMounts")
                if each["name"] == found["name"]]  # fmt: skip
    # The folder and not the file, which the kubelet would never change again.
    assert "subPath" not in mount
    assert told.client_ca == Path(str(mount["mountPath"])) / str(item["path"])
    assert item["key"] == "ca.crt"


def test_as_it_comes_the_chart_asks_no_client_for_a_certificate(inside: Objects) -> None:
    assert settings.parse(arguments(inside, "webhook")).client_ca is None
    assert volume(inside) == []


@pytest.mark.parametrize("alone", [CONFIG, NAMES])
def test_an_authority_goes_with_names(render: Render, alone: str) -> None:
    with pytest.raises(ValueError, match=r"webhook\.clients\.configMap and .*names go together"):
        render(alone)


@pytest.mark.parametrize("setting", ["configMap=Mine_", "names[0]=", "authority=x"])
def test_a_wrong_setting_of_clients_is_refused_by_name(render: Render, setting: str) -> None:
    with pytest.raises(ValueError, match="clients"):
        render(f"webhook.clients.{setting}")


def test_nobody_else_reads_it(render: Render) -> None:
    made = render(CONFIG, NAMES)
    for process in ("workloads", "gangs"):
        assert not any("--client" in each for each in arguments(made, process))
        assert "clients" not in [each["name"] for each in listed(pod(made, process), "volumes")]
    assert items(made["Deployment", "penstock-webhook"], "spec", "replicas") == [2]
