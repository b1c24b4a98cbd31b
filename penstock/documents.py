"""Answers for tools: the same data as JSON or as YAML."""

import json
from typing import Final

import yaml
from typing_extensions import override

from api.jsons import Json

FORMS: Final = ("json", "yaml")
_WIDTH: Final = 4096  # YAML may fold what is longer, and grep would not find it


class _Dumper(yaml.CSafeDumper):
    """Writes what is there twice out twice."""

    @override
    def ignore_aliases(self, data: object) -> bool:
        return True


def document(data: Json, form: str, *, first: bool = True) -> str:
    """Write data as `json` or `yaml`, to its last line's end; one that is not the first says so."""
    if form == "yaml":
        return yaml.dump(
            data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH,
            explicit_start=not first,
        )  # fmt: skip
    return f"{json.dumps(data, indent=2)}\n"
