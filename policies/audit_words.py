"""Which words the audit log may say: those of the program and of the policy, and no others.

Messages, paths and objects hold what people wrote, passwords among it. Nobody can list all that is
secret, so it is the other way round: what is not known to be ours is replaced by a tag.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Final

from pydantic import BaseModel

from api import (
    cliques,
    durations,
    names,
    objects,
    podcliqueset,
    quantities,
    sharing,
    topology,
)
from policies import (
    admission,
    answers,
    binding_admission,
    binding_rules,
    bounds,
    evaluating,
    expression_checks,
    expression_view,
    gang_sizes,
    managed_admission,
    marking,
    membership,
    node_terms,
    parsing,
    pod_admission,
    pod_checks,
    pod_claims,
    pod_rules,
    pod_security,
    podcliqueset_admission,
    podcliqueset_changes,
    podcliqueset_defaults,
    podcliqueset_rules,
    podcliqueset_sharing_rules,
    podcliqueset_startup_rules,
    podcliqueset_topology_rules,
    podcliqueset_view,
    podcliqueset_warnings,
    podspec_rules,
    podspec_shapes,
    policy_admission,
    policy_doubts,
    policy_reading,
    policy_source,
    problems,
    queue_rules,
    ratchet,
    reading,
    rules,
    standing,
    startup_graph,
    switching,
    syntax,
)
from policies.cel import expression, functions, grammar, kinds, macros, operators, running, scope
from policies.policy import Policy

MODULES: Final[tuple[ModuleType, ...]] = (
    admission, answers, binding_admission, binding_rules, bounds, cliques, durations,
    evaluating,
    gang_sizes, managed_admission, marking, membership, names, node_terms, objects, parsing,
    pod_admission, pod_checks, pod_claims, pod_rules, pod_security, podcliqueset,
    podcliqueset_admission, podcliqueset_changes, podcliqueset_defaults, podcliqueset_rules,
    podcliqueset_sharing_rules, podcliqueset_startup_rules, podcliqueset_topology_rules,
    podcliqueset_view, podcliqueset_warnings, podspec_rules, podspec_shapes, problems, quantities,
    queue_rules, ratchet, reading, rules, sharing, standing, startup_graph, switching, syntax,
    topology, expression, expression_checks, expression_view, functions, grammar, kinds, macros,
    operators, running, scope, policy_admission, policy_doubts, policy_reading, policy_source,
)  # fmt: skip
"""Whose texts make up messages and paths."""

TAG: Final = re.compile(r"<r:len=(\d+),h=([0-9a-f]{8})>")
# Longer text is told by its first so many characters; nobody looks for more of it.
LONGEST_TOLD: Final = 1000
# How many tags are remembered, rather than made again.
MOST_TAGS: Final = 2048

# What the model library says of a value that does not fit.
_OF_MODELS: Final = (
    "should be a valid boolean dictionary integer list number object string tuple or instance of "
    "have at least most characters items after validation not and match pattern greater than less "
    "equal to multiple of finite unable parse as input extra inputs are permitted field required "
    "keys constraint one: value error, assertion failed,"
)
_EDGES: Final = "'\"`()[]{}<>,;:.…!?"
_NUMBER: Final = re.compile(r"[+-]?\d{1,7}(\.\d{1,3})?(%|m|[kMGTPE]|[KMGTPE]i|ms|s|h)?", re.ASCII)
_COUNTED: Final = re.compile(r"([A-Za-z]+)[=<>×]\d{1,7}", re.ASCII)
_QUOTES: Final = frozenset("'\"`")
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[([^\[\]]*)\]")
_PATH: Final = re.compile(r"[A-Za-z]+(\.[A-Za-z]+|\[\d{1,6}\])+", re.ASCII)


@dataclass(frozen=True)
class Redacting:
    """Replaces what is not ours by tags. The same text has the same tag under one key.

    Without the key nobody can try out what a tag stands for.
    """

    key: bytes = field(repr=False)
    known: frozenset[str] = field(repr=False)
    # The cliques of a set say much the same, over and over.
    _tags: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def tag(self, text: str) -> str:
        """Give what stands for a text."""
        found = self._tags.get(text)
        if found is None:
            if len(self._tags) >= MOST_TAGS:
                self._tags.clear()
            digest = self.digest(text.encode(errors="replace"))
            found = f"<r:len={len(text)},h={digest[:8]}>"
            if len(text) <= LONGEST_TOLD:
                self._tags[text] = found
        return found

    def digest(self, text: bytes) -> str:
        """Give the keyed digest of some bytes, in hex."""
        return hmac.new(self.key, text, hashlib.sha256).hexdigest()

    def value(self, text: str) -> str:
        """Give a text as it is if it is a word of ours, else its tag."""
        return text if text in self.known else self.tag(text)

    def quantity(self, text: str) -> str:
        """Give a quantity as it is, and a tag for all else."""
        return text if _NUMBER.fullmatch(text) else self.tag(text)

    def message(self, text: str) -> str:
        """Give a message with a tag in place of each word that is not ours."""
        return " ".join(map(self._told, text[:LONGEST_TOLD].split()))

    def path(self, text: str) -> str:
        """Give a field's path with a tag in place of each step that is not ours."""
        if text in self.known:
            return text
        text = text[:LONGEST_TOLD]
        told, end = "", 0
        for found in _STEP.finditer(text):
            if found.start() != end:
                break
            field, inside = found.groups()
            step = inside if field is None else field
            ours = step in self.known or (field is None and _is_index(step))
            written = step if ours else self.tag(step)
            told += f"[{written}]" if field is None else f".{written}"
            end = found.end()
        rest = text[end:]
        if rest.startswith("[") and rest.endswith("]"):
            # A key in brackets that has brackets, or an end, of its own.
            told += f"[{self.value(rest[1:-1])}]"
        elif rest:
            told += self.tag(rest)
        return told.removeprefix(".")

    def _told(self, chunk: str) -> str:
        core = chunk.strip(_EDGES)
        if not core:
            return chunk if len(chunk) <= 3 else self.tag(chunk)
        before, _, after = chunk.partition(core)
        if len(before) + len(after) > 6:
            return self.tag(chunk)
        # What is put into quotes is text of people, and digits may be their secrets.
        if core in self.known or (not _QUOTES & {*before, *after} and self._is_ours(core)):
            return chunk
        return f"{before}{self.tag(core)}{after}"

    def _is_ours(self, core: str) -> bool:
        if _NUMBER.fullmatch(core):
            return True
        if _PATH.fullmatch(core):
            steps = core.replace("[", ".").replace("]", "").split(".")
            return all(step in self.known or step.isdigit() for step in steps)
        counted = _COUNTED.fullmatch(core)
        return counted is not None and counted[1] in self.known


def _is_index(step: str) -> bool:
    return step.isdigit() and len(step) <= 6


def redacting(key: bytes, policy: Policy) -> Redacting:
    """Replace what neither the program nor this policy says."""
    return Redacting(key, program_words() | frozenset(_cores(_texts_in(policy.model_dump()))))


@cache
def program_words() -> frozenset[str]:
    """Give every word of the program's own texts, from its compiled code and its models."""
    texts = [text for module in MODULES for text in _texts_of(module)]
    return frozenset(_cores([*texts, _OF_MODELS])) - {""}


def _cores(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield text
        yield from (chunk.strip(_EDGES) for chunk in text.split())
        # Texts that values are put into begin and end in the middle of words and paths.
        yield from (step for pair in _STEP.findall(text) for step in pair if step.isalnum())


def _texts_of(module: ModuleType) -> Iterator[str]:
    for name, each in vars(module).items():
        if name.startswith("__"):
            continue
        # What is kept in mind of a function's answers is wrapped around it.
        made = getattr(each, "__wrapped__", each)
        if isinstance(made, FunctionType) and made.__module__ == module.__name__:
            yield made.__name__
            yield from _texts_in_code(made.__code__)
        elif isinstance(each, type) and each.__module__ == module.__name__:
            yield from _texts_of_type(each)
        elif not isinstance(each, ModuleType | type) and not callable(each):
            yield from _texts_in(each)


def _texts_of_type(kind: type) -> Iterator[str]:
    yield kind.__name__
    for name, each in vars(kind).items():
        if name.startswith("__"):
            continue
        made = each.fget if isinstance(each, property) else getattr(each, "__func__", each)
        if isinstance(made, FunctionType):
            yield from _texts_in_code(made.__code__)
        else:
            yield from _texts_in(each)
    if issubclass(kind, BaseModel):
        for name, told in kind.model_fields.items():
            yield from (name, told.alias or name)


def _texts_in_code(code: CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _texts_in_code(constant)
        else:
            # Docstrings are among them too, and do no harm.
            yield from _texts_in(constant)


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, re.Pattern):
        return
    elif isinstance(value, dict):
        for key, inside in value.items():
            yield from _texts_in(key)
            yield from _texts_in(inside)
    elif isinstance(value, list | tuple | set | frozenset):
        for inside in value:
            yield from _texts_in(inside)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield name
            yield from _texts_in(getattr(value, name, None))
