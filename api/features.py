"""What of Penstock can be switched off as a whole, spelled as Kubernetes spells feature gates."""

import argparse
from dataclasses import dataclass, replace
from typing import Final

FLAG: Final = "--feature-gates"
_FIELDS: Final = {"GangScheduling": "gang_scheduling", "GroveIntegration": "grove_integration"}
_VALUES: Final = {"true": True, "false": False}


@dataclass(frozen=True)
class Features:
    """What is switched on.

    Without `gang_scheduling` no pod is held back. Without `grove_integration` that is so for pods
    of sets, and sets are left alone; gangs of labelled pods go on.
    """

    gang_scheduling: bool = True
    grove_integration: bool = True

    @property
    def sets(self) -> bool:
        """Whether pods of sets are gangs."""
        return self.gang_scheduling and self.grove_integration

    @property
    def text(self) -> str:
        """Write them as the flag has them."""
        return ",".join(
            f"{name}={str(getattr(self, field)).lower()}" for name, field in _FIELDS.items()
        )


def read(text: str) -> Features:
    """Read NAME=BOOL,...; what is not named is on. Raises ValueError with the gates there are."""
    found = Features()
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = each.partition("=")
        if name not in _FIELDS:
            raise ValueError(f"there is no feature gate {name!r}, only {' and '.join(_FIELDS)}")
        if not equals or value.lower() not in _VALUES:
            raise ValueError(f"{each!r} is not {name}=true or {name}=false")
        found = replace(found, **{_FIELDS[name]: _VALUES[value.lower()]})
    return found


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flag, whose value is then a `Features`."""
    parser.add_argument(
        FLAG,
        type=_flag,
        default=Features(),
        metavar="NAME=BOOL,...",
        help="what is switched off: GangScheduling=false holds no pod back and lets all go, "
        "GroveIntegration=false leaves sets and their pods alone (default: all is on)",
    )


def _flag(text: str) -> Features:
    try:
        return read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
