from dataclasses import replace

import pytest

from penstock.lab.errors import LabError
from penstock.lab.spec import LabSpec, Setting, differences, parse_setting

SPEC = LabSpec()


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("kube-apiserver.v=4", Setting("kube-apiserver", "v", "4")),
        ("kube-apiserver.--v=4", Setting("kube-apiserver", "v", "4")),
        ("kube-scheduler.vmodule=a=1,b=2", Setting("kube-scheduler", "vmodule", "a=1,b=2")),
        ("etcd.log-level=", Setting("etcd", "log-level", "")),
    ],
)
def test_a_setting_is_component_flag_and_value(text: str, setting: Setting) -> None:
    assert parse_setting(text) == setting


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kube-apiserver.v", "COMPONENT.FLAG=VALUE"),
        ("kube-apiserver=4", "COMPONENT.FLAG=VALUE"),
        ("kube-proxy.v=4", "'kube-proxy' is none of etcd, kube-apiserver"),
    ],
)
def test_a_bad_setting_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(LabError) as refused:
        parse_setting(text)
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        pytest.param(replace(SPEC, name="Big"), "--name 'Big'", id="name"),
        pytest.param(replace(SPEC, name="a" * 41), "--name", id="long name"),
        pytest.param(replace(SPEC, name="../etc"), "--name", id="path"),
        pytest.param(replace(SPEC, nodes=-1), "--nodes -1", id="nodes"),
        pytest.param(replace(SPEC, gpus=-1), "--gpus -1", id="gpus"),
        pytest.param(replace(SPEC, pods=0), "--pods 0", id="pods"),
        pytest.param(replace(SPEC, cpu="many"), "--cpu 'many'", id="cpu"),
        pytest.param(replace(SPEC, memory="1 TB"), "--memory '1 TB'", id="memory"),
        pytest.param(replace(SPEC, topology="rack"), "--topology", id="topology"),
        pytest.param(replace(SPEC, runtime="docker"), "choose one of binary, kind", id="runtime"),
        pytest.param(replace(SPEC, scheduler_qps=0), "--scheduler-qps 0", id="qps"),
        pytest.param(replace(SPEC, feature_gates="A"), "--feature-gates: 'A'", id="gates"),
        pytest.param(
            replace(SPEC, runtime_config="api/all"), "--runtime-config: 'api/all'", id="apis"
        ),
        pytest.param(
            replace(SPEC, settings=(Setting("etcd", "a", "1"), Setting("etcd", "a", "2"))),
            "--set etcd.a is given twice",
            id="setting",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_flag(spec: LabSpec, complaint: str) -> None:
    with pytest.raises(LabError) as refused:
        spec.check()
    assert complaint in str(refused.value)


def test_a_full_spec_is_accepted() -> None:
    LabSpec(
        name="a-1",
        nodes=10_000,
        feature_gates="A=true,B1=false",
        runtime_config="api/all=true,resource.k8s.io/v1=false",
        scheduler_qps=1000,
        settings=(Setting("etcd", "a", "1"), Setting("kube-apiserver", "a", "1")),
        runtime="kind",
    ).check()


def test_equal_specs_do_not_differ() -> None:
    assert differences(SPEC, LabSpec()) == []


def test_differences_name_the_flags() -> None:
    other = replace(SPEC, nodes=80, audit=True, settings=(Setting("etcd", "a", "1"),))
    assert differences(SPEC, replace(other, scheduler_qps=9)) == [
        "--nodes is 40, not 80",
        "--scheduler-qps is unset, not 9",
        "--audit is off, not on",
        "--set is unset, not etcd.a=1",
    ]
