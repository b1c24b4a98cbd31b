"""What tells one version of a template from another: hashes that only another pod changes. Pure.

They are compared with what live objects carry, across all versions of Penstock to come. They cover
what pods are made from: labels, annotations, podSpec, and the priority class, which is the set's
unless the podSpec names one. Scale, topology and startup order are none of it.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from api import names
from api.cliques import CliqueTemplate
from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from controller.workloads import containers
from controller.workloads.updates import canonical
from policies import membership

# What is written over whatever a template says, so that it never reaches a pod.
_TOLD_LABELS: Final = frozenset(
    (
        names.MANAGED_BY_LABEL,
        names.PART_OF_LABEL,
        names.NAME_LABEL,
        names.COMPONENT_LABEL,
        names.TEMPLATE_HASH_LABEL,
    )
)
_TOLD_ANNOTATIONS: Final = frozenset(
    (
        names.TOPOLOGY_NAME_ANNOTATION,
        names.TEMPLATE_HASH_ANNOTATION,
        names.FAILURES_ANNOTATION,
        *names.TERMINATIONS,
    )
)
# No template has them, or they are written over.
GROUP_VARIABLES: Final = "GROVE_PCSG_"
_PRIORITY: Final = "priorityClassName"
_DIGITS: Final = 16


def template_hash(template: CliqueTemplate, priority_class: str) -> str:
    """Hash what a clique's pods are made from; it can be the value of a label."""
    return pods_hash(template.labels, template.annotations, template.spec.pod_spec, priority_class)


def generation_hash(spec: PodCliqueSetSpec) -> str:
    """Hash all pod templates of a set, in whatever order they are written."""
    return generation_of(template_hashes(spec))


def template_hashes(spec: PodCliqueSetSpec) -> dict[str, str]:
    """Hash each clique's template."""
    priority_class = spec.template.priority_class_name
    return {clique.name: template_hash(clique, priority_class) for clique in spec.template.cliques}


def generation_of(hashes: Mapping[str, str]) -> str:
    """Give one hash for those of all cliques, by name."""
    return _digest({**hashes})


def pods_hash(
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    pod_spec: JsonObject,
    priority_class: str,
) -> str:
    """Hash the parts of a template."""
    spec = canonical.pod_spec(pod_spec)
    priority = spec.pop(_PRIORITY, None) or priority_class
    return _digest(
        {
            "labels": {key: text for key, text in labels.items() if not _is_told_label(key)},
            "annotations": {
                key: text for key, text in annotations.items() if not _is_told_annotation(key)
            },
            "spec": spec,
            _PRIORITY: priority,
        }
    )


def spec_hash(pod_spec: JsonObject) -> str:
    """Hash a podSpec alone, without the variables that a scaling group adds to its members'."""
    return _digest(canonical.pod_spec(containers.changed(pod_spec, _ungrouped)))


def _ungrouped(container: JsonObject) -> JsonObject:
    env = container.get("env")
    if not isinstance(env, list):
        return container
    own = [each for each in env if not _is_of_group(each)]
    return {**container, "env": own}


def _is_of_group(variable: Json) -> bool:
    return isinstance(variable, dict) and str(variable.get("name")).startswith(GROUP_VARIABLES)


def _is_told_label(key: str) -> bool:
    return key in _TOLD_LABELS or membership.is_forbidden_label(key)


def _is_told_annotation(key: str) -> bool:
    return key in _TOLD_ANNOTATIONS or membership.is_forbidden_annotation(key)


def _digest(value: Json) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
