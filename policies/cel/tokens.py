"""The text of an expression cut into tokens."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Final

from policies.cel import running

LONGEST: Final = 2048
MOST: Final = 400

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n\f]+|//[^\n]*)
    |(?P<string>[rR]?(?:"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*'))
    |(?P<number>0[xX][0-9a-fA-F]+|[0-9]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<mark>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]])""",
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(
    r"\\(?:(?P<hex>x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|(?P<octal>[0-3][0-7]{2})"
    r"|(?P<plain>[abfnrtv\\?\"'`]))|\\(?P<odd>.)"
)
_PLAIN: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
# What CEL keeps for itself; fields may have these names.
RESERVED: Final = frozenset(
    {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"}
    | {"namespace", "package", "return", "var", "void", "while"}
)


class BadExpressionError(Exception):
    """The text is no expression that can be gone by; `at` is the place of the fault in it."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class Sort(Enum):
    """What a token is."""

    STRING = "string"
    NUMBER = "number"
    NAME = "name"
    MARK = "mark"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of the text; `text` is a string's content, with nothing escaped any more."""

    sort: Sort
    text: str
    at: int


def cut(text: str) -> list[Token]:
    """Cut the text; raises BadExpressionError."""
    if len(text) > LONGEST:
        raise BadExpressionError(f"is longer than {LONGEST} characters", 0)
    # One more than are taken is enough to tell, and each costs.
    found = [*islice(_tokens(text), MOST + 1), Token(Sort.END, "", len(text))]
    if len(found) > MOST:
        raise BadExpressionError(f"has more than {MOST} words and marks", found[MOST].at)
    return found


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise BadExpressionError(f"{text[at]!r} means nothing here", at)
        sort, written = match.lastgroup or "", match.group()
        if sort == "string":
            yield Token(Sort.STRING, _content(written, at), at)
        elif sort == "number":
            _refuse_fractions(text, match.end(), at)
            yield Token(Sort.NUMBER, written, at)
        elif sort == "name":
            yield _name(written, text[match.end() : match.end() + 1], at)
        elif sort == "mark":
            yield Token(Sort.MARK, written, at)
        at = match.end()


def _name(written: str, following: str, at: int) -> Token:
    if following in ('"', "'"):
        raise BadExpressionError(f"strings marked by {written!r} are not taken", at)
    return Token(Sort.NAME, written, at)


def _refuse_fractions(text: str, end: int, at: int) -> None:
    following = text[end : end + 2]
    fraction = following[:1] == "." and following[1:].isdigit()
    if fraction or following[:1].isalpha():
        raise BadExpressionError("numbers are whole here: CPU counts in thousandths", at)


def _content(written: str, at: int) -> str:
    if written[0] in "rR":
        return written[2:-1]

    def meant(match: re.Match[str]) -> str:
        if match["odd"]:
            raise BadExpressionError(f"'\\{match['odd']}' means nothing in a string", at)
        if match["hex"] or match["octal"]:
            code = int(match["hex"][1:], 16) if match["hex"] else int(match["octal"], 8)
            if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                raise BadExpressionError(f"{match[0]} is no character", at)
            return chr(code)
        return _PLAIN.get(match["plain"], match["plain"])

    return _ESCAPE.sub(meant, written[1:-1])


def number(token: Token, *, negative: bool = False) -> int:
    """Read a number's value; raises BadExpressionError."""
    base = 16 if token.text[:2] in ("0x", "0X") else 10
    value = int(token.text, base) * (-1 if negative else 1)
    try:
        return running.whole(value)
    except running.ExpressionError as error:
        raise BadExpressionError(str(error), token.at) from error
