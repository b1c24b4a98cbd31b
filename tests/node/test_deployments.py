"""The chart's own Deployments, run from our image: they serve, roll, drain and fail over."""

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import pytest

from api import names
from api.jsons import JsonObject
from penstock.lab.commands import run
from penstock.lab.folders import Cache
from penstock.lab.images import penstock
from penstock.lab.images.penstock import Made
from penstock.lab.progress import Silence
from penstock.lab.realnode.addresses import NODE_NAME
from penstock.lab.state import Lab
from tests.support.creating import calls, creating
from tests.support.living import Cluster, Kubectl
from tests.support.ordered import ordered
from tests.support.realpods import busybox, kubectl_of, real_clique

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("deployed")]

PARTS = ("webhook", "workloads", "gangs")
RATE = 10
WEBHOOKS = "penstock-webhook"

WHO_AM_I = """
import json, os, ssl, urllib.request, urllib.error
place = "/var/run/secrets/kubernetes.io/serviceaccount"
token = open(place + "/token").read()
server = "https://%s:%s" % tuple(os.environ["KUBERNETES_SERVICE_" + k] for k in ("HOST", "PORT"))
def ask(path, body=None):
    header = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
    request = urllib.request.Request(server + path, body and json.dumps(body).encode(), header)
    context = ssl.create_default_context(cafile=place + "/ca.crt")
    try:
        return json.load(urllib.request.urlopen(request, context=context))
    except urllib.error.HTTPError as error:
        return {"code": error.code}
review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
said = ask("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
print(said["status"]["userInfo"]["username"])
print(ask("/api/v1/secrets").get("code"))
print(ask("/apis/grove.io/v1alpha1/podcliquesets").get("kind"))
"""

CONFINED = """
import os
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(os.getuid(), os.getgid(), *(status[k].strip() for k in ("CapEff", "NoNewPrivs", "Seccomp")))
for place in ("/", "/opt/penstock", "/usr/local/lib"):
    try:
        open(place + "/x", "w")
    except OSError as error:
        print(error.strerror)
"""


@pytest.fixture
def ours(lab: Lab) -> Kubectl:
    """kubectl where Penstock runs."""
    return kubectl_of(lab, names.NAMESPACE)


def pods_of(kubectl: Kubectl, part: str) -> list[JsonObject]:
    selector = f"app.kubernetes.io/component={part}"
    listed = kubectl.run("get", "pods", "-l", selector, "-o", "json", check=True).stdout
    items: list[JsonObject] = json.loads(listed)["items"]
    return items


def staying(kubectl: Kubectl, part: str) -> list[JsonObject]:
    """List pods but for those that leave; a roll is complete while the last old one still does."""
    return [pod for pod in pods_of(kubectl, part) if "deletionTimestamp" not in metadata_of(pod)]


def metadata_of(pod: JsonObject) -> JsonObject:
    metadata = pod["metadata"]
    assert isinstance(metadata, dict)
    return metadata


def name_of(pod: JsonObject) -> str:
    return str(metadata_of(pod)["name"])


def available(kubectl: Kubectl, *parts: str) -> None:
    for part in parts:
        words = ("rollout", "status", f"deployment/penstock-{part}", "--timeout=58s")
        if kubectl.run(*words).returncode:  # kubectl itself is given a minute
            kubectl.run(*words, check=True)


@pytest.mark.parametrize("part", PARTS)
def test_each_process_runs_from_our_image_and_can_do_no_harm(
    ours: Kubectl, deployed: Made, part: str
) -> None:
    available(ours, part)
    for pod in staying(ours, part):
        spec = pod["spec"]
        assert isinstance(spec, dict)
        assert spec["nodeName"] == NODE_NAME
        assert [each["image"] for each in spec["containers"]] == [deployed.image]  # type: ignore[index,union-attr,call-overload]
        assert "--traces-endpoint=" in json.dumps(spec["containers"])
        assert ours.run("logs", name_of(pod)).stdout
    said = ours.run("exec", f"deploy/penstock-{part}", "--", "python", "-c", CONFINED, check=True)
    first, *refused = said.stdout.splitlines()
    assert first == "65532 65532 0000000000000000 1 2"
    assert refused == ["Read-only file system"] * 3


@pytest.mark.parametrize("part", PARTS)
def test_each_process_speaks_as_its_own_account_with_that_accounts_rights(
    ours: Kubectl, part: str
) -> None:
    said = ours.run("exec", f"deploy/penstock-{part}", "--", "python", "-c", WHO_AM_I, check=True)
    user, secrets, sets = said.stdout.splitlines()
    assert user == f"system:serviceaccount:{names.NAMESPACE}:penstock-{part}"
    assert secrets == "403"
    assert sets == "PodCliqueSetList"


def test_where_penstock_runs_only_restricted_pods_may(ours: Kubectl) -> None:
    pod = busybox("bold", ["true"])
    pod["spec"]["containers"][0]["securityContext"] = {"privileged": True}  # type: ignore[index,call-overload]
    refused = ours.run("create", "-f", "-", text=json.dumps(pod))
    assert 'violates PodSecurity "restricted' in refused.stderr


def test_admission_is_served_through_the_service(lab: Lab, kubectl: Kubectl) -> None:
    configuration = kubectl.run(
        "get", "validatingwebhookconfiguration", names.WEBHOOK_CONFIGURATION,
        "-o", "jsonpath={.webhooks[*].clientConfig.service.name}", check=True,
    )  # fmt: skip
    assert set(configuration.stdout.split()) == {WEBHOOKS}
    before = calls(lab.kubeconfig)
    cycle = [real_clique("a", "b"), real_clique("b", "a")]
    body = ordered("ring", "CliqueStartupTypeExplicit", list(cycle))
    refused = kubectl.run("create", "-f", "-", text=json.dumps(body))
    assert "denied the request" in refused.stderr
    assert calls(lab.kubeconfig) > before


ASK = """
import ssl, urllib.request, urllib.error
for path, body in (("/readyz", None), ("/validate/podcliquesets", b"{}")):
    try:
        context = ssl._create_unverified_context()
        print(urllib.request.urlopen("https://%s" + path, body, 9, context=context).status)
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
"""


def test_whoever_shows_no_certificate_of_an_api_servers_is_not_answered(ours: Kubectl) -> None:
    """The API server of this lab shows one, and is answered in all other tests here."""
    address = ours.run("get", "service", WEBHOOKS, "-o", "jsonpath={.spec.clusterIP}").stdout
    said = ours.run("exec", "deploy/penstock-gangs", "--", "python", "-c", ASK % address)
    ready, *refused = said.stdout.splitlines()
    assert ready == "200"
    assert refused[0].startswith("403 ")
    assert "client certificate" in said.stdout


def test_a_roll_of_all_processes_under_load_loses_no_call(
    lab: Lab, ours: Kubectl, open_space: str
) -> None:
    available(ours, *PARTS)
    before = {name_of(pod) for part in PARTS for pod in staying(ours, part)}
    assert len(before) == 2 * len(PARTS)
    with creating(lab.kubeconfig, open_space, RATE) as tally:
        ours.run("rollout", "restart", "deployment", check=True)
        available(ours, *PARTS)
        until_gone(ours, before)
    assert tally.asked > RATE
    assert tally.failures == []


def until_gone(kubectl: Kubectl, gone: set[str]) -> None:
    for _ in range(300):
        there = {name_of(pod) for part in PARTS for pod in pods_of(kubectl, part)}
        if not gone & there:
            return
        time.sleep(0.2)
    pytest.fail(f"not gone after a minute: {gone}")


def test_a_drain_leaves_one_webhook_and_loses_no_call(
    lab: Lab, ours: Kubectl, open_space: str
) -> None:
    """The only node that could run the other is being drained, so the budget holds the last."""
    available(ours, "webhook")
    selector = "--pod-selector=app.kubernetes.io/component=webhook"
    drain = ("drain", NODE_NAME, selector, "--delete-emptydir-data", "--timeout=15s")
    try:
        with creating(lab.kubeconfig, open_space, RATE) as tally:
            drained = ours.run(*drain)
    finally:
        ours.run("uncordon", NODE_NAME, check=True)
    assert "would violate the pod's disruption budget" in drained.stderr + drained.stdout
    assert tally.failures == []
    available(ours, "webhook")


def holder(kubectl: Kubectl, lease: str) -> str:
    words = ("get", "lease", lease, "-o", "jsonpath={.spec.holderIdentity}")
    return kubectl.run(*words).stdout


@pytest.mark.parametrize(
    ("part", "lease"), [("gangs", names.GANGS_LEASE), ("workloads", names.WORKLOADS_LEASE)]
)
async def test_when_the_leaders_pod_is_killed_the_standby_goes_on(
    ours: Kubectl, cluster: Cluster, kubectl: Kubectl, part: str, lease: str
) -> None:
    leader = holder(ours, lease)
    (pod,) = [each for each in pods_of(ours, part) if name_of(each) in leader]
    ours.run("delete", "pod", name_of(pod), "--grace-period=0", "--force", check=True)
    kubectl.apply(ordered("heir", "CliqueStartupTypeAnyOrder", [real_clique("a", replicas=2)]))
    await cluster.running("heir")
    assert holder(ours, lease) not in {"", leader}
    kubectl.delete("heir")
    available(ours, part)


def processes_of(pod: JsonObject) -> list[int]:
    """The pids, as the machine counts them, of a pod's main process: found by its control group."""
    metadata = pod["metadata"]
    assert isinstance(metadata, dict)
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            inside = f"pod{metadata['uid']}" in (process / "cgroup").read_text()
            command = (process / "cmdline").read_text()
        except OSError:
            continue
        if inside and "python" in command:
            found.append(int(process.name))
    return sorted(found)


def restarts_and_ready(kubectl: Kubectl, pod: JsonObject) -> tuple[int, bool]:
    seen = json.loads(kubectl.run("get", "pod", name_of(pod), "-o", "json", check=True).stdout)
    (status,) = seen["status"]["containerStatuses"]
    return status["restartCount"], status["ready"]


async def test_a_webhook_that_hangs_is_left_out_and_one_that_dies_is_started_again(
    ours: Kubectl, cluster: Cluster
) -> None:
    available(ours, "webhook")
    pod = staying(ours, "webhook")[0]
    pids = processes_of(pod)
    assert pids

    async def unready() -> bool | None:
        return not restarts_and_ready(ours, pod)[1] or None

    async def ready_again() -> bool | None:
        return restarts_and_ready(ours, pod) == (0, True) or None

    async def started_again() -> bool | None:
        return restarts_and_ready(ours, pod) == (1, True) or None

    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        await cluster.until(unready, "its readiness probe fails")
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    await cluster.until(ready_again, "it is ready again, without a restart")
    os.kill(pids[0], signal.SIGKILL)
    await cluster.until(started_again, "the kubelet has started it again")


def test_the_image_is_the_same_when_all_of_it_is_made_again(deployed: Made, tmp_path: Path) -> None:
    again = asyncio.run(penstock.make(penstock.checkout(), Cache(tmp_path), run, Silence()))
    assert (again.image, again.digest) == (deployed.image, deployed.digest)
