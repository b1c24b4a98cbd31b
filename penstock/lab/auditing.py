"""Finds the audit logs of a lab by its API server, so that nobody needs to know where they are."""

from pathlib import Path

from penstock.lab import kubeconfigs
from penstock.lab.errors import LabError
from penstock.lab.folders import Labs
from penstock.lab.layout import Layout


def folder_of(server: str, labs: Labs) -> Path | None:
    """Return the folder with the audit logs of the lab at this address, if there are any.

    A lab's webhooks are processes of this machine that write files here, and its API server
    serves no logs, as one does where the chart's `audit.serve` says so.
    """
    for name in labs.names():
        folder = labs.folder(name)
        audit = Layout.of(folder.root).audit
        try:
            found = kubeconfigs.cluster_of(folder.kubeconfig).get("server")
        except LabError:  # half a lab
            continue
        if found == server and audit.is_dir():
            return audit
    return None
