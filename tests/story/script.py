"""The story: what somebody who knows Kubernetes types first, why, and what must come of it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Typed:
    """A command as a person types it.

    One that only asks is typed again until it says what it must: the cluster needs a moment.
    """

    command: str
    says: tuple[str, ...] = ()
    code: int = 0
    asks: bool = False
    shows: str = ""
    """What a page shows of the output; `…` alone on a line is for whatever is between."""
    early: bool = False
    """Whether it is typed again while what it names is not found."""


@dataclass(frozen=True)
class Served:
    """A command in a terminal of its own, which goes on and says where it serves."""

    command: str
    says: tuple[str, ...]


@dataclass(frozen=True)
class Looked:
    """A part of the page that is served: its heading, and what must be read there."""

    heading: str
    part: str
    says: tuple[str, ...]


Act = Typed | Served | Looked


@dataclass(frozen=True)
class Step:
    """What to do next, and why."""

    title: str
    why: str
    acts: tuple[Act, ...]


LAB = "demo"
"""What `make demo` calls its lab."""

WIDE = ("InsufficientCapacity", "272 needed, 256 free, 16 short")

QUICK = (
    Step(
        "An example that runs",
        "A lab is a real control plane on this machine with 40 pretend nodes of 8 GPUs."
        " Penstock is put into it, and an example set is applied and runs: prefill and one"
        " decode engine as one gang, the second engine as another.",
        (Typed("make demo", ("1 of 1 replicas available", "all 12 pods are bound and run")),),
    ),
    Step(
        "Your shell",
        "Penstock's commands are in `.venv/bin`, as `penstock` and as `kubectl penstock`, and"
        " the lab has a kubeconfig of its own.",
        (
            Typed('export PATH="$PWD/.venv/bin:$PATH"'),
            Typed(f'export KUBECONFIG="$(penstock lab kubeconfig --name {LAB})"'),
            Typed(
                "kubectl get podgangs", ("chat-0 ", "chat-0-decode-0 ", "AllPodsBound"), asks=True
            ),
        ),
    ),
    Step(
        "A gang too many",
        "`examples/wide.yaml` wants 34 whole nodes at once, and 32 are free. So none of its"
        " pods gets a node: the gang waits as a whole, and nothing is half started.",
        (
            Typed("kubectl apply -f examples/wide.yaml", ("wide created",)),
            Typed("kubectl penstock status", ("1 Pending, 2 Running", "default/wide-0"), asks=True),
        ),
    ),
    Step(
        "Why it waits, and what would help",
        "Each of the remedies was tried by the engine and would do by itself.",
        (
            Typed(
                "kubectl penstock explain wide-0",
                (*WIDE, "any one of these would do:", "add 2 nodes like node-00"),
                asks=True,
            ),
        ),
    ),
)
"""What the README begins with."""

FURTHER = (
    Step(
        "What if",
        "Asking changes nothing. Two more nodes would let the gang in, and so would the end of"
        " the second decode engine.",
        (
            Typed(
                "kubectl penstock what-if add-nodes 2 --like node-00",
                ("gets in", "default/wide-0"), asks=True,
            ),
            Typed(
                "kubectl penstock what-if delete chat-0-decode-0",
                ("gets in", "default/wide-0"), asks=True,
            ),
        ),
    ),
    Step(
        "On the dashboard",
        "In another terminal, with the same two `export` lines: it prints an address for your"
        " browser, and goes on until it is interrupted.",
        (
            Served("kubectl penstock dashboard", ("the dashboard is at http://",)),
            Looked("Waiting", "#waiting", ("default/wide-0", *WIDE, "34 pods")),
        ),
    ),
    Step(
        "Room for it",
        "We take the second decode engine away. Its three nodes are enough, and the gang"
        " starts whole.",
        (
            Typed("kubectl scale pcsg chat-0-decode --replicas=1", ("chat-0-decode scaled",)),
            Typed(
                "kubectl penstock status",
                ("2 Running", "2 of 2 sets with all replicas up", "no gang waits"), asks=True,
            ),
        ),
    ),
    Step(
        "A policy",
        "So far everything was allowed that can run. `examples/policies/small-gangs.yaml` has"
        " one queue, where no gang may have more than 256 GPUs. `lint` finds what is wrong with"
        " a policy before a cluster sees it; `status` says that the cluster goes by it now, and"
        " what of all that is there would be refused today. What runs already is left alone.",
        (
            Typed("penstock policy lint examples/policies/small-gangs.yaml", ("1 good, 0 bad",)),
            Typed(
                "kubectl -n penstock-system create configmap penstock-policy"
                " --from-file=policy.yaml=examples/policies/small-gangs.yaml",
                ("penstock-policy created",),
            ),
            Typed(
                "kubectl penstock policy status",
                ("is in force", "this breaks it", "272 GPUs"), asks=True,
            ),
            Typed("kubectl penstock queues", ("serving", "at most 256 GPUs a gang"), asks=True),
        ),
    ),
    Step(
        "A spec that is refused",
        "`examples/too-large.yaml` asks for 512 GPUs. The answer names field, limit and rule.",
        (
            Typed(
                "kubectl apply -f examples/too-large.yaml",
                ("denied the request", "512 GPUs", "at most 256", "queue-gangs-are-sized"), code=1,
            ),
        ),
    ),
    Step(
        "The refusal, months later",
        "The audit log has it: who asked for what, which rule was broken, by which policy. The"
        " dashboard, which is still open, shows it too.",
        (
            Typed(
                "penstock audit query --name too-large",
                ("deny  CREATE PodCliqueSet default/too-large", "queue-gangs-are-sized (enforce)"),
                asks=True,
            ),
            Looked(
                "Refused specs", "#refused li:first-child",
                ("PodCliqueSet default/too-large", "queue-gangs-are-sized"),
            ),
        ),
    ),
    Step(
        "The end",
        "The lab and everything in it goes.",
        (Typed("make demo-down", (f"Lab {LAB} is gone.",)),),
    ),
)  # fmt: skip

STORY = (*QUICK, *FURTHER)


def typed(steps: tuple[Step, ...]) -> list[str]:
    """List what is typed, in order."""
    return [act.command for step in steps for act in step.acts if not isinstance(act, Looked)]
