"""Any review at all, asked of the whole application in this process: an answer that holds."""

import base64
from typing import Final, cast

import jsonpatch
import orjson
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from api import names
from api.jsons import Json, JsonObject
from kube.clock import SystemClock
from policies.policy import BUILT_IN
from tests.cluster.rules import judging
from tests.cluster.rules.manifests import BROAD, LEVELS, OTHER, binding
from tests.support.bad_input import HOSTILE_NAMES
from tests.support.edits import edited
from tests.support.generated_pods import label_maps, parts, pod_specs, words
from tests.support.generated_sets import podcliquesets, shaken
from webhook import serving
from webhook.answering import Answering
from webhook.metrics import Metrics
from webhook.routes import PATHS

BINDINGS: Final = {BROAD: LEVELS, OTHER: LEVELS}
DEFAULT: Final = "/default/podcliquesets"
VALIDATE: Final = "/validate/podcliquesets"
MUTATE: Final = "/mutate/pods"

fuzzed = settings(
    max_examples=30,
    phases=[Phase.generate, Phase.shrink],
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

odd: Final[st.SearchStrategy[Json]] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        st.sampled_from([*HOSTILE_NAMES.values()]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["spec", "metadata", "labels", "name", "template", "cliques", "x"]),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=12,
)
_claims: Final = st.fixed_dictionaries(
    {},
    optional={
        names.GANG_LABEL: words,
        names.GANG_SIZE_LABEL: st.sampled_from(["4", "0", "-1", "many", "9" * 60]),
        names.GANG_MINIMUM_LABEL: st.sampled_from(["2", "x"]),
        names.PODGANG_LABEL: words,
        names.MANAGED_BY_LABEL: st.just(names.MANAGED_BY),
        names.PART_OF_LABEL: words,
        names.QUEUE_LABEL: words,
    },
)
pods: Final[st.SearchStrategy[JsonObject]] = st.builds(
    lambda labels, more, spec: {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {**more, **labels}},
        "spec": spec,
    },
    _claims,
    label_maps,
    pod_specs(("", "default-scheduler", "kai-scheduler", "elsewhere")),
)
sets: Final = st.one_of(podcliquesets(BINDINGS), shaken(BINDINGS))
objects: Final[st.SearchStrategy[Json]] = st.one_of(sets, pods, st.just(binding()), odd)
_reviews: Final = parts(
    operation=st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT"]),
    kind=st.builds(
        lambda kind: {"kind": kind},
        st.sampled_from(["PodCliqueSet", "Pod", "ClusterTopologyBinding", "Scale", "Secret", ""]),
    ),
    namespace=words,
    name=st.sampled_from([*HOSTILE_NAMES.values()]),
    subResource=st.sampled_from(["", "scale", "status"]),
    dryRun=st.booleans(),
    userInfo=parts(username=words, groups=st.lists(words, max_size=2), extra=odd),
    options=odd,
)


def app() -> serving.Desk:
    """All of the application but its sockets, with the rules' topologies known."""
    metrics = Metrics(PATHS)
    answering = Answering(lambda: BUILT_IN, judging.KNOWN, metrics, SystemClock().monotonic)
    return serving.Desk(answering, lambda: (), metrics.written)


CLIENT: Final = serving.make_app(app()).test_client()


def ask(path: str, request: JsonObject) -> JsonObject | None:
    """Give the response of the reply, held against what the API server demands of one."""
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    reply = CLIENT.post(path, data=orjson.dumps(body), content_type="application/json")
    if reply.status_code != 200:
        assert 400 <= reply.status_code < 500, reply.data
        return None
    response = cast("JsonObject", orjson.loads(reply.data)["response"])
    assert response["uid"] == request["uid"]
    assert isinstance(response["allowed"], bool)
    assert ("patch" in response) == ("patchType" in response)
    if not response["allowed"]:
        status = cast("JsonObject", response["status"])
        assert status["code"] != 500, status
        assert str(status["message"]).isprintable()
    return response


def patched(found: JsonObject, response: JsonObject) -> JsonObject:
    """The object after the response's patch."""
    if "patch" not in response:
        return found
    patch = orjson.loads(base64.b64decode(str(response["patch"])))
    return cast("JsonObject", jsonpatch.apply_patch(found, patch))


def about(found: JsonObject, *, old: JsonObject | None = None) -> JsonObject:
    """What a review asks about an object that is made, or changed."""
    return {
        "uid": "u-1",
        "operation": "UPDATE" if old else "CREATE",
        "kind": {"kind": found["kind"]},
        "namespace": "default",
        "object": found,
        "oldObject": old,
        "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters"]},
    }


@fuzzed
@given(path=st.sampled_from(sorted(PATHS)), asked=_reviews, found=objects, old=objects)
def test_any_review_is_answered_to_its_uid_and_its_patch_applies(
    path: str, asked: JsonObject, found: Json, old: Json
) -> None:
    response = ask(path, {"uid": "u-7", **asked, "object": found, "oldObject": old})
    if response and response["allowed"] and isinstance(found, dict):
        patched(found, response)


@fuzzed
@given(found=sets)
def test_a_set_filled_in_is_valid_and_filling_it_in_again_changes_nothing(
    found: JsonObject,
) -> None:
    response = ask(DEFAULT, about(found))
    assert response is not None
    if not response["allowed"]:
        return
    filled = patched(edited(found, {}), response)
    again = ask(DEFAULT, about(filled))
    assert again is not None
    assert again["allowed"]
    assert "patch" not in again
    validated = ask(VALIDATE, about(filled))
    assert validated is not None
    assert validated["allowed"]
    assert "patch" not in validated
    # What is stored may be written again as it is.
    unchanged = ask(VALIDATE, about(found, old=filled))
    assert unchanged is not None
    assert unchanged["allowed"], unchanged


@fuzzed
@given(pod=pods)
def test_a_pod_is_marked_once_and_loses_nothing(pod: JsonObject) -> None:
    response = ask(MUTATE, about(pod))
    assert response is not None
    if not response["allowed"]:
        return
    marked = patched(edited(pod, {}), response)
    again = ask(MUTATE, about(marked))
    assert again is not None
    assert again["allowed"], again
    assert "patch" not in again
    gates = cast("JsonObject", pod["spec"]).get("schedulingGates", [])
    kept = cast("JsonObject", marked["spec"]).get("schedulingGates", [])
    assert isinstance(gates, list)
    assert isinstance(kept, list)
    assert kept[: len(gates)] == gates
