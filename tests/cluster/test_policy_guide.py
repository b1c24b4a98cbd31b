"""The ten minutes that the guide promises: its own words, typed in as they stand there."""

import asyncio
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from tests.repo import checkout
from tests.support import policies
from tests.support.installed import Installed
from tests.support.living import connect, engine_set, namespace
from tests.support.tenants import RBAC, ROLEBINDINGS, ROLES

pytestmark = pytest.mark.cluster

GUIDE: Final = (checkout.ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
SECTION: Final = GUIDE.partition("## Queues for teams, in ten minutes")[2].partition("\n## ")[0]
SPACE: Final = "chat-a"
TRIES: Final = 100
RULE: Final = "(policy rule queue-submitter)"


def commands() -> list[str]:
    """Give what the guide has people type, in its order."""
    found = re.findall(r"`((?:penstock|kubectl) [^`]*)`", SECTION)
    return [" ".join(each.split()) for each in found]


@dataclass(frozen=True)
class Desk:
    """A platform engineer's shell, in a folder of their own."""

    folder: Path
    space: str
    environment: dict[str, str]

    def types(self, command: str) -> str:
        """Type a command of the guide; gives all that is shown."""
        line = command.replace(SPACE, self.space)
        done = subprocess.run(
            ["/bin/sh", "-c", line], cwd=self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60,
        )  # fmt: skip
        return f"{done.stdout}[{done.returncode}]"

    def sees(self, command: str, so: Callable[[str], bool]) -> str:
        """Type it again until that is to be seen."""
        shown = ""
        for _ in range(TRIES):
            shown = self.types(command)
            if so(shown):
                return shown
            time.sleep(0.1)
        raise AssertionError(shown)


@pytest.fixture
def desk(installed: Installed, tmp_path: Path) -> Iterator[Desk]:
    """An engineer with a kubeconfig, and somebody of another team with the rights to try."""
    lab = installed.lab
    here = os.pathsep.join([str(Path(sys.executable).parent), str(lab.binaries["kubectl"].parent)])
    environment = {
        **os.environ,
        "PATH": f"{here}{os.pathsep}{os.environ['PATH']}",
        "KUBECONFIG": str(lab.kubeconfig),
        "KUBE_EDITOR": "sed -i /mode:.warn/d",
    }
    with asyncio.Runner() as runner:
        client = connect(lab.kubeconfig)
        runner.run(client.__aenter__())
        space = namespace(client, f"chat-{secrets.token_hex(4)}")
        name = runner.run(space.__aenter__())
        try:
            runner.run(_may_write_and_make(client, name))
            yield Desk(tmp_path, name, environment)
        finally:
            runner.run(policies.take_back(client))
            runner.run(space.__aexit__(None, None, None))
            runner.run(client.__aexit__(None, None, None))


async def _may_write_and_make(client: Client, space: str) -> None:
    rules: list[Json] = [
        {"apiGroups": ["grove.io"], "resources": ["podcliquesets"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]},
    ]
    await client.create(ROLES, {"metadata": {"name": "writers"}, "rules": rules}, space)
    binding: JsonObject = {
        "metadata": {"name": "writers"},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "writers"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "bob"}],
    }
    await client.create(ROLEBINDINGS, binding, space)


def test_the_guide_leads_from_nothing_to_queues_for_teams(desk: Desk) -> None:
    lint, save, test, take, look, ask, edit = commands()
    (policy,) = re.findall(r"```yaml\n(.*?)```", SECTION, re.DOTALL)
    (desk.folder / "policy.yaml").write_text(policy)
    body = {**engine_set("tried", pods=1, gpus=1), "apiVersion": "grove.io/v1alpha1"}
    (desk.folder / "set.yaml").write_text(yaml.safe_dump({**body, "kind": "PodCliqueSet"}))

    assert desk.types(lint).endswith("[0]")
    (desk.folder / "more.yaml").write_text(_of(desk.space, body))
    shown = ""
    # Sets of tests before may still be going, and one of them may be refused by now.
    for _ in range(TRIES):
        assert desk.types(save).endswith("[0]")
        shown = desk.types(f"{test} more.yaml")
        if shown.endswith("[0]"):
            break
    assert shown.endswith("[0]"), shown

    assert desk.types(take).endswith("[0]")

    desk.sees(look, lambda shown: f"{names.POLICY_CONFIG} is in force" in shown)
    shown = desk.sees(ask, lambda shown: RULE in shown)
    assert "Warning: " in shown
    assert shown.endswith("[0]")

    assert desk.types(edit).endswith("[0]")
    shown = desk.sees(ask, lambda shown: not shown.endswith("[0]"))
    assert RULE in shown


def _of(space: str, body: JsonObject) -> str:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    whole = {**body, "kind": "PodCliqueSet", "metadata": {**metadata, "namespace": space}}
    return yaml.safe_dump(whole)
