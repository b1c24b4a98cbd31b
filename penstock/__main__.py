"""The command line: `penstock`, also as the kubectl plug-in `kubectl penstock`.

To add a command, write a function for typer anywhere and add a line to one of the tables.
"""

import sys
from typing import Final

from penstock import piping
from penstock.lazy import Entry, group

LAB_COMMANDS: Final = (
    Entry(
        "up",
        "penstock.lab.flags:up",
        "Bring up a lab, or return to the one that runs.",
        (
            "penstock lab up",
            "penstock lab up --name big --nodes 1000 --gpus 8 --topology zone=2,block=5,rack=10",
            "penstock lab up --feature-gates GangScheduling=true --scheduler-qps 1000 --audit",
            "penstock lab up --set kube-apiserver.v=4 --set kube-scheduler.profiling=false",
            "penstock lab up --name real --real-node --nodes 4   # a real kubelet too; needs root",
        ),
    ),
    Entry(
        "down",
        "penstock.lab.flags:down",
        "Take a lab down and remove all of it.",
        ("penstock lab down", "penstock lab down --name big", "penstock lab down --all"),
    ),
    Entry(
        "list",
        "penstock.lab.flags:list_labs",
        "List the labs and how they are.",
        ("penstock lab list",),
    ),
    Entry(
        "kubeconfig",
        "penstock.lab.flags:kubeconfig",
        "Print the path of a lab's kubeconfig.",
        (
            'export KUBECONFIG="$(penstock lab kubeconfig)"',
            "penstock lab kubeconfig --name big --print > big.kubeconfig",
        ),
    ),
    Entry(
        "install",
        "penstock.lab.flags:install_command",
        "Install Penstock into a lab that runs.",
        (
            "penstock lab install",
            "penstock lab install --name big --webhooks 3",
            "penstock lab install --companion   # Grove's operator makes the gangs",
            "penstock lab install --feature-gates GangScheduling=false",
        ),
    ),
    Entry(
        "logs",
        "penstock.lab.flags:logs",
        "Print what a lab's daemons wrote.",
        (
            "penstock lab logs",
            "penstock lab logs kube-scheduler --follow",
            "penstock lab logs --name big kwok-controller --lines 500",
        ),
    ),
    Entry(
        "metrics",
        "penstock.lab.flags:metrics",
        "Print where Penstock's components in a lab serve their metrics.",
        ("penstock lab metrics", "penstock lab metrics --name big"),
    ),
    Entry(
        "binaries",
        "penstock.lab.flags:binaries",
        "Find, download or build every program a lab needs.",
        ("penstock lab binaries", "PENSTOCK_BIN_DIR=/opt/kubernetes/bin penstock lab binaries"),
    ),
    Entry(
        "image",
        "penstock.lab.flags:image_command",
        "Make Penstock's image for real nodes of labs.",
        ("penstock lab image", "penstock lab image --name real"),
    ),
)

POLICY_COMMANDS: Final = (
    Entry(
        "status",
        "penstock.policy.flags:status",
        "Tell whether the cluster's policy is in force, and since when.",
        ("kubectl penstock policy status", "penstock policy status --watch -o json"),
    ),
    Entry(
        "lint",
        "penstock.policy.flags:lint",
        "Find all that is wrong with policies, with file, line and field.",
        (
            "penstock policy lint policy.yaml",
            "penstock policy lint --strict examples/policies/*.yaml",
            "kubectl -n penstock-system get cm penstock-policy -o yaml > cm.yaml &&"
            " penstock policy lint cm.yaml",
            "penstock policy lint policy.yaml -o junit > lint.xml",
        ),
    ),
    Entry(
        "test",
        "penstock.policy.flags:try_out",
        "Judge manifests as the webhook would, without a cluster.",
        (
            "penstock policy test policy.yaml chat.yaml manifests/",
            "penstock policy test policy.yaml chat.yaml --user anna --group chat -n chat-a",
            "penstock policy test cm.yaml --candidate chat.yaml -o json",
            "penstock policy test policy.yaml manifests/ --expect expected.yaml -o junit",
        ),
    ),
    Entry(
        "diff",
        "penstock.policy.flags:diff",
        "Show which manifests two policies judge otherwise.",
        (
            "penstock policy diff old.yaml new.yaml manifests/",
            "penstock policy diff cm.yaml cm.yaml --candidate manifests/",
            "kubectl get podcliquesets -A -o yaml > sets.yaml &&"
            " penstock policy diff /dev/null new.yaml sets.yaml",
        ),
    ),
)

AUDIT_COMMANDS: Final = (
    Entry(
        "query",
        "penstock.audit.flags:query",
        "Show who was refused what, and why.",
        (
            "penstock audit query --namespace team-a --since 2h",
            "penstock audit query --dir audit/ --user anna --rule queue-gangs-are-sized",
            "penstock audit query --dir audit/ --decision shed --since 7d -o json",
        ),
    ),
    Entry(
        "explain",
        "penstock.audit.flags:explain",
        "Show one record, and what today's policy makes of it.",
        (
            "penstock audit explain ID",
            "penstock audit explain --dir audit/ --policy policy.yaml ID",
        ),
    ),
    Entry(
        "top",
        "penstock.audit.flags:top",
        "Count refusals by rule, namespace and user.",
        ("penstock audit top --since 7d", "penstock audit top --dir audit/ -o json"),
    ),
    Entry(
        "verify",
        "penstock.audit.flags:verify",
        "Tell whether the log is as it was written.",
        (
            "penstock audit verify --key audit.key",
            "penstock audit verify --dir audit/ --key audit.key -o json",
        ),
    ),
)

WHAT_IF_COMMANDS: Final = (
    Entry(
        "drain",
        "penstock.plugin.commands:drain",
        "If nodes were drained: whose pods move where, and who starves.",
        (
            "kubectl penstock what-if drain node-7",
            "penstock what-if drain node-7 node-8 -o json",
        ),
    ),
    Entry(
        "add-nodes",
        "penstock.plugin.commands:add_nodes",
        "If there were more nodes: who gets in.",
        (
            "kubectl penstock what-if add-nodes 2 --like node-7",
            "penstock what-if add-nodes 4 --like node-7"
            " --label topology.kubernetes.io/rack=z0-b0-r9",
        ),
    ),
    Entry(
        "delete",
        "penstock.plugin.commands:delete",
        "If a gang or a set were gone: who gets in.",
        (
            "kubectl penstock what-if delete chat-0 --namespace team-a",
            "penstock what-if delete team-a/chat",
        ),
    ),
)

COMMANDS: Final = (
    Entry(
        "demo",
        "penstock.flags:demo",
        "Start a lab with Penstock and show an example set running in it.",
        ("penstock demo", "penstock demo --name try --nodes 80"),
    ),
    Entry(
        "status",
        "penstock.plugin.commands:status",
        "Show how the cluster is doing, and which gangs wait.",
        (
            "kubectl penstock status",
            "penstock status --namespace team-a -o wide",
            "penstock status --watch",
            "penstock status -o json",
        ),
    ),
    Entry(
        "explain",
        "penstock.plugin.commands:explain",
        "Tell why a gang waits, and what would let it in.",
        (
            "kubectl penstock explain chat-0 --namespace team-a",
            "penstock explain team-a/chat-0 -o json",
        ),
    ),
    Entry(
        "plan",
        "penstock.plugin.commands:plan",
        "Tell where a manifest's gangs would go, or why not, before submitting it.",
        (
            "kubectl penstock plan -f chat.yaml",
            "penstock plan -f manifests/ --namespace team-a -o json",
        ),
    ),
    Entry(
        "topology",
        "penstock.plugin.commands:topology",
        "Draw the network, with what is free and used.",
        (
            "kubectl penstock topology",
            "penstock topology --resource nvidia.com/gpu -o wide",
            "penstock topology --watch",
        ),
    ),
    Entry(
        "queues",
        "penstock.plugin.commands:queues",
        "Show the policy's queues, and who is in them.",
        ("kubectl penstock queues", "penstock queues research -o wide"),
    ),
    Entry(
        "reservations",
        "penstock.plugin.commands:reservations",
        "Show the room that people keep, and who uses it.",
        ("kubectl penstock reservations", "penstock reservations -n team-a --ledger -o wide"),
    ),
    Entry(
        "dashboard",
        "penstock.dashboard.commands:dashboard",
        "Serve a page that shows the cluster and its gangs, live.",
        (
            "kubectl penstock dashboard --open",
            "penstock dashboard --port 8080 --context production",
            "penstock dashboard --audit-dir audit/    # refused specs out of a folder",
        ),
    ),
    Entry(
        "tree",
        "penstock.plugin.commands:tree",
        "Show a set as a tree of gangs, groups, cliques and pods.",
        (
            "penstock tree chat",
            "kubectl penstock tree chat --namespace team-a -o wide",
            "penstock tree team-a/chat --watch",
        ),
    ),
    Entry(
        "prove",
        "penstock.flags:prove",
        "Prove that admission works, and have its webhooks fail closed from then on.",
        (
            "penstock prove",
            "penstock prove --namespace team-a --wait 60",
            "penstock prove --look    # changes nothing",
        ),
    ),
    Entry(
        "release",
        "penstock.flags:release",
        "In an emergency, let gated pods go without their gangs.",
        (
            "penstock release --all                            # shows what would be lifted",
            "penstock release --all --yes",
            "kubectl penstock release --namespace team-a --yes",
            "penstock release chat --namespace team-a --yes    # a set or a gang",
        ),
    ),
)

app = group(
    "Penstock starts AI-inference gangs whole or not at all.",
    COMMANDS,
    ("penstock lab up && penstock lab install",),
    completion=True,
)
app.add_typer(
    group(
        "A control plane on this machine with pretend nodes, for trying manifests and policies.",
        LAB_COMMANDS,
        (
            "penstock lab up --name try --nodes 40 --gpus 8 --topology zone=2,block=2,rack=5",
            'export KUBECONFIG="$(penstock lab kubeconfig --name try)"',
            "penstock lab install --name try",
            "penstock lab down --name try",
        ),
    ),
    name="lab",
)


app.add_typer(
    group(
        "What would become of gangs if the cluster were another. Nothing is changed.",
        WHAT_IF_COMMANDS,
        (
            "penstock what-if drain node-7",
            "penstock what-if add-nodes 2 --like node-7",
            "penstock what-if delete team-a/chat-0",
        ),
    ),
    name="what-if",
)


app.add_typer(
    group(
        "The policy: whether it is in force; and offline looked through, tried and compared.",
        POLICY_COMMANDS,
        (
            "penstock policy lint policy.yaml",
            "penstock policy test policy.yaml manifests/ --user anna",
            "penstock policy diff old.yaml new.yaml manifests/",
        ),
    ),
    name="policy",
)


app.add_typer(
    group(
        "The audit log: who was refused what, and whether it is still as it was written.",
        AUDIT_COMMANDS,
        (
            "penstock audit query --dir audit/ --namespace team-a --since 2h",
            "penstock audit verify --dir audit/ --key audit.key",
        ),
    ),
    name="audit",
)


@app.callback()
def _penstock() -> None:
    """Penstock starts AI-inference gangs whole or not at all."""


def main() -> None:
    """Run the command line."""
    piping.take_over()
    try:
        app()
    finally:
        sys.stdout.flush()


if __name__ == "__main__":
    main()
