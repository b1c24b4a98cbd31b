import asyncio
from pathlib import Path

import pytest
import yaml

from api import exits, names
from kube.clock import SystemClock
from kube.startup import StartupFailure
from policies.policy_source import BUILT_IN_SOURCE
from tests.support import fakeapi
from tests.webhook.clusterstand import BINDINGS, CONFIGS, Stand, standing
from webhook import beginning, settings
from webhook.beginning import Foundation


def chosen(folder: Path, server: str, *flags: str) -> settings.Settings:
    path = folder / "kubeconfig"
    document = {
        "clusters": [{"name": "k", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "current-context": "c",
    }
    path.write_text(yaml.safe_dump(document))
    return settings.parse(["--tls-dir", "tls", "--kubeconfig", str(path), "--wait", "0", *flags])


async def lay(stand: Stand, folder: Path, *flags: str) -> Foundation:
    async with standing(stand):
        flagged = chosen(folder, stand.url, *flags)
        return await asyncio.to_thread(beginning.lay, flagged, SystemClock())


async def failure(stand: Stand, folder: Path, *flags: str) -> StartupFailure:
    with pytest.raises(StartupFailure) as caught:
        await lay(stand, folder, *flags)
    assert "\n" not in caught.value.line
    return caught.value


async def test_without_a_policy_the_built_in_one_counts(tmp_path: Path) -> None:
    found = await lay(Stand(), tmp_path)
    assert found.source == BUILT_IN_SOURCE
    assert found.credentials is not None


async def test_a_config_map_without_the_key_is_no_policy(tmp_path: Path) -> None:
    stand = Stand()
    stand.config(names.POLICY_CONFIG, other="pods: 1")
    assert (await lay(stand, tmp_path)).source == BUILT_IN_SOURCE


async def test_the_config_map_is_gone_by_and_a_file_instead_of_it(tmp_path: Path) -> None:
    stand = Stand()
    stand.config(names.POLICY_CONFIG, **{names.POLICY_KEY: "pods: {queue: stored}"})
    found = await lay(stand, tmp_path)
    assert found.source.policy.pods.queue == "stored"
    assert found.source.origin == "ConfigMap penstock-system/penstock-policy key policy.yaml"
    (tmp_path / "p.yaml").write_text("pods: {queue: written}")
    found = await lay(stand, tmp_path, "--policy-file", str(tmp_path / "p.yaml"))
    assert found.source.policy.pods.queue == "written"


async def test_no_cluster_is_asked_for_where_there_is_none(tmp_path: Path) -> None:
    flagged = settings.parse(["--tls-dir", "tls", "--no-cluster"])
    assert beginning.lay(flagged, SystemClock()) == Foundation(BUILT_IN_SOURCE, None)


async def test_a_bad_policy_names_the_config_map(tmp_path: Path) -> None:
    stand = Stand()
    stand.config(names.POLICY_CONFIG, **{names.POLICY_KEY: "pods: {queeu: x}"})
    failed = await failure(stand, tmp_path)
    assert failed.exit_code == exits.BAD_POLICY
    assert failed.line.startswith(
        "policy ConfigMap penstock-system/penstock-policy key policy.yaml: line 1: pods.queeu"
    )


async def test_a_kind_that_is_not_served_is_named_with_the_way_to_mend_it(tmp_path: Path) -> None:
    stand = Stand()
    missing = fakeapi.text(404, "404 page not found")
    stand.kinds[BINDINGS].list_answers.append(missing)
    failed = await failure(stand, tmp_path)
    assert failed.exit_code == exits.MISSING_KIND
    assert "clustertopologybindings.grove.io (version v1alpha1) is not installed" in failed.line


@pytest.mark.parametrize("readable", [0, 1])
async def test_a_config_map_that_may_not_be_read_is_a_missing_right(
    readable: int, tmp_path: Path
) -> None:
    stand = Stand()
    fine = fakeapi.json({"metadata": {}, "data": {}})
    refused = fakeapi.status(403, "Forbidden", "configmaps is forbidden")
    stand.kinds[CONFIGS].answers.extend([fine] * readable + [refused])
    failed = await failure(stand, tmp_path)
    assert failed.exit_code == exits.BAD_CREDENTIALS
    assert failed.line.startswith("a right is missing: configmaps is forbidden")


async def test_a_server_that_fails_half_way_is_said_so(tmp_path: Path) -> None:
    stand = Stand()
    stand.kinds[CONFIGS].answers.append(fakeapi.status(500, "InternalError", "etcd is gone"))
    failed = await failure(stand, tmp_path)
    assert failed.exit_code == exits.NO_API_SERVER
    assert "penstock-policy: etcd is gone" in failed.line


@pytest.mark.parametrize("stored", [None, "pods: {queeu: x}"])
async def test_a_policy_that_is_gone_or_bad_is_replaced_by_the_last_good_one(
    stored: str | None, tmp_path: Path
) -> None:
    stand = Stand()
    if stored is not None:
        stand.config(names.POLICY_CONFIG, **{names.POLICY_KEY: stored})
    stand.config(names.KEPT_POLICY_CONFIG, **{names.POLICY_KEY: "pods: {queue: kept}"})
    found = await lay(stand, tmp_path)
    assert found.source.policy.pods.queue == "kept"
    assert "penstock-policy-lkg" in found.source.origin


async def test_a_good_policy_counts_whatever_was_kept(tmp_path: Path) -> None:
    stand = Stand()
    stand.config(names.POLICY_CONFIG, **{names.POLICY_KEY: "pods: {queue: stored}"})
    stand.config(names.KEPT_POLICY_CONFIG, **{names.POLICY_KEY: "pods: {queue: kept}"})
    assert (await lay(stand, tmp_path)).source.policy.pods.queue == "stored"
