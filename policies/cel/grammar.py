"""Tokens to a tree, by CEL's grammar."""

from dataclasses import dataclass
from typing import Final, TypeGuard

from policies.cel import tokens
from policies.cel.tokens import BadExpressionError, Sort, Token

DEEPEST: Final = 24
# From the weakest; comparisons are one level in CEL, and chain to the left like the others.
LEVELS: Final = (
    frozenset({"||"}),
    frozenset({"&&"}),
    frozenset({"<", "<=", ">", ">=", "==", "!=", "in"}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%"}),
)


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as written."""

    value: bool | int | str
    at: int


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Entries:
    """A list as written."""

    entries: "tuple[Node, ...]"
    at: int


@dataclass(frozen=True, slots=True)
class Select:
    """A field of something."""

    of: "Node"
    field: str
    at: int


@dataclass(frozen=True, slots=True)
class Index:
    """An entry of a list or map."""

    of: "Node"
    key: "Node"
    at: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function or macro; `of` is what it is called on, if anything."""

    name: str
    of: "Node | None"
    arguments: "tuple[Node, ...]"
    at: int


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator over its operands: two, or one, or three for the conditional."""

    sign: str
    operands: "tuple[Node, ...]"
    at: int


Node = Literal | Name | Entries | Select | Index | Call | Operation

_WORDS: Final = {"true": True, "false": False}


def tree(text: str) -> Node:
    """Read the text; raises BadExpressionError."""
    parser = _Parser(tokens.cut(text))
    found = parser.expression()
    parser.expect_end()
    return found


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._next = 0
        self._depth = 0

    def expect_end(self) -> None:
        token = self._token
        if token.sort is not Sort.END:
            raise BadExpressionError(f"{token.text!r} is not expected here", token.at)

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise BadExpressionError(f"nests more than {DEEPEST} levels deep", self._token.at)
        found = self._operation(0)
        at = self._token.at
        if self._takes("?"):
            chosen = self._operation(0)
            self._expect(":")
            found = Operation("?:", (found, chosen, self.expression()), at)
        self._depth -= 1
        return found

    def _operation(self, level: int) -> Node:
        """Read operators from this level on; the weaker ones by calling itself."""
        if level == len(LEVELS):
            return self._unary()
        found = self._operation(level + 1)
        while (token := self._token).text in LEVELS[level] and token.sort is not Sort.STRING:
            self._next += 1
            operand = self._operation(level + 1)
            if token.text in ("||", "&&") and _is(found, token.text):
                # Flat, so that many of them do not nest.
                found = Operation(token.text, (*found.operands, operand), found.at)
            else:
                found = Operation(token.text, (found, operand), token.at)
        return found

    def _unary(self) -> Node:
        token, count = self._token, 0
        while token.text in ("!", "-") and self._takes(token.text):
            count += 1
        if not count:
            return self._member()
        if token.text == "-" and self._token.sort is Sort.NUMBER:
            literal = tokens.number(self._token, negative=True)
            self._next += 1
            found = self._members(Literal(literal, token.at))
            count -= 1
        else:
            found = self._member()
        # More than twice comes to once or twice, which only the kinds can tell from not at all.
        for _ in range(2 - count % 2 if count else 0):
            found = Operation(token.text, (found,), token.at)
        return found

    def _member(self) -> Node:
        return self._members(self._primary())

    def _members(self, found: Node) -> Node:
        while True:
            at = self._token.at
            if self._takes("."):
                name = self._name()
                if self._takes("("):
                    found = Call(name.text, found, self._entries(")"), name.at)
                else:
                    found = Select(found, name.text, name.at)
            elif self._takes("["):
                key = self.expression()
                self._expect("]")
                found = Index(found, key, at)
            else:
                return found

    def _primary(self) -> Node:
        token = self._token
        self._next += 1
        if token.sort is Sort.STRING:
            return Literal(token.text, token.at)
        if token.sort is Sort.NUMBER:
            return Literal(tokens.number(token), token.at)
        if token.sort is Sort.NAME:
            return self._named(token)
        if token.text == "(":
            found = self.expression()
            self._expect(")")
            return found
        if token.text == "[":
            return Entries(self._entries("]"), token.at)
        what = repr(token.text) if token.text else "the end"
        raise BadExpressionError(f"a value is expected, not {what}", token.at)

    def _named(self, token: Token) -> Node:
        if token.text in _WORDS:
            return Literal(_WORDS[token.text], token.at)
        if token.text == "null":
            raise BadExpressionError(
                "nothing is null here: what is left out is empty, 0 or false", token.at
            )
        if token.text in tokens.RESERVED:
            raise BadExpressionError(
                f"{token.text!r} is a word that CEL keeps for itself", token.at
            )
        if self._takes("("):
            return Call(token.text, None, self._entries(")"), token.at)
        return Name(token.text, token.at)

    def _entries(self, end: str) -> tuple[Node, ...]:
        if self._takes(end):
            return ()
        found = [self.expression()]
        while self._takes(","):
            if end == "]" and self._token.text == end:
                break
            found.append(self.expression())
        self._expect(end)
        return tuple(found)

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _name(self) -> Token:
        token = self._token
        if token.sort is not Sort.NAME:
            raise BadExpressionError("a name is expected after the dot", token.at)
        self._next += 1
        return token

    def _takes(self, mark: str) -> bool:
        token = self._token
        found = token.sort is Sort.MARK and token.text == mark
        self._next += found
        return found

    def _expect(self, mark: str) -> None:
        if not self._takes(mark):
            raise BadExpressionError(f"{mark!r} is expected here", self._token.at)


def _is(node: Node, sign: str) -> TypeGuard[Operation]:
    return isinstance(node, Operation) and node.sign == sign
