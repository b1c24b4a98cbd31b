"""What the chart writes for operators that no lab has, held against models of their kinds."""

from copy import deepcopy
from typing import Final

import pytest

from api.jsons import Json, JsonObject
from tests.support import foreign
from tests.support.chart_pods import mapping
from tests.support.charts import Objects, Render

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

ALL: Final = (
    *("certManager.enabled=true", "audit.serve=true", "alerts.enabled=true"),
    *("metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.interval=500ms"),
    *("metrics.serviceMonitor.labels.release=prometheus", "alerts.labels.release=prometheus"),
    "labels.team=inference",
)
WEBHOOK: Final = ("Certificate", "penstock-webhook")
AUTHORITY: Final = ("Certificate", "penstock-ca")
ISSUER: Final = ("Issuer", "penstock-ca")
MONITOR: Final = ("ServiceMonitor", "penstock-gangs")
RULE: Final = ("PrometheusRule", "penstock")


@pytest.fixture(scope="module")
def made(render: Render) -> Objects:
    return render(*ALL)


def of_others(objects: Objects) -> dict[tuple[str, str], JsonObject]:
    return {key: each for key, each in objects.items() if foreign.group(each) in foreign.GROUPS}


def test_each_is_as_its_operator_takes_it(made: Objects) -> None:
    found = of_others(made)
    for each in found.values():
        foreign.check(each)
    assert {kind for kind, _ in found} == foreign.KINDS.keys()
    assert {WEBHOOK, AUTHORITY, ISSUER, MONITOR, RULE} < found.keys()


def test_with_no_settings_but_their_own_they_are_too(render: Render) -> None:
    switches = ("certManager.enabled=true", "metrics.serviceMonitor.enabled=true")
    found = of_others(render(*switches, "alerts.enabled=true"))
    for each in found.values():
        foreign.check(each)
    assert len(found) == 8


@pytest.mark.parametrize(
    ("which", "path", "value", "complaint"),
    [
        (WEBHOOK, "spec.renewbefore", "240h", "Extra inputs"),
        (WEBHOOK, "spec.dnsNames", "one.example", "valid list"),
        (WEBHOOK, "spec.dnsNames", [], "is for nobody"),
        (WEBHOOK, "spec.duration", "30d", "should match pattern"),
        (WEBHOOK, "spec.renewBefore", "720h", "not before its end"),
        (WEBHOOK, "spec.usages", ["server authentication"], "Input should be"),
        (WEBHOOK, "spec.privateKey.size", "256", "Input should be"),
        (WEBHOOK, "spec.privateKey.rotationpolicy", "Always", "Extra inputs"),
        (WEBHOOK, "spec.issuerRef.name", None, "valid string"),
        (WEBHOOK, "apiVersion", "cert-manager.io/v1alpha2", "Input should be"),
        (AUTHORITY, "spec.isCA", "true", "valid boolean"),
        (ISSUER, "spec.selfSigned", {}, "Extra inputs"),
        (MONITOR, "spec.endpoints", [], "at least 1 item"),
        (MONITOR, "spec.endpoints", [{"path": "/", "interval": "1d", "port": "m"}], "pattern"),
        (MONITOR, "spec.endpoints", [{"path": "/", "interval": "1s", "port": 8080}], "string"),
        (MONITOR, "spec.selector.matchlabels", {}, "Extra inputs"),
        (MONITOR, "metadata.labels", {"a": 1}, "valid string"),
        (RULE, "spec.groups", [{"name": "x", "rules": [{"alert": "A"}]}], "Field required"),
        (RULE, "spec.groups", {}, "valid list"),
    ],
)
def test_what_they_would_refuse_is_found(
    made: Objects, which: tuple[str, str], path: str, value: Json, complaint: str
) -> None:
    broken = deepcopy(made[which])
    *parents, last = path.split(".")
    mapping(broken, *parents)[last] = value
    with pytest.raises(ValueError, match=complaint):
        foreign.check(broken)


def test_two_groups_of_rules_under_one_name_are_found(made: Objects) -> None:
    broken = deepcopy(made[RULE])
    groups = mapping(broken, "spec")["groups"]
    assert isinstance(groups, list)
    groups.append(groups[0])
    with pytest.raises(ValueError, match="two groups have one name"):
        foreign.check(broken)


def test_a_kind_that_nobody_has_looked_at_is_found(made: Objects) -> None:
    with pytest.raises(ValueError, match="no model of the kind PodMonitor"):
        foreign.check({**made[MONITOR], "kind": "PodMonitor"})
