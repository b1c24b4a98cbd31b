"""The page on security lists exactly the rights that the chart gives to each process."""

import pytest

from api.jsons import JsonObject
from tests.repo import checkout, prose
from tests.repo.test_chart import rules
from tests.repo.test_chart_switches import COMPANION
from tests.support.charts import Objects, Render, items

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

PAGE = prose.read(checkout.ROOT / "docs" / "security.md")
ACCOUNTS = ("penstock-webhook", "penstock-workloads", "penstock-gangs", "penstock-prover")
Right = tuple[str, str, str, str, str]  # where, group, resource, verb, resource name or ""


def subjects(objects: Objects) -> list[tuple[str, str, JsonObject]]:
    """List who is bound to which role, and where: account, namespace or "", role."""
    found = []
    for (kind, _), binding in objects.items():
        if kind not in {"RoleBinding", "ClusterRoleBinding"}:
            continue
        where = str(items(binding, "metadata", "namespace")[0]) if kind == "RoleBinding" else ""
        (role_kind,) = items(binding, "roleRef", "kind")
        (role,) = items(binding, "roleRef", "name")
        for subject in items(binding, "subjects"):
            assert isinstance(subject, dict)
            found.append((str(subject["name"]), where, objects[str(role_kind), str(role)]))
    return found


def given(objects: Objects, account: str) -> set[Right]:
    return {
        (where, *rule)
        for name, where, role in subjects(objects)
        if name == account
        for rule in rules(role)
    }


def told(account: str) -> set[Right]:
    found: set[Right] = set()
    for where, group, resources, verbs, only in prose.rows(prose.section(PAGE, f"### `{account}`")):
        place = "" if where == "everywhere" else where.strip("`")
        api = "" if group == "core" else group.strip("`")
        for resource in resources.replace("`", "").split(", "):
            for verb in verbs.split(", "):
                for name in only.replace("`", "").split(", "):
                    found.add((place, api, resource, verb, name))
    return found


@pytest.mark.parametrize("account", ACCOUNTS)
def test_the_rights_of_a_process_are_told_as_they_are(inside: Objects, account: str) -> None:
    may = given(inside, account)
    assert may
    assert told(account) == may


def test_every_account_that_has_rights_is_told_of(inside: Objects) -> None:
    assert {name for name, _, _ in subjects(inside)} == set(ACCOUNTS)


def test_what_every_guard_stops_is_told(inside: Objects, render: Render) -> None:
    both = {*inside, *render(*COMPANION)}
    guards = {name for kind, name in both if kind == "ValidatingAdmissionPolicy"}
    assert len(guards) > 10
    stops = prose.rows(prose.section(PAGE, "## What stops what"))
    assert {name for name in guards if not any(f"`{name}`" in row[1] for row in stops)} == set()
