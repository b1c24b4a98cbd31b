"""What a shell offers when somebody presses Tab: commands, flags, and the names there are.

kubectl asks the program `kubectl_complete-penstock` on its path, and typer's own scripts ask
`penstock`. Light, since it runs at every Tab.
"""

import importlib
import io
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from typing import Final

import typer

from penstock.plugin.asking import Where

_NO_FILES: Final = ":4"  # what kubectl understands as: offer no names of files beside these


def gangs_and_sets(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the gangs and the sets of the namespace."""
    return _offered(("PODGANGS", "PODCLIQUESETS"), ctx, incomplete)


def sets(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the sets of the namespace."""
    return _offered(("PODCLIQUESETS",), ctx, incomplete)


def nodes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the nodes."""
    return _offered(("NODES",), ctx, incomplete)


def for_kubectl(words: Sequence[str]) -> str:
    """Answer kubectl: one offer a line, and then what to do with them; the last word is begun."""
    line = ["penstock", *(words or [""])]
    os.environ["_PENSTOCK_COMPLETE"] = "complete_bash"
    os.environ["COMP_WORDS"] = shlex.join(line)
    os.environ["COMP_CWORD"] = str(len(line) - 1)
    application = importlib.import_module("penstock.__main__").app
    told = io.StringIO()
    with redirect_stdout(told), suppress(SystemExit):
        application(prog_name="penstock")
    offers = [each for each in told.getvalue().splitlines() if each]
    return "\n".join([*offers, _NO_FILES]) + "\n"


def main() -> None:
    """Be `kubectl_complete-penstock`."""
    sys.stdout.write(for_kubectl(sys.argv[1:]))


def _offered(kinds: Sequence[str], ctx: typer.Context, incomplete: str) -> list[str]:
    kubeconfig, context, namespace = (
        str(ctx.params.get(key) or "") for key in ("kubeconfig", "context", "namespace")
    )
    where = Where(kubeconfig, context, namespace)
    offering = importlib.import_module("penstock.plugin.offering")
    return [name for name in offering.names(kinds, where) if name.startswith(incomplete)]
