"""What is planned is what would be placed: by the same rules, planners and engine."""

from pathlib import Path

import pytest
import yaml

from api import exits
from api.jsons import Json, JsonObject
from api.streams import Custom
from penstock.ending import AskedWronglyError
from penstock.plugin import planning
from penstock.plugin.reports import Report
from tests.support.clusters import racks
from tests.support.living import engine_set
from tests.support.scenes import Stage, custom, gang, shown

BLOCK = "topology.kubernetes.io/block"
BUSY = ["n-0-0-0-0", "n-0-0-0-1", "n-0-0-1-0"]


async def planned(tmp_path: Path, *manifests: JsonObject, on: Stage | None = None) -> Report:
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    return await planning.report(await (on or Stage()).scene(), "default", paths=[file])


def gangs(report: Report) -> dict[str, JsonObject]:
    told: Json = report.data["gangs"]
    assert isinstance(told, list)
    found: dict[str, JsonObject] = {}
    for each in told:
        assert isinstance(each, dict)
        assert isinstance(each["gang"], dict)
        found[str(each["gang"]["name"])] = each
    return found


def nodes(told: JsonObject) -> list[str]:
    placements = told["placements"]
    assert isinstance(placements, list)
    found: list[str] = []
    for placement in placements:
        assert isinstance(placement, dict)
        assert isinstance(placement["pods"], list)
        found += [str(pod["node"]) for pod in placement["pods"] if isinstance(pod, dict)]
    return sorted(found)


def scaled_set() -> JsonObject:
    """A set of one base gang, and two more copies of its group."""
    body = engine_set("chat", pods=2, gpus=8)
    spec = body["spec"]
    assert isinstance(spec, dict)
    assert isinstance(spec["template"], dict)
    group: JsonObject = {
        "name": "model", "cliqueNames": ["engine"], "replicas": 3, "minAvailable": 1,
    }  # fmt: skip
    spec["template"]["podCliqueScalingGroups"] = [group]
    return body


async def test_a_set_that_fits_is_shown_with_the_nodes_of_every_clique(tmp_path: Path) -> None:
    report = await planned(tmp_path, engine_set("chat", pods=3, gpus=8))
    assert (report.code, report.data["verdict"]) == (exits.OK, "fits")
    (told,) = gangs(report).values()
    assert len(nodes(told)) == 3
    text = shown(report)
    assert "gang default/chat-0  would be placed in z0/z0-b0" in text
    assert "chat-0-engine" in text
    assert "fits: 1 of 1 gang would be placed now; nothing was written" in text


async def test_a_set_that_does_not_fit_is_told_why_and_what_would_help(tmp_path: Path) -> None:
    busy = gang("busy", 3, 8, at=BUSY)
    report = await planned(tmp_path, engine_set("chat", pods=6, gpus=8), on=Stage().beside(busy))
    assert (report.code, report.data["verdict"]) == (planning.WAITS, "waits")
    text = shown(report)
    assert "would wait, InsufficientCapacity: no room for all 6 pods of the minimum" in text
    assert "any one of these would do:" in text


async def test_scaled_gangs_come_after_their_base_and_take_what_it_leaves(tmp_path: Path) -> None:
    report = await planned(tmp_path, scaled_set(), on=Stage(racks(1, 1, 2, 2)))
    told = gangs(report)
    assert {name: each["fits"] for name, each in told.items()} == {
        "chat-0": True, "chat-0-model-0": True, "chat-0-model-1": False,
    }  # fmt: skip
    assert nodes(told["chat-0"]) != nodes(told["chat-0-model-0"])
    assert report.code == planning.WAITS


async def test_what_admission_would_refuse_is_refused(tmp_path: Path) -> None:
    body = engine_set("chat", pods=1, gpus=1, minimum=2)
    report = await planned(tmp_path, body)
    assert (report.code, report.data["verdict"]) == (planning.REFUSED, "refused")
    assert "minAvailable" in shown(report)


async def test_labelled_pods_of_a_job_are_planned_as_the_gang_they_will_be(tmp_path: Path) -> None:
    container: JsonObject = {
        "name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 8}},
    }  # fmt: skip
    labels: JsonObject = {"penstock.dev/gang": "train", "penstock.dev/gang-size": "4"}
    job: JsonObject = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {
            "parallelism": 4,
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    report = await planned(tmp_path, job)
    assert len(nodes(gangs(report)["train"])) == 4
    template = job["spec"]
    assert isinstance(template, dict)
    short = {**job, "spec": {**template, "parallelism": 3}}
    report = await planned(tmp_path, short)
    assert report.code == planning.WAITS
    assert gangs(report)["train"]["reason"] == "WaitingForPods"


async def test_a_podgang_is_planned_with_its_pods(tmp_path: Path) -> None:
    container: JsonObject = {
        "name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 8}},
    }  # fmt: skip
    references: list[Json] = [{"namespace": "default", "name": f"w-{i}"} for i in range(5)]
    body: JsonObject = {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {"name": "by-hand"},
        "spec": {
            "podgroups": [{"name": "w", "minReplicas": 5, "podReferences": references}],
            "topologyConstraint": {"packConstraint": {"required": BLOCK}},
        },
    }
    pods: list[JsonObject] = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"w-{i}"},
            "spec": {"containers": [container]},
        }
        for i in range(5)
    ]
    report = await planned(tmp_path, body, *pods)
    message = gangs(report)["by-hand"]["message"]
    assert "no block has room for all 5 pods of the minimum" in str(message)


def living(body: JsonObject, name: str) -> Custom:
    return custom({**body, "metadata": {"name": name, "namespace": "default", "uid": f"u-{name}"}})


def labelled_pod(name: str) -> JsonObject:
    labels: JsonObject = {"penstock.dev/gang": name, "penstock.dev/gang-size": "1"}
    spec: JsonObject = {"containers": [{"name": "main", "image": "x"}]}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{name}-x", "labels": labels},
        "spec": spec,
    }  # fmt: skip


def named_gang(name: str) -> JsonObject:
    return {
        "apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang", "metadata": {"name": name},
        "spec": {"podgroups": []},
    }  # fmt: skip


async def test_what_is_there_already_is_left_out_and_the_rest_is_planned(tmp_path: Path) -> None:
    old, new = (engine_set(name, pods=1, gpus=1) for name in ("chat", "search"))
    there = Stage(sets=[living(old, "chat")]).beside(gang("by-hand", 1, 1), gang("train", 1, 1))
    plain = labelled_pod("train")
    report = await planned(tmp_path, old, named_gang("by-hand"), plain, new, on=there)
    assert (report.code, [*gangs(report)]) == (exits.OK, ["search-0"])
    assert report.data["leftOut"] == [
        "PodCliqueSet default/chat, which is there already",
        "PodGang default/by-hand, which is there already",
        "gang default/train, which is there already",
    ]
    assert "`penstock tree chat -n default` tells how it stands" in shown(report)
    assert "fits: 1 of 1 gang would be placed now" in shown(report)


async def test_where_all_is_there_already_nothing_was_planned(tmp_path: Path) -> None:
    body = engine_set("chat", pods=1, gpus=1)
    report = await planned(tmp_path, body, on=Stage(sets=[living(body, "chat")]))
    assert (report.code, report.data["verdict"]) == (exits.BAD_SETTINGS, "empty")
    assert "nothing in these files is new" in shown(report)
    assert "there is no gang" not in shown(report)


async def test_a_file_without_gangs_says_what_a_gang_is(tmp_path: Path) -> None:
    service: JsonObject = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    report = await planned(tmp_path, service)
    assert (report.code, report.data["verdict"]) == (exits.BAD_SETTINGS, "empty")
    assert report.data["leftOut"] == ["Service s"]
    assert "there is no gang in these files" in shown(report)
    scene = await Stage().scene()
    with pytest.raises(AskedWronglyError, match="cannot be read") as failed:
        await planning.report(scene, "default", paths=[tmp_path / "none.yaml"])
    assert failed.value.code == exits.BAD_SETTINGS
