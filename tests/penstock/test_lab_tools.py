import pytest

from penstock.lab.errors import LabError
from penstock.lab.tools import Version, parse_version, toolset

TOOLS = {tool.name: tool for tool in toolset("v1.37.1")}


def test_every_program_of_a_lab_is_there() -> None:
    assert TOOLS.keys() == {
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kubectl",
        "kwok",
        "kwokctl",
        "helm",
    }


@pytest.mark.parametrize(
    ("words", "version"),
    [
        ("Kubernetes v1.37.1", Version(1, 37, 1)),
        ("Client Version: v1.37.1\nKustomize Version: v5.8.1", Version(1, 37, 1)),
        ("etcd Version: 3.6.8\nGit SHA: none", Version(3, 6, 8)),
        ("kwok version v0.8.0 go1.26.8 (linux/amd64)", Version(0, 8, 0)),
        ("v3.22", Version(3, 22, 0)),
        ("go1.26.8", Version(1, 26, 8)),
        ("Kubernetes v0.0.0-master+$Format:%H$", Version(0, 0, 0)),
        ("who knows", None),
    ],
)
def test_programs_are_understood(words: str, version: Version | None) -> None:
    assert parse_version(words) == version


@pytest.mark.parametrize(
    ("tool", "version", "accepted"),
    [
        ("kube-apiserver", Version(1, 37, 0), True),
        ("kube-apiserver", Version(1, 36, 9), False),
        ("kube-apiserver", Version(0, 0, 0), False),
        ("etcd", Version(3, 5, 1), True),
        ("etcd", Version(4, 0, 0), False),
        ("kwok", Version(0, 7, 0), False),
        ("helm", Version(3, 9, 0), True),
    ],
)
def test_the_minor_version_counts_where_it_matters(
    tool: str,
    version: Version,
    accepted: bool,  # noqa: FBT001
) -> None:
    assert TOOLS[tool].accepts(version) is accepted


def test_another_kubernetes_is_another_release_with_its_own_stamp() -> None:
    tools = {tool.name: tool for tool in toolset("v1.36.2")}
    server = tools["kube-apiserver"]
    assert server.release == "kubernetes-v1.36.2"
    assert "-X k8s.io/component-base/version.gitVersion=v1.36.2" in server.ldflags
    assert "/v1.36.2/" in server.download.url
    assert tools["etcd"] == TOOLS["etcd"]


@pytest.mark.parametrize("version", ["1.37.1", "v1.37", "latest", "v1.37.1-rc.0"])
def test_a_version_must_be_a_full_one(version: str) -> None:
    with pytest.raises(LabError, match=r"--kubernetes .*v1\.37\.1"):
        toolset(version)
