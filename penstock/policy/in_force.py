"""`penstock policy status`: whether the policy that is written is in force, and since when."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

import msgspec
from rich.console import RenderableType
from rich.text import Text

from api import exits, names
from api.jsons import Json, JsonObject
from api.objects import timestamp
from controller.gangs.policy_keeping import PolicyStatus, status_told
from kube.client import Client
from kube.errors import Forbidden, NotFound
from kube.objects import ObjectMeta
from kube.resources import CONFIGMAPS
from penstock.ending import AskedWronglyError
from penstock.plugin import judging, reports
from penstock.plugin.planning import REFUSED, WAITS
from penstock.plugin.reports import Report
from penstock.plugin.scenes import VIEWER
from penstock.plugin.status import age
from policies import policy_doubts, policy_source
from policies.policy_source import BUILT_IN_SOURCE, BadPolicyError, Place, Source


class State(StrEnum):
    """What became of a policy that is written."""

    IN_FORCE = "InForce"
    NEW = "New"  # it can be gone by, and `gangs` has not said yet that it is
    REFUSED = "Refused"  # it cannot be gone by


class Holds(StrEnum):
    """Where the policy in force comes from."""

    WRITTEN = "Written"
    LAST_GOOD = "LastGood"
    BUILT_IN = "BuiltIn"


_FEW: Final = 10
_TRIED: Final = {State.IN_FORCE: "Tried", State.NEW: "New", State.REFUSED: "Refused"}
_CODES: Final = {State.IN_FORCE: exits.OK, State.NEW: WAITS, State.REFUSED: REFUSED}


_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class _Writer(msgspec.Struct, frozen=True, rename="camel"):
    """Who wrote which fields of an object last, and when, as the API server notes it."""

    manager: str = ""
    time: datetime | None = None
    fields_v1: dict[str, object] = {}

    def wrote(self, key: str) -> bool:
        """Whether this key of a ConfigMap is among them."""
        data = self.fields_v1.get("f:data")
        return isinstance(data, dict) and f"f:{key}" in data


class _Meta(ObjectMeta, frozen=True, rename="camel"):
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    managed_fields: list[_Writer] = msgspec.field(default_factory=list)


class Config(msgspec.Struct, frozen=True):
    """A ConfigMap, with who wrote what of it."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    data: dict[str, str] | None = None

    def text(self, key: str) -> str | None:
        """Give what is under a key."""
        return (self.data or {}).get(key)

    def writer(self, key: str) -> _Writer | None:
        """Tell who wrote a key last."""
        found = [each for each in self.metadata.managed_fields if each.time and each.wrote(key)]
        return max(found, key=lambda each: each.time or _NEVER, default=None)


@dataclass(frozen=True)
class Candidate:
    """What is tried beside the policy."""

    state: State
    revision: str
    faults: tuple[Place, ...]


@dataclass(frozen=True)
class Seen:
    """What there is; `state` is None where no policy is written."""

    namespace: str
    now: datetime
    state: State | None
    faults: tuple[Place, ...]
    doubts: tuple[Place, ...]
    said: str
    """What `gangs` said last of what is written, where that is no longer so."""
    written: _Writer | None
    holds: Holds
    source: Source
    since: datetime | None
    candidate: Candidate | None
    scan: JsonObject | None


async def asked(client: Client, namespace: str, *, system: str) -> Report:
    """Read the policy, what was kept of it, and what breaks it."""
    del namespace  # there is one policy
    policy = await _read(client, names.POLICY_CONFIG, system)
    kept = await _read(client, names.KEPT_POLICY_CONFIG, system)
    if policy is None and kept is None:
        said = f"there is no policy in namespace {system}, and nothing of Penstock to keep one"
        said += ": name the namespace that it is installed in by --penstock-namespace"
        raise AskedWronglyError(said, judging.NOT_FOUND)
    scan = await _read(client, names.SCAN_CONFIG, system)
    seen = look(system, client.clock.now(), policy, kept, scan)
    code = exits.OK if seen.state is None else _CODES[seen.state]
    return Report(data(seen), lambda wide: drawn(seen, wide=wide), code)


async def _read(client: Client, name: str, system: str) -> Config | None:
    try:
        return await client.get(CONFIGMAPS, Config, name, system)
    except NotFound:
        return None
    except Forbidden as error:
        said = (
            f"you may not read the ConfigMap {name} in namespace {system}: ask for the ClusterRole"
            f" {VIEWER}, by `kubectl create clusterrolebinding NAME --clusterrole={VIEWER}"
            " --user=YOU`"
        )
        raise AskedWronglyError(said, exits.BAD_CREDENTIALS) from error


def look(
    namespace: str, now: datetime, policy: Config | None, kept: Config | None, scan: Config | None
) -> Seen:
    """Work out what became of what is written."""
    text = policy.text(names.POLICY_KEY) if policy else None
    good = kept.text(names.POLICY_KEY) if kept else None
    told = status_told(policy.metadata.annotations) if policy else None
    source, faults = _understood(names.POLICY_KEY, text)
    state = None if text is None else State.REFUSED if source is None else State.NEW
    # Kept is what `gangs` has found good, and so is gone by: whatever this version makes of it.
    if text is not None and text == good:
        state = State.IN_FORCE
    held = source if state is State.IN_FORCE else _understood(names.KEPT_POLICY_CONFIG, good)[0]
    holds = _holds(state, held)
    keeper = kept.writer(names.POLICY_KEY) if kept and holds is not Holds.BUILT_IN else None
    doubts = policy_doubts.doubts(source.policy, now) if source else ()
    return Seen(
        namespace, now, state, faults,
        policy_source.placed(text, doubts) if text is not None and doubts else (),
        told.fault if told and state is State.NEW else "",
        policy.writer(names.POLICY_KEY) if policy and text is not None else None,
        holds, held or BUILT_IN_SOURCE, keeper.time if keeper else None,
        _candidate(policy, told), _scanned(scan),
    )  # fmt: skip


def _understood(origin: str, text: str | None) -> tuple[Source | None, tuple[Place, ...]]:
    if text is None:
        return None, ()
    try:
        return policy_source.read(origin, text), ()
    except BadPolicyError as error:
        return None, error.places


def _holds(state: State | None, held: Source | None) -> Holds:
    if state is State.IN_FORCE:
        return Holds.WRITTEN
    return Holds.LAST_GOOD if held is not None else Holds.BUILT_IN


def _candidate(policy: Config | None, told: PolicyStatus | None) -> Candidate | None:
    text = policy.text(names.CANDIDATE_KEY) if policy else None
    if text is None:
        return None
    source, faults = _understood(names.CANDIDATE_KEY, text)
    if source is None:
        return Candidate(State.REFUSED, "", faults)
    tried = told is not None and told.candidate_revision == source.revision
    return Candidate(State.IN_FORCE if tried else State.NEW, source.revision, ())


def _scanned(scan: Config | None) -> JsonObject | None:
    """Read what `gangs` found when it held what is there against the policy."""
    text = scan.text(names.SCAN_KEY) if scan else None
    try:
        found: Json = msgspec.json.decode(text) if text else None
    except msgspec.MsgspecError:
        return None
    return found if isinstance(found, dict) else None


def data(seen: Seen) -> JsonObject:
    """Give all of it for tools."""
    policy, candidate = seen.source.policy, seen.candidate
    return {
        "namespace": seen.namespace,
        "state": seen.state.value if seen.state else None,
        "written": {
            "at": _instant(seen.written.time), "by": seen.written.manager,
        } if seen.written else None,
        "faults": [*map(_place, seen.faults)],
        "doubts": [*map(_place, seen.doubts)],
        "inForce": {
            "from": seen.holds.value,
            "revision": seen.source.revision,
            "since": _instant(seen.since),
            "mode": policy.mode.value,
            "queues": len(policy.queues),
            "rules": len(policy.rules),
            "mutations": len(policy.mutations),
            "exemptions": len(policy.exemptions),
        },
        "candidate": {
            "state": _TRIED[candidate.state],
            "revision": candidate.revision or None,
            "faults": [*map(_place, candidate.faults)],
        } if candidate else None,
        "scan": seen.scan,
    }  # fmt: skip


def _instant(at: datetime | None) -> str | None:
    return timestamp(at) if at else None


def _place(place: Place) -> Json:
    problem = place.problem
    return {"line": place.line or None, "field": problem.path, "message": problem.message}


def drawn(seen: Seen, *, wide: bool) -> Iterator[RenderableType]:
    """Tell it to people."""
    name = f"{seen.namespace}/{names.POLICY_CONFIG}"
    match seen.state:
        case None:
            yield Text(f"no policy is written: there is no {names.POLICY_KEY} in ConfigMap {name}")
        case State.IN_FORCE:
            yield Text.assemble(f"{name} is ", ("in force", "green"), _since(seen))
        case State.NEW:
            yield Text.assemble(f"{name} is ", ("not in force yet", "yellow"), _written(seen))
            yield Text("`gangs`, which keeps what is good, has not said so; is it up?", "dim")
            if seen.said:
                yield Text(f"it said last: {seen.said}", "dim")
        case State.REFUSED:
            yield Text.assemble(f"{name} is ", ("not in force", "red"), _written(seen))
            yield Text("it cannot be gone by:")
            yield from _places(seen.faults, wide=wide)
    if seen.holds is not Holds.WRITTEN:
        what = "the last good one" if seen.holds is Holds.LAST_GOOD else "the built-in one"
        yield Text(f"{what} is in force{_since(seen)}")
    yield Text(f"  {_comes_to(seen)}", "dim")
    if seen.doubts:
        yield Text("what is written is good, but hardly meant so:")
        yield from _places(seen.doubts, wide=wide)
    if seen.candidate is not None:
        yield from _drawn_candidate(seen.candidate, wide=wide)
    yield from _drawn_scan(seen, wide=wide)


def _since(seen: Seen) -> str:
    since = f" for {age(seen.now - seen.since)}" if seen.since else ""
    return f"{since}, as revision {seen.source.revision}"


def _written(seen: Seen) -> str:
    if seen.written is None or seen.written.time is None:
        return ""
    return f"; written {age(seen.now - seen.written.time)} ago by {seen.written.manager}"


def _comes_to(seen: Seen) -> str:
    policy = seen.source.policy
    counts = {
        "queue": len(policy.queues), "rule": len(policy.rules),
        "mutation": len(policy.mutations), "exemption": len(policy.exemptions),
    }  # fmt: skip
    said = [reports.count(number, word) for word, number in counts.items() if number]
    return f"mode {policy.mode.value}; {', '.join(said) or 'no queues and no rules of its own'}"


def _places(places: Sequence[Place], *, wide: bool) -> Iterator[RenderableType]:
    shown = places if wide else places[:_FEW]
    for place in shown:
        yield Text(f"  {place}")
    if len(shown) < len(places):
        yield Text(f"  and {len(places) - len(shown)} more: -o wide", "dim")


def _drawn_candidate(candidate: Candidate, *, wide: bool) -> Iterator[RenderableType]:
    match candidate.state:
        case State.IN_FORCE:
            yield Text(f"{names.CANDIDATE_KEY} is tried, as revision {candidate.revision}")
        case State.NEW:
            yield Text(f"{names.CANDIDATE_KEY} is not tried yet")
        case State.REFUSED:
            yield Text(f"{names.CANDIDATE_KEY} is not tried: it cannot be gone by", "yellow")
            yield from _places(candidate.faults, wide=wide)


def _drawn_scan(seen: Seen, *, wide: bool) -> Iterator[RenderableType]:
    """Tell what of all that is there would be refused or warned of now."""
    if seen.scan is None:
        return
    broken = seen.scan.get("broken")
    rules = [each for each in broken if isinstance(each, dict)] if isinstance(broken, list) else []
    looked = seen.scan.get("lookedAt")
    kinds = looked if isinstance(looked, dict) else {}
    counted = ", ".join(reports.count(int(str(n)), kind) for kind, n in sorted(kinds.items()))
    if seen.scan.get("revision") == seen.source.revision:
        head, breaks = "of what is there", "breaks it"
    else:  # it is looked through again in a moment
        head, breaks = f"of what is there, by revision {seen.scan.get('revision')}", "broke it"
    looked_at = f"{counted or 'nothing'} looked at {seen.scan.get('finishedAt')}"
    if not rules:
        yield Text(f"{head}, nothing {breaks}: {looked_at}")
        return
    yield Text(f"{head}, this {breaks}: {looked_at}")
    rows = [
        (str(each.get("rule")), str(each.get("mode")), str(each.get("objects")), first)
        for each in rules
        for first in _examples(each, wide=wide)
    ]
    yield reports.table(("RULE", "MODE", "OBJECTS", "SUCH AS"), rows, right="OBJECTS")


def _examples(rule: Mapping[str, Json], *, wide: bool) -> Iterator[str]:
    examples = rule.get("examples")
    found = [e for e in examples if isinstance(e, dict)] if isinstance(examples, list) else []
    for each in found if wide else found[:1]:
        name = f"{each.get('namespace')}/{each.get('name')}"
        yield f"{each.get('kind')} {name}: {each.get('message')}"
