from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from api.jsons import JsonObject
from penstock.lab import kwokctl
from penstock.lab.folders import Folder
from penstock.lab.kwokctl import Plan
from penstock.lab.spec import LabSpec, Setting

BINARIES = {
    name: Path("/cache") / name
    for name in (
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kubectl",
        "kwok",
        "kwokctl",
        "helm",
    )
}
PORTS = {name: 20_000 + index for index, name in enumerate(kwokctl.PORTS)}
SPEC = LabSpec(name="try")


def plan(spec: LabSpec = SPEC) -> Plan:
    ports = PORTS if spec.runtime == "binary" else {}
    return Plan(spec, Folder("try", Path("/labs/try")), ports, BINARIES)


def documents(spec: LabSpec = SPEC) -> list[JsonObject]:
    """What kwokctl would read: written as YAML and read again."""
    return list(yaml.safe_load_all(kwokctl.render(kwokctl.configuration(plan(spec)))))


def head(spec: LabSpec) -> JsonObject:
    """The first document alone, with all that is said of daemons; the others take a while."""
    found: JsonObject = yaml.safe_load(kwokctl.render([kwokctl.configuration(plan(spec))[0]]))
    return found


def options(spec: LabSpec = SPEC) -> JsonObject:
    found = head(spec)["options"]
    assert isinstance(found, dict)
    return found


def patches(spec: LabSpec) -> dict[str, dict[str, tuple[str, bool]]]:
    return {
        patch["name"]: {
            each["key"]: (each["value"], each["override"]) for each in patch["extraArgs"]
        }
        for patch in yaml.safe_load(kwokctl.render([head(spec)]))["componentsPatches"]
    }


def test_everything_listens_on_the_loopback_at_ports_of_our_choice() -> None:
    assert options()["bindAddress"] == "127.0.0.1"
    assert options().items() >= PORTS.items()


def test_heartbeats_and_node_monitoring_are_as_in_a_real_cluster() -> None:
    assert options()["heartbeatFactor"] == 1
    assert not any("Monitor" in key for key in options())
    assert "node-monitor-grace-period" not in patches(SPEC)["kube-controller-manager"]


def test_controllers_have_accounts_of_their_own() -> None:
    manager = patches(SPEC)["kube-controller-manager"]
    assert manager["use-service-account-credentials"] == ("true", False)
    # What has none is done by the daemon itself, which is not the person, where it finds its keys.
    assert manager["kubeconfig"] == ("/labs/try/kube-controller-manager.kubeconfig", True)
    assert "kubeconfig" not in patches(replace(SPEC, runtime="kind"))["kube-controller-manager"]
    (user,) = yaml.safe_load(kwokctl.manager_kubeconfig(plan()))["users"]
    assert user["user"]["as"] == "system:kube-controller-manager"


def test_the_stages_are_all_in_the_configuration() -> None:
    kinds = [document["kind"] for document in documents()]
    assert kinds[:2] == ["KwokctlConfiguration", "KwokConfiguration"]
    assert set(kinds[2:]) == {"Stage"}


def test_gates_apis_and_audit_are_passed_on() -> None:
    found = options(replace(SPEC, feature_gates="A=true", runtime_config="a/v1=true", audit=True))
    assert found["kubeFeatureGates"] == "A=true"
    assert found["kubeRuntimeConfig"] == "a/v1=true"
    assert found["kubeAuditPolicy"] == "/labs/try/audit-policy.yaml"
    assert not {"kubeFeatureGates", "kubeRuntimeConfig", "kubeAuditPolicy"} & options().keys()


def test_the_audit_policy_keeps_secrets_out_of_the_log() -> None:
    policy = yaml.safe_load(kwokctl.AUDIT_POLICY)
    first = policy["rules"][0]
    assert first["level"] == "Metadata"
    assert "secrets" in first["resources"][0]["resources"]
    assert "serviceaccounts/token" in first["resources"][0]["resources"]


@pytest.mark.parametrize("kind", ["pods", "pods/binding", "nodes", "nodes/status"])
def test_the_audit_policy_records_what_pods_and_nodes_became(kind: str) -> None:
    rules = yaml.safe_load(kwokctl.AUDIT_POLICY)["rules"]
    (level,) = (
        rule["level"]
        for rule in rules
        if any(kind in each.get("resources", ()) for each in rule.get("resources", ()))
    )
    assert level == "RequestResponse"


def test_scheduler_qps_comes_with_room_for_bursts() -> None:
    scheduler = patches(replace(SPEC, scheduler_qps=1000))["kube-scheduler"]
    assert scheduler == {"kube-api-qps": ("1000", False), "kube-api-burst": ("2000", False)}
    assert "kube-scheduler" not in patches(SPEC)


@pytest.mark.parametrize(
    ("setting", "override"),
    [
        pytest.param(Setting("kube-apiserver", "v", "4"), False, id="absent, so added"),
        pytest.param(
            Setting("kube-apiserver", "authorization-mode", "RBAC"), True, id="there, so replaced"
        ),
        pytest.param(Setting("kube-apiserver", "feature-gates", "A=true"), False, id="no gates"),
    ],
)
def test_a_flag_is_replaced_if_it_is_there_and_added_if_not(
    setting: Setting, *, override: bool
) -> None:
    found = patches(replace(SPEC, settings=(setting,)))
    assert found[setting.component][setting.flag] == (setting.value, override)


def test_gates_that_are_there_are_replaced() -> None:
    setting = Setting("kube-scheduler", "feature-gates", "B=true")
    found = patches(replace(SPEC, feature_gates="A=true", settings=(setting,)))
    assert found["kube-scheduler"]["feature-gates"] == ("B=true", True)


def test_what_was_asked_for_wins_over_the_labs_own() -> None:
    asked = Setting("kube-controller-manager", "use-service-account-credentials", "false")
    qps = Setting("kube-scheduler", "kube-api-qps", "7")
    found = kwokctl.lab_settings(plan(replace(SPEC, scheduler_qps=9, settings=(asked, qps))))
    assert asked in found
    assert qps in found
    assert len({(each.component, each.flag) for each in found}) == len(found)


def test_the_command_names_every_daemon_and_leaves_the_persons_kubeconfig_alone() -> None:
    command = kwokctl.create_command(plan())
    line = list(command.arguments)
    assert line[:3] == ["/cache/kwokctl", "--name", "try"]
    assert line[line.index("--kubeconfig") + 1] == ""
    for flag, program in (
        ("--etcd-binary", "/cache/etcd"),
        ("--kube-apiserver-binary", "/cache/kube-apiserver"),
        ("--kube-controller-manager-binary", "/cache/kube-controller-manager"),
        ("--kube-scheduler-binary", "/cache/kube-scheduler"),
        ("--kwok-controller-binary", "/cache/kwok"),
    ):
        assert line[line.index(flag) + 1] == program
    assert command.environ["KWOK_WORKDIR"] == "/labs/try/kwok"
    assert command.environ["KWOK_KUBE_VERSION"] == "v1.37.1"


def test_kind_is_left_to_kwokctl() -> None:
    spec = replace(SPEC, runtime="kind", feature_gates="A=true")
    command = kwokctl.create_command(plan(spec))
    assert not any("-binary" in argument for argument in command.arguments)
    assert "PATH" not in command.environ  # docker and kind are found on it
    found = options(spec)
    assert found["runtime"] == "kind"
    assert found["kubeFeatureGates"] == "A=true"
    assert not found.keys() & {"bindAddress", "kubectlBinary", *kwokctl.PORTS}


def test_a_complaint_is_taken_out_of_the_log() -> None:
    output = "\n".join(
        (
            '{"level":"INFO","msg":"Cluster is creating"}',
            '{"level":"ERROR","msg":"Execute exit","err":"docker: not found"}',
            '{"level":"INFO","msg":"Cluster is cleaned up"}',
        )
    )
    assert kwokctl.complaint(output) == "Execute exit: docker: not found"
    assert kwokctl.complaint("plain words\n") == "plain words"
    assert (
        kwokctl.complaint('{"level":"WARN","msg":"two","err":"lines\\nof it"}')
        == "two: lines of it"
    )
    assert kwokctl.complaint("") == "it did not say why"
