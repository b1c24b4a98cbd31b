"""Pages whose commands are typed: all of them, or all but those of which it says here why not.

Commands are lines of a shell's block. The text below such a block is what its last command prints,
as far as it is shown: `…` alone on a line stands for whatever is between.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from tests.repo import checkout, prose
from tests.story.script import Step, Typed

SHELLS = ("sh", "bash", "console")
# What asks and changes nothing is asked again until it says what it must.
_ASKS = re.compile(
    r"kubectl (?:-n \S+ )?(?:get|describe)"
    r"|(?:kubectl )?penstock (?:explain|plan|queues|reservations|status|topology|tree|what-if)"
    r"|(?:kubectl )?penstock (?:policy status|audit query)"
)
# What a line before it asked for may still be on its way.
_EARLY = re.compile(r"kubectl scale ")


@dataclass(frozen=True)
class Page:
    """A page, and what of it cannot be typed in the lab of the demo."""

    name: str
    left: Mapping[str, str] = field(default_factory=dict)
    """By how a command begins, why it is left out."""
    stands_for: Mapping[str, str] = field(default_factory=dict)
    """What to type for words that the page has in capitals."""
    codes: Mapping[str, int] = field(default_factory=dict)
    """What a command ends with that does not end with 0."""

    @property
    def text(self) -> str:
        return prose.read(checkout.ROOT / "docs" / f"{self.name}.md")

    def why_left(self, command: str) -> str | None:
        """Say why a command of the page is not typed, if it is not."""
        return next((why for begun, why in self.left.items() if command.startswith(begun)), None)

    def step(self) -> Step:
        """Give what is typed of the page, in its order."""
        acts = [
            self._act(command, shown)
            for command, shown in commands(self.text)
            if self.why_left(command) is None
        ]
        return Step(f"docs/{self.name}.md", "As the page has it.", tuple(acts))

    def _act(self, command: str, shown: str) -> Typed:
        code = self.codes.get(command, 0)
        asks, early = (each.match(command) is not None for each in (_ASKS, _EARLY))
        for word, meant in self.stands_for.items():
            command = re.sub(rf"\b{word}\b", meant, command)
        return Typed(command, (), code, asks, shown, early)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """List the commands of a page, each with what is shown of its output."""
    fences = prose.fences(text)
    for (language, content), (following, output) in pairwise([*fences, ("", "")]):
        if language == "console":
            yield from _typed_and_shown(content)
        elif language in SHELLS:
            *before, last = _lines(content)
            yield from ((command, "") for command in before)
            yield last, output if following == "text" else ""


def _typed_and_shown(content: str) -> Iterator[tuple[str, str]]:
    _, *parts = re.split(r"^\$ ", content, flags=re.MULTILINE)
    for part in parts:
        command, _, shown = part.partition("\n")
        yield command, shown


def _lines(content: str) -> list[str]:
    """The commands of a block, without remarks and each on one line."""
    joined = re.sub(r" *\\\n *", " ", content)
    lines = [re.sub(r"(?:^|\s+)# .*", "", line).strip() for line in joined.splitlines()]
    return [line for line in lines if line]


DEPLOYED = "asks Deployments, which a lab has none of"
CHART = "tests/cluster/test_chart_lifecycle.py installs, upgrades and removes the chart"
FOREVER = "goes on until it is interrupted"
EDITOR = "opens an editor"
KEPT_UP = "the lab is up already, and others go on in it"
JQ = {} if shutil.which("jq") else {"kubectl get rsv -A -o json | jq": "there is no jq here"}

QUICKSTART = Page("quickstart", codes={"kubectl apply -f examples/cycle.yaml": 1})
"""Makes the lab, which all others are typed in, and ends it."""

IN_THE_DEMO = (
    Page("topology"),
    Page("waiting"),
    Page(
        "troubleshooting", {"kubectl -n penstock-system logs": DEPLOYED},
        stands_for={"GANG": "chat-0", "NAME": "chat"},
    ),
    Page("updates"),
    Page(
        "tracing",
        {"pip": "is for where there is no lab", "penstock lab install": KEPT_UP, "helm": CHART},
    ),
    Page("certificates"),
    Page("plugin"),
    Page(
        "dashboard",
        {
            "penstock dashboard": FOREVER, "helm": CHART,
            "kubectl -n penstock-system port-forward": DEPLOYED,
        },
    ),
    Page("migration"),
    Page(
        "audit",
        {
            "python -m webhook": FOREVER, "helm": CHART,
            "penstock audit explain": "names a record that somebody else has",
            "penstock audit verify": "needs a key and a log; tests/penstock/test_audit_cli.py",
        },
    ),
    Page(
        "scaling",
        {
            "kubectl edit": EDITOR, "penstock lab up": KEPT_UP,
            ".venv/bin/python -m penstock.lab.metrics_api": FOREVER,
        },
    ),
    Page("gang-pods", {"kubectl delete": "lets others' gangs through unlooked at"}),
    Page("startup"),
    Page("release", {"helm": CHART}),
    Page(
        "stories",
        {"make demo": KEPT_UP, "export": KEPT_UP, "kubectl get pclq -o wide -w": FOREVER},
    ),
    Page("policy"),
    Page(
        "operations",
        {"helm": CHART, "kubectl -n penstock-system get deployments": DEPLOYED, **JQ},
    ),
)  # fmt: skip

ELSEWHERE = {
    "chaos": "is what `make chaos` and `make soak` are for",
    "companion": CHART,
    "engine": "tests/scheduler/test_replay_manual.py types it",
    "guards": CHART,
    "image": "tests/image/test_containerfile.py builds it; signing takes a registry",
    "install": CHART,
    "lab": "tests/cluster/test_lab.py and tests/cluster/test_installing.py make labs of all sorts",
    "logs": DEPLOYED,
    "metrics": "asks the lab `default`; tests/cluster/test_metrics.py reads it",
    "patterns": "tests/cluster/test_chart_patterns.py installs it",
}
"""Pages with commands that are typed in no demo, and where they are tried."""
