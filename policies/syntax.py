"""How Kubernetes spells names, keys and values, as far as a set's author writes them."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

LABEL_RULE: Final = "use 1 to 63 of a-z, 0-9 and '-', with a letter or digit first and last"
SUBDOMAIN_RULE: Final = (
    "use at most 253 of a-z, 0-9, '-' and '.', with a letter or digit first and last in each part"
)
KEY_RULE: Final = (
    "use at most 63 of A-Z, a-z, 0-9, '-', '_' and '.', with a letter or digit first and last, "
    "if need be after a DNS name and '/'"
)
VALUE_RULE: Final = (
    "use at most 63 of A-Z, a-z, 0-9, '-', '_' and '.', with a letter or digit first and last"
)
VARIABLE_RULE: Final = "use A-Z, a-z, 0-9, '-', '_' and '.', with no digit first"

_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_PART: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = re.compile(rf"{_PART}(?:\.{_PART})*")
_WORD: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VARIABLE: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
LONGEST_NAME: Final = 253
LONGEST_WORD: Final = 63
LONGEST_KEY: Final = LONGEST_NAME + len("/") + LONGEST_WORD


def is_label(name: str) -> bool:
    """Tell whether it can be a part of a host name (RFC 1123)."""
    return len(name) <= LONGEST_WORD and _is_label(name)


# Cliques have the same few names in most sets, and every set comes by twice.
@lru_cache(maxsize=2048)
def _is_label(name: str) -> bool:
    return _LABEL.fullmatch(name) is not None


def is_subdomain(name: str) -> bool:
    """Tell whether it can be the name of most objects (RFC 1123)."""
    return len(name) <= LONGEST_NAME and _SUBDOMAIN.fullmatch(name) is not None


def is_key(key: str) -> bool:
    """Tell whether it can be the key of a label or annotation."""
    return len(key) <= LONGEST_KEY and _is_key(key)


# The same few keys are on all objects of a cluster.
@lru_cache(maxsize=2048)
def _is_key(key: str) -> bool:
    prefix, slash, word = key.rpartition("/")
    return _WORD.fullmatch(word) is not None and (is_subdomain(prefix) if slash else True)


def is_value(value: str) -> bool:
    """Tell whether it can be the value of a label."""
    return value == "" or (len(value) <= LONGEST_WORD and _is_word(value))


# As with names: labels say over and over what a role or a team is called.
@lru_cache(maxsize=2048)
def _is_word(value: str) -> bool:
    return _WORD.fullmatch(value) is not None


def is_variable(name: str) -> bool:
    """Tell whether it can be the name of an environment variable."""
    return _VARIABLE.fullmatch(name) is not None and name != "." and not name.startswith("..")


class Remembered:
    """Names that were found fine, up to so many. Safe to ask from many threads."""

    def __init__(self, is_fine: Callable[[str], bool], most: int) -> None:
        self._is_fine = is_fine
        self._most = most
        self._found: set[str] = set()

    def __len__(self) -> int:
        """Tell how many are remembered."""
        return len(self._found)

    def holds(self, names: set[str]) -> bool:
        """Tell whether all of these are fine."""
        if names <= self._found:
            return True
        if not all(map(self._is_fine, names)):
            return False
        # Each change is a single step, whichever threads make it.
        if len(self._found) + len(names) > self._most:
            self._found.clear()
        if len(names) <= self._most:
            self._found.update(names)
        return True


# The same few names are in all containers of a cluster, and one has at most half as many.
_VARIABLES: Final = Remembered(is_variable, most=4096)


def are_variables(names: set[str]) -> bool:
    """Tell whether all can be names of environment variables; none may be longer than a name."""
    return _VARIABLES.holds(names)
