"""The floor's pods are those that a set has, but for what makes a gang of them."""

import msgspec

from api import names
from api.streams import Pod
from scheduler import needs
from tests.bench.gangs_loads import RACK_PODS, of_set, racks


def test_the_floors_pods_are_as_a_sets_pods_are_made() -> None:
    found = of_set(racks(3))
    # Whoever lets them go by hand pins them in this order.
    took = [msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, Pod) for _, spec in found]
    assert [needs.of_pod(pod)["nvidia.com/gpu"] for pod in took] == list(RACK_PODS)
    for labels, spec in found:
        assert names.PODGANG_LABEL in labels
        assert spec["hostname"]
        assert "GROVE_HEADLESS_SERVICE" in str(spec["containers"])
    assert not any(pod.gates for pod in took)
