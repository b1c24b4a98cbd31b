"""The Deployments of the chart as tests look at them: one container a pod, flags and mounts."""

from typing import Final

from api.jsons import JsonObject
from tests.support.charts import Objects, items

PROCESSES: Final = ("webhook", "workloads", "gangs")


def mapping(value: object, *path: str) -> JsonObject:
    """Follow a path that must lead to an object."""
    for step in path:
        assert isinstance(value, dict), f"no {step}"
        value = value.get(step)
    assert isinstance(value, dict), path
    return value


def listed(value: JsonObject, *path: str) -> list[JsonObject]:
    """Follow a path to a list of objects; none if it is not there."""
    return [each for each in items(value, *path) if isinstance(each, dict)]


def deployment(objects: Objects, process: str) -> JsonObject:
    return mapping(objects["Deployment", f"penstock-{process}"], "spec")


def pod(objects: Objects, process: str) -> JsonObject:
    return mapping(deployment(objects, process), "template", "spec")


def container(objects: Objects, process: str) -> JsonObject:
    (only,) = listed(pod(objects, process), "containers")
    return only


def arguments(objects: Objects, process: str) -> list[str]:
    return [str(each) for each in items(container(objects, process), "args")]


def labels(objects: Objects, process: str) -> JsonObject:
    return mapping(deployment(objects, process), "template", "metadata", "labels")


def selects(selector: JsonObject, labels: JsonObject) -> bool:
    return bool(selector) and selector.items() <= labels.items()
