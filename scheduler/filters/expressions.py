"""What selectors of devices ask for, as far as it can be read without an interpreter.

Read are conditions joined by `&&` of which each compares the driver or one attribute with a
constant. That is how drivers and most authors write device classes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from api.claims import Attribute, DeviceSelector

_STRING: Final = r"""(?:"[^"\\]*"|'[^'\\]*')"""
_CONSTANT: Final = rf"(?:{_STRING}|-?[0-9]+|true|false)"
_DRIVER: Final = r"device\s*\.\s*driver"
_ATTRIBUTE: Final = (
    rf"device\s*\.\s*attributes\s*\[\s*(?P<domain>{_STRING})\s*\]\s*"
    rf"(?:\.\s*(?P<plain>[A-Za-z_][A-Za-z0-9_]*)|\[\s*(?P<quoted>{_STRING})\s*\])"
)
_OPERAND: Final = rf"(?:(?P<driver>{_DRIVER})|{_ATTRIBUTE})"
_FORMS: Final = (
    re.compile(rf"{_OPERAND}\s*==\s*(?P<value>{_CONSTANT})"),
    re.compile(rf"(?P<value>{_CONSTANT})\s*==\s*{_OPERAND}"),
)
# Anything else that is not one of these is taken as it stands.
_TOKEN: Final = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<sign>&&|\|\||[()\[\]{}?])"""
)

# A driver's name or an attribute's value: text, a whole number, or yes and no.
Constant = tuple[str, str | int | bool]


@dataclass(frozen=True)
class Condition:
    """The driver (no attribute) or an attribute, by its domain and name, has this value."""

    domain: str
    attribute: str
    value: Constant

    @property
    def spellings(self) -> tuple[str, ...]:
        """How drivers may write the attribute: with its domain, or without, if that is theirs."""
        return (f"{self.domain}/{self.attribute}", self.attribute) if self.attribute else ()

    def holds(self, driver: str, attributes: Mapping[str, Attribute]) -> bool:
        """Whether a device is so; what a driver says without a domain is in its own."""
        if not self.attribute:
            return self.value == ("str", driver)
        whole, short = self.spellings
        found = attributes.get(whole)
        if found is None and self.domain == driver:
            found = attributes.get(short)
        return found is not None and self.value == _said(found)


@dataclass(frozen=True)
class Conditions:
    """All of these must hold; where not all could be read, they are met by more than are meant."""

    every: tuple[Condition, ...] = ()
    whole: bool = True

    def hold(self, driver: str, attributes: Mapping[str, Attribute]) -> bool:
        """Whether a device meets all that could be read."""
        return all(each.holds(driver, attributes) for each in self.every)


def read(selectors: Iterable[DeviceSelector]) -> Conditions:
    """Read the selectors of a class or a request."""
    found = [_read(each.cel.expression if each.cel else "") for each in selectors]
    every = tuple(dict.fromkeys(each for part in found for each in part.every))
    return Conditions(every, all(part.whole for part in found))


@lru_cache(maxsize=1024)
def _read(expression: str) -> Conditions:
    terms = list(_terms(expression))
    known = [each for each in map(_condition, terms) if each is not None]
    return Conditions(tuple(known), len(known) == len(terms))


def _terms(expression: str) -> Iterator[str]:
    """Give what is joined by `&&`, out of its parentheses."""
    text = expression.strip()
    cuts: list[tuple[int, int]] = []
    depth, closed = 0, -1
    for found in _TOKEN.finditer(text):
        sign = found["sign"]
        if sign in ("(", "[", "{"):
            depth += 1
        elif sign in (")", "]", "}"):
            depth -= 1
            closed = found.end() if closed < 0 and not depth else closed
        elif depth == 0 and sign in ("||", "?"):
            yield text  # an alternative: no part of it needs to hold
            return
        elif depth == 0 and sign == "&&":
            cuts.append(found.span())
    if not cuts:
        wrapped = text.startswith("(") and closed == len(text)
        yield from _terms(text[1:-1]) if wrapped else (text,)
        return
    starts = [0, *(stop for _, stop in cuts)]
    stops = [*(start for start, _ in cuts), len(text)]
    for start, stop in zip(starts, stops, strict=True):
        yield from _terms(text[start:stop])


def _condition(term: str) -> Condition | None:
    found = next((match for form in _FORMS if (match := form.fullmatch(term))), None)
    if found is None:
        return None
    value = _constant(found["value"])
    if found["driver"]:
        return Condition("", "", value)
    name = found["plain"] or found["quoted"][1:-1]
    return Condition(found["domain"][1:-1], name, value)


def _constant(text: str) -> Constant:
    if text[0] in "\"'":
        return "str", text[1:-1]
    return ("bool", text == "true") if text in ("true", "false") else ("int", int(text))


def _said(attribute: Attribute) -> Constant | None:
    """Give what a driver says; versions are compared otherwise and equal no constant."""
    if attribute.text is not None:
        return "str", attribute.text
    if attribute.truth is not None:
        return "bool", attribute.truth
    return None if attribute.number is None else ("int", attribute.number)
