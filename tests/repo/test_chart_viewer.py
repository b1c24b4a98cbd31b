"""Who may ask, and that asking is all they may."""

import pytest

from api import names
from kube.resources import CONFIGMAPS
from penstock.plugin import scenes
from tests.repo.test_chart import rules
from tests.support.charts import Objects, Render

pytestmark = pytest.mark.cluster  # it needs helm, as the other tests of the chart do

READERS = ("penstock-view", "penstock-view-cluster")
LABEL = "penstock.dev/aggregate-to-viewer"


def test_a_viewer_may_read_what_the_plugin_reads_and_nothing_else(outside: Objects) -> None:
    may = {rule for name in READERS for rule in rules(outside["ClusterRole", name])}
    assert {verb for _, _, verb, _ in may} == {"get", "list", "watch"}
    lists = {(group, plural) for group, plural, verb, named in may if verb == "list" and not named}
    reads = {(kind.group, kind.plural) for kind in scenes.KINDS}
    assert lists == reads
    told = {rule for rule in may if rule[3]}
    assert told == {
        ("", CONFIGMAPS.plural, "get", name)
        for name in (
            names.POLICY_CONFIG,
            names.KEPT_POLICY_CONFIG,
            names.SCAN_CONFIG,
            names.CAPACITY_CONFIG,
        )
    }


def test_a_viewer_learns_who_makes_gangs(render: Render) -> None:
    for companion in (True, False):
        accounts = ("grove.accounts[0].namespace=grove-system", "grove.accounts[0].name=operator")
        flags = ("companion.enabled=true", *accounts) if companion else ()
        metadata = render(*flags)["ConfigMap", names.CAPACITY_CONFIG]["metadata"]
        assert isinstance(metadata, dict)
        assert isinstance(metadata["labels"], dict)
        assert metadata["labels"][names.COMPANION_LABEL] == str(companion).lower()


def test_the_viewers_role_is_put_together_and_nobody_has_it_unasked(outside: Objects) -> None:
    role = outside["ClusterRole", scenes.VIEWER]
    assert role["aggregationRule"] == {"clusterRoleSelectors": [{"matchLabels": {LABEL: "true"}}]}
    for name in READERS:
        metadata = outside["ClusterRole", name]["metadata"]
        assert isinstance(metadata, dict)
        labels = metadata["labels"]
        assert isinstance(labels, dict)
        assert labels[LABEL] == "true"
    bound = [each["roleRef"] for (kind, _), each in outside.items() if kind.endswith("RoleBinding")]
    assert not [ref for ref in bound if isinstance(ref, dict) and ref["name"] == scenes.VIEWER]
