"""Families of metrics: those that a page lists, and those that a process shows."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from tests.repo import checkout, prose

PAGE: Final = checkout.ROOT / "docs" / "metrics.md"
EVERY: Final = "Every process"
CONTROLLERS: Final = "Both controllers"
_ROW: Final = re.compile(r"^\| `(\w+)` \| (\w+) \|(.*?)\| (.+) \|$", re.MULTILINE)
_HIDDEN: Final = {"histogram": {"le"}}


@dataclass(frozen=True)
class Family:
    """What is said of one: its type, and its labels as far as they are known."""

    kind: str
    labels: frozenset[str]


def listed(*sections: str) -> dict[str, Family]:
    """Return what the page lists in these sections, or in all of them."""
    _, *parts = re.split(r"^## ", prose.read(PAGE), flags=re.MULTILINE)
    found: dict[str, Family] = {}
    for part in parts:
        if sections and part.partition("\n")[0] not in sections:
            continue
        for name, kind, labels, _ in _ROW.findall(part):
            assert name not in found, f"{name} is listed twice"
            found[name] = Family(kind, frozenset(re.findall(r"`(\w+)`", labels)))
    return found


def shown(text: str) -> dict[str, Family]:
    """Return what a process shows; labels are those of its samples, if there are any."""
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    labels: dict[str, set[str]] = {name: set() for name in kinds}
    for family in text_string_to_metric_families(text):
        name = family.name if family.name in kinds else f"{family.name}_total"
        for sample in family.samples:
            labels[name] |= sample.labels.keys() - _HIDDEN.get(kinds[name], set())
    return {name: Family(kind, frozenset(labels[name])) for name, kind in kinds.items()}


def differences(wanted: Mapping[str, Family], there: Mapping[str, Family]) -> list[str]:
    """Say how a process differs from the page; one without samples shows no labels."""
    found = [f"{name} is not listed" for name in there.keys() - wanted.keys()]
    found += [f"{name} is not shown" for name in wanted.keys() - there.keys()]
    for name in wanted.keys() & there.keys():
        if wanted[name].kind != there[name].kind:
            found.append(f"{name} is a {there[name].kind}")
        if there[name].labels and wanted[name].labels != there[name].labels:
            found.append(f"{name} has the labels {sorted(there[name].labels)}")
    return sorted(found)


def values(text: str) -> dict[str, float]:
    """Return the value of each series, by its name and labels as they are written."""
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {series: float(value) for series, _, value in lines}
