"""What the audit log says: one value a line. What people wrote is in none of them but as tags."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from api.jsons import JsonObject
from policies.admission import Operation
from policies.answers import Answer
from policies.policy import Policy

VERSION: Final = 1
LONGEST_LINE: Final = 32 * 1024

# What became of a request. The words are those that `penstock audit query --decision` takes.
DENY: Final = "deny"
WARN: Final = "warn"
AUDIT: Final = "audit"
SHED: Final = "shed"
LATE: Final = "deadline"
ERROR: Final = "error"
ALLOW: Final = "allow"


# An excerpt is kept as the text it is.
NO_EXCERPT: Final = msgspec.Raw()


@dataclass(frozen=True)
class Asker:
    """Who asked, as the API server authenticated them; of what it adds only the keys."""

    name: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """A request as its record tells it. `object` is None where there is none, or none to read."""

    uid: str
    webhook: str
    operation: Operation
    group: str = ""
    version: str = ""
    kind: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    user: Asker = Asker()
    dry_run: bool = False
    object: JsonObject | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of it, by which policy, after so many seconds."""

    decision: str
    answer: Answer
    policy: Policy
    seconds: float = 0.0
    suppressed: int = 0
    """How many of the like have had no record since the last one that has."""


class Violation(msgspec.Struct, frozen=True, omit_defaults=True):
    """A broken rule, where, and in words of ours."""

    rule: str
    message: str
    path: str = ""
    mode: str = "enforce"


class User(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who asked."""

    name: str = ""
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Sequence[str] = ()


class Size(msgspec.Struct, frozen=True):
    """What a set comes to: how many gangs and cliques, and what its largest gang takes."""

    gangs: int
    cliques: int
    pods: int
    gpus: int


class Record(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="line", tag="record"
):
    """What was asked, by whom, and what came of it."""

    ts: str
    pod: str
    audit_id: str
    webhook: str
    op: str
    decision: str
    policy: str
    latency_ms: float
    gvk: str = ""
    subresource: str = ""
    dry_run: bool = False
    ns: str = ""
    name: str = ""
    generate_name: str = msgspec.field(default="", name="generateName")
    object_uid: str = ""
    owner: str = ""
    user: User = User()
    code: int = 0
    violations: Sequence[Violation] = ()
    more_violations: int = 0
    queue: str = ""
    gang: Size | None = None
    spec_digest: str = ""
    excerpt: msgspec.Raw = NO_EXCERPT
    excerpt_cut: bool = False
    patch_digest: str = ""
    suppressed: int = 0


class Summary(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="line", tag="summary"
):
    """So many requests of one sort had no record of their own, since there were too many.

    Or so many had none because of the reason given.
    """

    ts: str
    pod: str
    suppressed: int = 0
    dropped: int = 0
    reason: str = ""
    ns: str = ""
    user: str = ""
    rules: str = ""
    dry_run: bool = False


class Opened(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="line", tag="opened"
):
    """The first line of a file: whose chain goes on here, and the oldest line that is kept."""

    ts: str
    pod: str
    chain: str
    oldest: int = 1
    cut: int = 0
    """Bytes at the end of the file before that were no whole line, and were cut off."""


class Sealed(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="sealed"):
    """The last line of a closed file: a signature over the line before it."""

    ts: str
    first: int
    key: str
    signature: str


class Missed(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="line", tag="missed"
):
    """The lines before this one could not be written here, the last one that could be aside."""

    ts: str
    pod: str
    after: int
    after_hash: str
    lines: int


Line = Record | Summary | Opened | Sealed | Missed
