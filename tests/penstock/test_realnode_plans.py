"""What the programs of a real node are told, and the little that is decided before they start."""

import tomllib
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from api.jsons import JsonObject
from certs.issue import issue_authority
from penstock.lab import kwokctl
from penstock.lab.errors import LabError
from penstock.lab.folders import Folder
from penstock.lab.kwokctl import Plan
from penstock.lab.realnode import addresses, cgroups, configuring, planning, signing, wanting
from penstock.lab.realnode.places import SOCKET, Places
from penstock.lab.realnode.wanting import Machine
from penstock.lab.spec import LabSpec
from penstock.lab.tools import node_toolset, toolset

PLACES = Places.of(Path("/labs/try"))
BINARIES = {tool.name: Path("/cache") / tool.name for tool in node_toolset("v1.37.1")}
SPEC = LabSpec("try", real_node=True)


def plan(spec: LabSpec) -> Plan:
    binaries = {tool.name: Path("/cache") / tool.name for tool in toolset("v1.37.1")}
    ports = {name: 20_000 + index for index, name in enumerate(kwokctl.PORTS)}
    return Plan(spec, Folder("try", Path("/labs/try")), ports, binaries)


def documents(spec: LabSpec) -> list[JsonObject]:
    text = kwokctl.render(kwokctl.configuration(plan(spec))[:2])
    return list(yaml.safe_load_all(text))


def test_the_api_server_is_found_and_believed_by_pods_under_its_services_address() -> None:
    options = documents(SPEC)[0]["options"]
    assert isinstance(options, dict)
    assert options["bindAddress"] == "0.0.0.0"  # noqa: S104  (of a network of its own)
    names = options["kubeApiserverCertSANs"]
    assert isinstance(names, list)
    assert {addresses.API_SERVICE, addresses.NODE_ADDRESS} <= set(names)
    assert next(IPv4Network(addresses.SERVICES).hosts()) == IPv4Address(addresses.API_SERVICE)


def test_without_a_real_node_nothing_of_this_is_said() -> None:
    head, kwok = documents(replace(SPEC, real_node=False))
    assert isinstance(head["options"], dict)
    assert head["options"]["bindAddress"] == "127.0.0.1"
    assert "kubeApiserverCertSANs" not in head["options"]
    assert "10.0.0.0/8" in str(kwok)
    flags = {each.flag for each in kwokctl.lab_settings(plan(replace(SPEC, real_node=False)))}
    assert not flags & {"advertise-address", "manage-all-nodes", "service-cluster-ip-range"}


def test_kwok_leaves_the_real_node_alone_and_replaces_what_kwokctl_says() -> None:
    patches = documents(SPEC)[0]["componentsPatches"]
    assert isinstance(patches, list)
    (kwok,) = (each for each in patches if isinstance(each, dict) and "kwok" in str(each["name"]))
    arguments = {each["key"]: each for each in kwok["extraArgs"]}  # type: ignore[index,union-attr,call-overload]
    assert arguments["manage-all-nodes"]["value"] == "false"  # type: ignore[index,call-overload]
    assert arguments["manage-all-nodes"]["override"] is True  # type: ignore[index,call-overload]


def test_no_two_ranges_of_addresses_overlap() -> None:
    ranges = [
        IPv4Network(each) for each in (addresses.PODS, addresses.SERVICES, addresses.PRETEND_PODS)
    ]
    ranges.append(IPv4Network(f"{addresses.NODE_ADDRESS}/24", strict=False))
    pairs = [(one, two) for one in ranges for two in ranges if one is not two]
    assert not [pair for pair in pairs if pair[0].overlaps(pair[1])]


def test_mounts_begin_by_cutting_the_node_off_and_hide_only_what_is_named() -> None:
    commands = planning.mounts(PLACES)
    assert commands[0] == ["mount", "--make-rprivate", "/"]
    assert commands[-1] == ["mount", "--make-rshared", "/"]
    targets = {each[-1] for each in commands[1:-1] if each[0] == "mount"}
    shown = {f"/proc/sys/{each}" for each in configuring.KERNEL_SETTINGS}
    assert targets == {"/proc", "/run", "/var/lib", "/var/log", *shown}


def test_kubelet_and_proxy_wait_for_their_credentials() -> None:
    found = {each.name: each for each in planning.daemons(PLACES, BINARIES)}
    assert found["kubelet"].waits_for == "/labs/try/node/kubelet.kubeconfig"
    assert found["kube-proxy"].waits_for == "/labs/try/node/kube-proxy.kubeconfig"
    assert "--kubeconfig=/labs/try/node/kubelet.kubeconfig" in found["kubelet"].command
    assert found["kubelet"].command[0] == "/cache/kubelet"


def test_the_kubelet_asks_who_is_there_and_changes_no_kernel_setting_of_the_machine() -> None:
    text = configuring.kubelet(PLACES, Path("/labs/try/ca.crt"), "penstock-lab-try")
    told = yaml.safe_load(text)
    assert told["protectKernelDefaults"] is True
    assert told["authentication"]["anonymous"]["enabled"] is False
    assert told["authorization"]["mode"] == "Webhook"
    assert told["cgroupRoot"] == "/penstock-lab-try"
    assert told["containerRuntimeEndpoint"] == f"unix://{SOCKET}"
    assert [each["effect"] for each in told["registerWithTaints"]] == ["NoSchedule"]


def test_containerd_is_told_of_the_image_and_the_network_that_we_make() -> None:
    told = tomllib.loads(configuring.containerd(PLACES, "native"))
    runtime = told["plugins"]["io.containerd.grpc.v1.cri"]
    assert runtime["sandbox_image"] == configuring.PAUSE_IMAGE
    assert runtime["cni"]["conf_dir"] == str(PLACES.network)
    assert runtime["containerd"]["snapshotter"] == "native"
    assert told["grpc"]["address"] == SOCKET


def test_the_proxy_leaves_the_machines_settings_alone() -> None:
    told = yaml.safe_load(configuring.proxy(PLACES))
    assert set(told["conntrack"].values()) == {0, "0s"}
    assert told["hostnameOverride"] == addresses.NODE_NAME


def test_a_real_nodes_tools_are_not_those_of_every_lab() -> None:
    assert not BINARIES.keys() & {tool.name for tool in toolset("v1.37.1")}
    assert {"kubelet", "kube-proxy", "ptp", "host-local", "loopback"} == BINARIES.keys()


FIT = Machine("linux", 0, wanting.NEEDED | 1, True, lambda name: f"/usr/bin/{name}")  # noqa: FBT003


def lacking(*lacks: str) -> Machine:
    return replace(FIT, search=lambda name: None if name in lacks else f"/bin/{name}")


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        pytest.param(replace(FIT, platform="darwin"), "needs Linux", id="another system"),
        pytest.param(replace(FIT, user=1000), "needs root,", id="a person"),
        pytest.param(replace(FIT, capabilities=1 << 21), "it may not", id="root of a container"),
        pytest.param(replace(FIT, groups_writable=False), "control groups", id="read-only groups"),
        pytest.param(
            lacking("ctr", "containerd", "runc"), "apt-get install containerd runc", id="no runtime"
        ),
        pytest.param(lacking("busybox"), "apt-get install busybox-static", id="no busybox"),
    ],
)
def test_what_stands_in_the_way_is_said(machine: Machine, words: str) -> None:
    said = wanting.obstacle(machine)
    assert said is not None
    assert words in said


def test_nothing_stands_in_the_way_of_root_with_all_programs() -> None:
    assert wanting.obstacle(FIT) is None
    assert FIT.missing == []


def test_a_lab_that_the_node_could_not_see_is_refused() -> None:
    with pytest.raises(LabError, match=r"below /var/lib.*XDG_STATE_HOME"):
        wanting.check_place(Path("/var/lib/penstock/labs/try"))
    wanting.check_place(Path("/srv/labs/try"))


def test_the_nodes_credential_says_who_it_is_and_serves_clients_only() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    authority = issue_authority(now)
    subject = signing.Subject("system:node:real-0", "system:nodes")
    made = signing.sign(authority.certificate_pem, authority.key_pem, subject, now)
    certificate = x509.load_pem_x509_certificate(made.certificate)
    assert certificate.subject.rfc4514_string() == "CN=system:node:real-0,O=system:nodes"
    issuer = x509.load_pem_x509_certificate(authority.certificate_pem)
    certificate.verify_directly_issued_by(issuer)
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert b"PRIVATE" not in repr(made).encode()


def hierarchies(root: Path) -> None:
    for name in ("cpuset", "memory"):
        (root / name).mkdir(parents=True)
        (root / name / "cgroup.procs").touch()


def test_groups_are_made_in_each_hierarchy_and_removed_with_all_below(tmp_path: Path) -> None:
    hierarchies(tmp_path)
    cgroups.make("try", tmp_path)
    for name in ("cpuset", "memory"):
        (tmp_path / name / "try" / "kubepods" / "pod-1").mkdir(parents=True)
    assert cgroups.remove("try", tmp_path) == []
    assert not list(tmp_path.glob("*/try"))


def test_a_group_that_is_in_use_is_named(tmp_path: Path) -> None:
    hierarchies(tmp_path)
    cgroups.make("try", tmp_path)
    (tmp_path / "memory" / "try" / "cgroup.procs").touch()  # keeps it from being removed
    assert cgroups.remove("try", tmp_path) == [tmp_path / "memory" / "try"]


def test_with_one_hierarchy_there_is_one_group(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").touch()
    assert cgroups.hierarchies(tmp_path) == [tmp_path]
    cgroups.make("try", tmp_path)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+pids\n"  # the last of them
    assert cgroups.remove("try", tmp_path) == []
