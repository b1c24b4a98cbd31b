"""What the chart runs: three Deployments and all that is around them."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from api import names
from api.features import read as read_gates
from controller import settings as controller_settings
from controller.gangs import options as gangs_options
from controller.workloads import options as workloads_options
from policies import pod_security
from tests.repo.test_chart_switches import COMPANION
from tests.support.chart_pods import (
    PROCESSES,
    arguments,
    container,
    deployment,
    labels,
    listed,
    mapping,
    pod,
    selects,
)
from tests.support.charts import Objects, Render, items
from webhook import settings as webhook_settings
from webhook.server import AFTER_DRAINING

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

MODULES: Final = {"webhook": "webhook", "workloads": "controller.workloads"} | {
    "gangs": "controller.gangs"
}
EVERYTHING: Final = (
    *("audit.serve=true", "audit.stdout=true", "audit.admitted=true", "webhook.tlsMin=1.2"),
    *("featureGates.GangScheduling=false", "gangs.recordRefusals=true", "workloads.mnnvl=true"),
    *("workloads.startup=init", "workloads.waiterImage=waiter:1", "certManager.enabled=true"),
    *("schedulers={default-scheduler,second}", "gangs.gangTimeoutSeconds=600"),
    *("networkPolicy.enabled=true", "networkPolicy.apiServers={10.0.0.0/8}"),
    *("networkPolicy.metricsFrom={monitoring}", "metrics.serviceMonitor.enabled=true"),
    *("webhook.clients.configMap=clients", "webhook.clients.names={kube-apiserver}"),
)


@pytest.fixture(scope="module")
def all_on(render: Render) -> Objects:
    return render(*EVERYTHING)


def run_by(objects: Objects) -> set[str]:
    return {name for kind, name in objects if kind == "Deployment"}


def test_it_runs_the_three_processes_each_with_its_own_account(inside: Objects) -> None:
    assert run_by(inside) == {f"penstock-{each}" for each in PROCESSES}
    for each in PROCESSES:
        assert pod(inside, each)["serviceAccountName"] == f"penstock-{each}"
        assert container(inside, each)["command"] == ["python", "-m", MODULES[each]]
        replicas = deployment(inside, each)["replicas"]
        assert isinstance(replicas, int)
        assert replicas >= 2, "one webhook alone fails admissions, one leader alone has no standby"


AROUND = {"PodDisruptionBudget", "ResourceQuota", "NetworkPolicy", "Service", "ServiceMonitor"}


def test_with_a_url_somebody_else_runs_them_and_nothing_is_left_around_them(render: Render) -> None:
    switched_on = [each for each in EVERYTHING if not each.startswith(("audit", "cert"))]
    beside = render("webhook.url=https://127.0.0.1:1", *switched_on)
    assert run_by(beside) == set()
    assert AROUND.isdisjoint(kind for kind, _ in beside)
    assert ("Secret", "penstock-audit-key") not in beside


def test_a_companion_has_no_workloads(render: Render) -> None:
    beside = render(*COMPANION, "networkPolicy.enabled=true", "metrics.serviceMonitor.enabled=true")
    assert run_by(beside) == {"penstock-webhook", "penstock-gangs"}
    for kind in AROUND | {"Deployment"}:
        assert (kind, "penstock-workloads") not in beside
    for each in ("webhook", "gangs"):
        assert "--companion" in arguments(beside, each)


@pytest.mark.parametrize("process", PROCESSES)
def test_pods_keep_to_the_restricted_standard_and_write_to_volumes_alone(
    all_on: Objects, process: str
) -> None:
    spec, main = pod(all_on, process), container(all_on, process)
    assert [*pod_security.check("restricted", "spec", spec)] == []
    assert mapping(main, "securityContext")["readOnlyRootFilesystem"] is True
    assert spec["automountServiceAccountToken"] is False
    volumes = {str(each["name"]): each for each in listed(spec, "volumes")}
    mounts = {str(each["name"]): each for each in listed(main, "volumeMounts")}
    assert volumes.keys() == mounts.keys()
    for name, mount in mounts.items():
        assert ("emptyDir" in volumes[name]) is not mount.get("readOnly", False)


@pytest.mark.parametrize("process", PROCESSES)
def test_they_take_memory_that_is_bounded_and_cpu_that_is_not(
    inside: Objects, process: str
) -> None:
    resources = mapping(container(inside, process), "resources")
    assert mapping(resources, "requests").keys() == {"cpu", "memory"}
    assert mapping(resources, "limits").keys() == {"memory"}


Parse = Callable[[list[str]], object]


def parse_gangs(arguments: list[str]) -> object:
    made = controller_settings.parser("gangs", "", "")
    gangs_options.add(made)
    told = made.parse_args(arguments)
    return controller_settings.read(told), gangs_options.read(told), told


def parse_workloads(arguments: list[str]) -> object:
    made = controller_settings.parser("workloads", "", "")
    workloads_options.add(made)
    told = made.parse_args(arguments)
    return controller_settings.read(told), workloads_options.read(told)


PARSERS: Final[dict[str, Parse]] = {
    "webhook": webhook_settings.parse,
    "workloads": parse_workloads,
    "gangs": parse_gangs,
}


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("settings", [(), EVERYTHING], ids=["default", "everything"])
def test_each_process_takes_the_flags_it_is_given(
    render: Render, process: str, settings: tuple[str, ...]
) -> None:
    PARSERS[process](arguments(render(*settings), process))


def told_webhook(objects: Objects) -> webhook_settings.Settings:
    return webhook_settings.parse(arguments(objects, "webhook"))


def test_flags_say_what_the_values_say(all_on: Objects) -> None:
    webhook = told_webhook(all_on)
    assert webhook.feature_gates == read_gates("GangScheduling=false")
    assert (webhook.tls_min, webhook.audit_port, webhook.audit_stdout) == ("1.2", 9444, True)
    assert webhook.audit_peer == ((f"penstock-webhook-audit.{names.NAMESPACE}.svc", 9444),)
    gangs = arguments(all_on, "gangs")
    assert {"--certificates=cert-manager", "--scheduler=second", "--gang-timeout=600"} <= {*gangs}
    for each in PROCESSES:
        assert f"--namespace={names.NAMESPACE}" in arguments(all_on, each)
        assert "--feature-gates=GangScheduling=false,GroveIntegration=true" in arguments(
            all_on, each
        )
    assert {"--startup=init", "--waiter-image=waiter:1", "--mnnvl"} <= {
        *arguments(all_on, "workloads")
    }


@pytest.mark.parametrize("process", PROCESSES)
def test_each_folder_that_a_flag_names_is_there(all_on: Objects, process: str) -> None:
    mounted = {Path(str(each["mountPath"])) for each in listed(
        container(all_on, process), "volumeMounts")}  # fmt: skip
    named = [Path(value) for each in arguments(all_on, process)
             if (value := each.partition("=")[2]).startswith("/")]  # fmt: skip
    for path in named:
        assert mounted & {path, path.parent}, path


def test_a_webhook_that_ends_has_time_to_drain(render: Render) -> None:
    made = render("webhook.drainSeconds=60")
    grace = pod(made, "webhook")["terminationGracePeriodSeconds"]
    told = told_webhook(made)
    assert told.drain_seconds == 60
    assert isinstance(grace, int)
    assert grace > told.drain_seconds + AFTER_DRAINING
    # Unready for long enough that it is out of every node's reach before it stops.
    probe = mapping(container(made, "webhook"), "readinessProbe")
    assert probe["httpGet"] == {"path": "/readyz", "port": "https", "scheme": "HTTPS"}


def test_nobody_is_killed_while_it_waits_for_what_it_needs_at_the_start(inside: Objects) -> None:
    def budget(process: str) -> int:
        probe = mapping(container(inside, process), "startupProbe")
        times, period = probe["failureThreshold"], probe["periodSeconds"]
        assert isinstance(times, int)
        assert isinstance(period, int)
        return times * period

    webhook = told_webhook(inside)
    assert budget("webhook") > webhook.wait + webhook.tls_wait
    for each in ("workloads", "gangs"):
        assert budget(each) > controller_settings.parser("", "", "").get_default("wait")


@pytest.mark.parametrize("process", PROCESSES)
def test_of_a_roll_no_old_pod_goes_before_a_new_one_is_ready(inside: Objects, process: str) -> None:
    update = mapping(deployment(inside, process), "strategy", "rollingUpdate")
    assert update == {"maxSurge": 1, "maxUnavailable": 0}


@pytest.mark.parametrize("process", PROCESSES)
def test_all_that_is_about_a_process_finds_its_pods_and_no_others(
    all_on: Objects, process: str
) -> None:
    ours = labels(all_on, process)
    others = [labels(all_on, each) for each in PROCESSES if each != process]
    name = f"penstock-{process}"
    selectors = [
        mapping(deployment(all_on, process), "selector", "matchLabels"),
        mapping(all_on["PodDisruptionBudget", name], "spec", "selector", "matchLabels"),
        mapping(all_on["NetworkPolicy", name], "spec", "podSelector", "matchLabels"),
        mapping(all_on["Service", name], "spec", "selector"),
        *(
            mapping(each, "labelSelector", "matchLabels")
            for each in listed(pod(all_on, process), "topologySpreadConstraints")
        ),
    ]
    assert len(selectors) == 6, "spread over hosts and zones"
    for selector in selectors:
        assert selects(selector, ours)
        assert not any(selects(selector, other) for other in others)


@pytest.mark.parametrize("process", PROCESSES)
def test_drains_take_one_at_a_time_and_are_held_up_by_none_that_is_broken(
    inside: Objects, process: str
) -> None:
    spec = mapping(inside["PodDisruptionBudget", f"penstock-{process}"], "spec")
    assert (spec["maxUnavailable"], spec["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")


@pytest.mark.parametrize("process", PROCESSES)
def test_what_is_counted_is_found_at_a_port_that_the_pod_has(all_on: Objects, process: str) -> None:
    (endpoint,) = listed(all_on["ServiceMonitor", f"penstock-{process}"], "spec", "endpoints")
    ports = listed(all_on["Service", f"penstock-{process}"], "spec", "ports")
    (port,) = [each for each in ports if each["name"] == endpoint["port"]]
    own = {each["name"]: each["containerPort"] for each in listed(
        container(all_on, process), "ports")}  # fmt: skip
    served = own.get(port["targetPort"], port["targetPort"])
    assert served == 8080
    assert f"--metrics-address=0.0.0.0:{served}" in arguments(all_on, process)


def test_by_default_nothing_is_asked_of_other_operators(inside: Objects) -> None:
    assert {"ServiceMonitor", "NetworkPolicy", "Certificate"}.isdisjoint(k for k, _ in inside)


def ports_of(rule: object) -> list[object]:
    assert isinstance(rule, dict)
    return [each["port"] for each in listed(rule, "ports")]


def test_networks_let_in_api_servers_and_collectors_alone(all_on: Objects) -> None:
    policies = {each: mapping(all_on["NetworkPolicy", f"penstock-{each}"], "spec")
                for each in PROCESSES}  # fmt: skip
    for spec in policies.values():
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        assert all("from" in rule for rule in listed(spec, "ingress"))
    assert [ports_of(rule) for rule in listed(policies["webhook"], "ingress")] == [
        [9443, 9444],
        [8080],
    ]
    assert [ports_of(rule) for rule in listed(policies["gangs"], "ingress")] == [[8080]]
    reached = {each: [ports_of(rule) for rule in listed(policies[each], "egress")]
               for each in PROCESSES}  # fmt: skip
    assert reached["workloads"] == [[443, 6443], [53, 53]]
    assert reached["gangs"] == [[443, 6443], [53, 53], [9443, 9444]]


def test_without_collectors_the_controllers_are_reached_by_nobody(render: Render) -> None:
    made = render("networkPolicy.enabled=true")
    for each in ("workloads", "gangs"):
        spec = mapping(made["NetworkPolicy", f"penstock-{each}"], "spec")
        assert "Ingress" in items(spec, "policyTypes")
        assert listed(spec, "ingress") == []


def test_requests_of_the_three_accounts_go_by_a_lane_of_their_own(
    outside: Objects, render: Render
) -> None:
    def accounts(schema: str) -> list[object]:
        (rule,) = listed(outside["FlowSchema", schema], "spec", "rules")
        return [mapping(each, "serviceAccount")["name"] for each in listed(rule, "subjects")]

    spec = mapping(outside["FlowSchema", "penstock"], "spec")
    assert {*accounts("penstock")} == {f"penstock-{each}" for each in PROCESSES}
    level = str(mapping(spec, "priorityLevelConfiguration")["name"])
    assert ("PriorityLevelConfiguration", level) in outside
    leases = mapping(outside["FlowSchema", "penstock-leases"], "spec")
    assert {*accounts("penstock-leases")} == {names.GANGS_ACCOUNT, names.WORKLOADS_ACCOUNT}
    first, then = leases["matchingPrecedence"], spec["matchingPrecedence"]
    assert isinstance(first, int)
    assert isinstance(then, int)
    assert first < then, "else nothing would ever get to it"
    off = render("flowControl.enabled=false")
    assert {"FlowSchema", "PriorityLevelConfiguration"}.isdisjoint(kind for kind, _ in off)


def test_a_digest_counts_before_the_tag(render: Render, inside: Objects) -> None:
    digest = f"sha256:{'0' * 64}"
    named = render("image.repository=example.com/p", "image.tag=v2", f"image.digest={digest}")
    assert container(named, "gangs")["image"] == f"example.com/p@{digest}"
    tagged = render("image.repository=example.com/p", "image.tag=v2", "image.pullSecrets={pull}")
    assert container(tagged, "gangs")["image"] == "example.com/p:v2"
    assert pod(tagged, "gangs")["imagePullSecrets"] == [{"name": "pull"}]
    version = mapping(inside["Deployment", "penstock-gangs"], "metadata", "labels")
    assert container(inside, "gangs")["image"] == (
        f"penstock:{version['app.kubernetes.io/version']}"
    )


def test_labels_of_people_never_win_over_those_that_are_selected_by(render: Render) -> None:
    key = r"app\.kubernetes\.io/component"
    made = render(f"pods.labels.{key}=mine", "pods.labels.team=inference")
    found = labels(made, "gangs")
    assert (found["app.kubernetes.io/component"], found["team"]) == ("gangs", "inference")


def test_a_class_of_the_systems_brings_the_quota_that_lets_it_in(
    inside: Objects, render: Render
) -> None:
    scope = mapping(inside["ResourceQuota", "penstock-priority"], "spec", "scopeSelector")
    (rule,) = listed(scope, "matchExpressions")
    assert rule["values"] == [pod(inside, "gangs")["priorityClassName"]]
    own = render("pods.priorityClassName=mine")
    assert not any(kind == "ResourceQuota" for kind, _ in own)
    assert pod(own, "gangs")["priorityClassName"] == "mine"
    assert "priorityClassName" not in pod(render("pods.priorityClassName="), "gangs")


def test_the_audit_log_has_a_key_of_the_charts_or_of_yours(render: Render, inside: Objects) -> None:
    def keys(objects: Objects) -> list[object]:
        volumes = listed(pod(objects, "webhook"), "volumes")
        return [mapping(v, "secret")["secretName"] for v in volumes if v["name"] == "audit-key"]

    assert keys(inside) == ["penstock-audit-key"]
    assert ("Secret", "penstock-audit-key") in inside
    yours = render("audit.keySecret=mine")
    assert keys(yours) == ["mine"]
    assert ("Secret", "penstock-audit-key") not in yours
    none = render("audit.files=false")
    assert keys(none) == []
    assert ("Secret", "penstock-audit-key") not in none
    with pytest.raises(ValueError, match=r"audit\.serve serves what is in audit\.files"):
        render("audit.files=false", "audit.serve=true")
