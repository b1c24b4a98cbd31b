"""Replay a saved snapshot and print its plan, also as it would be on another cluster.

`python -m scheduler plan FILE`, with what `gangs --record-refusals` wrote; see docs/engine.md.
"""

import argparse
import gzip
import json
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from api import exits
from api.jsons import JsonObject
from scheduler import cycle, saving, showing, whatif
from scheduler.answers import Plan
from scheduler.emptied import Emptied
from scheduler.saving import Saved
from scheduler.whatif import AddNodes, Drain, Edit, Key, RemoveGang, Reprioritise

EXAMPLES = """examples:
  python -m scheduler plan examples/snapshot.json
  python -m scheduler plan snapshot.json.gz --explain team/llm-0
  python -m scheduler plan snapshot.json --add 2 --like node-7 --label example.com/rack=r9
  python -m scheduler plan - -o json --drain node-1 node-2 < snapshot.json
  python -m scheduler plan snapshot.json --remove-gang team/old --priority team/llm-0=1000
"""
GZIP = b"\x1f\x8b"


class UsageError(Exception):
    """What was asked for cannot be done, in one line."""


@dataclass(frozen=True)
class Question:
    """A saved snapshot, and the edits to it."""

    saved: Saved
    edits: tuple[Edit, ...]


def main(arguments: Sequence[str]) -> int:
    """Print the plan; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        question = Question(_read(options.file), _edits(options))
        edited = whatif.apply(question.saved, question.edits)
        explained = _gang(options.explain) if options.explain else None
        sys.stdout.write(_answer(question, edited, explained, as_json=options.output == "json"))
    except (UsageError, whatif.UnknownNameError) as error:
        return _failed(error, exits.BAD_SETTINGS)
    except saving.UnreadableError as error:
        return _failed(UsageError(f"{options.file}: {error}"), exits.UNEXPECTED)
    except OSError as error:
        return _failed(UsageError(f"{options.file}: {error.strerror or error}"), exits.UNEXPECTED)
    return exits.OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scheduler", description="Replay what the placement engine decided."
    )
    commands = parser.add_subparsers(dest="what", required=True, metavar="plan")
    plan = commands.add_parser(
        "plan",
        help="print the plan of a saved snapshot",
        description="Print the plan of a saved snapshot. With edits, print the plan of the edited "
        "snapshot, and what became of each gang.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    plan.add_argument("file", metavar="FILE", help=".json or .json.gz; - reads standard input")
    plan.add_argument(
        "-o", "--output", choices=["text", "json"], default="text", help="default: %(default)s"
    )
    plan.add_argument(
        "--explain", metavar="NS/NAME", help="tell all that is known of one gang's answer"
    )
    edits = plan.add_argument_group("what if")
    edits.add_argument(
        "--drain", nargs="+", default=[], metavar="NODE", help="cordon these nodes and empty them"
    )
    edits.add_argument(
        "--add", type=_count, default=0, metavar="N", help="add so many empty nodes, with --like"
    )
    edits.add_argument("--like", metavar="NODE", help="the node that those to be added are like")
    edits.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a label of those to be added that differs, such as their rack; may be repeated",
    )
    edits.add_argument(
        "--remove-gang",
        action="append",
        default=[],
        metavar="NS/NAME",
        help="take a gang away, with its pods; may be repeated",
    )
    edits.add_argument(
        "--priority",
        action="append",
        default=[],
        metavar="NS/NAME=N",
        help="give a gang that asks for room another priority; may be repeated",
    )
    return parser


def _count(text: str) -> int:
    if not text.isdigit() or int(text) > 100_000:
        raise argparse.ArgumentTypeError(f"{text} is no number of nodes")
    return int(text)


def _read(name: str) -> Saved:
    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    if data.startswith(GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise saving.UnreadableError(f"no saved snapshot: broken gzip: {error}") from error
    saved = saving.loads(data)
    if not saved.levels:
        raise saving.UnreadableError("no saved snapshot: it has no topology, not even an empty one")
    return saved


def _edits(options: argparse.Namespace) -> tuple[Edit, ...]:
    edits: list[Edit] = [RemoveGang(*_gang(text)) for text in options.remove_gang]
    if bool(options.add) != bool(options.like) or (options.label and not options.add):
        raise UsageError("--add N and --like NODE go together, and --label with both")
    if options.drain:
        edits.append(Drain(tuple(options.drain)))
    if options.add:
        labels = dict(_pair(text, "--label", "KEY=VALUE") for text in options.label)
        edits.append(AddNodes(options.like, options.add, labels))
    for text in options.priority:
        gang, number = _pair(text, "--priority", "NS/NAME=N")
        if not number.removeprefix("-").isdigit():
            raise UsageError(f"--priority {text}: {number} is no number")
        edits.append(Reprioritise(*_gang(gang), int(number)))
    return tuple(edits)


def _gang(text: str) -> Key:
    namespace, _, name = text.partition("/")
    if not namespace or not name:
        raise UsageError(f"{text} is no gang: write NAMESPACE/NAME")
    return namespace, name


def _pair(text: str, flag: str, form: str) -> tuple[str, str]:
    left, sign, right = text.rpartition("=")
    if not left or not sign:
        raise UsageError(f"{flag} {text}: write {form}")
    return left, right


def _answer(question: Question, edited: Saved, explained: Key | None, *, as_json: bool) -> str:
    plan = _plan(edited)
    difference = whatif.compare(_plan(question.saved), plan) if question.edits else None
    lost = whatif.displaced(question.saved, question.edits)
    told = showing.gang_explained(plan, explained) if explained else None
    if explained and told is None:
        raise UsageError(f"no gang {'/'.join(explained)} asks for room")
    if as_json:
        found: JsonObject = showing.plan_json(plan, len(edited.nodes))
        if explained:
            found = showing.gang_json(plan, explained)
        if difference is not None:
            found["difference"] = showing.difference_json(difference, lost)
        return json.dumps(found, indent=2) + "\n"
    text = told or showing.plan_text(plan, len(edited.nodes))
    return text if difference is None else f"{text}\n{showing.difference_text(difference, lost)}"


def _plan(saved: Saved) -> Plan:
    plan = cycle.plan(saved.snapshot(), saved.requests, saved.settings)
    return Emptied(saved.nodes, saved.levels, saved.daemonsets).judged(plan)


def _failed(error: Exception, code: int) -> int:
    sys.stderr.write(f"{error}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
