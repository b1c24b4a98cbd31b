from pathlib import Path

from penstock.lab import auditing
from penstock.lab.folders import Labs

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: lab
contexts: [{{name: lab, context: {{cluster: lab, user: person}}}}]
clusters: [{{name: lab, cluster: {{server: "{server}"}}}}]
users: [{{name: person, user: {{}}}}]
"""
ONE, OTHER = "https://127.0.0.1:20001", "https://127.0.0.1:20002"


def made(labs: Labs, name: str, server: str) -> Path:
    folder = labs.folder(name)
    audit = folder.root / "penstock" / "audit"
    audit.mkdir(parents=True)
    folder.kubeconfig.write_text(KUBECONFIG.format(server=server))
    return audit


def test_the_log_is_that_of_the_lab_at_the_address(tmp_path: Path) -> None:
    labs = Labs(tmp_path)
    made(labs, "a", OTHER)
    mine = made(labs, "b", ONE)
    assert auditing.folder_of(ONE, labs) == mine
    assert auditing.folder_of("https://cluster.example:6443", labs) is None


def test_half_a_lab_and_one_without_a_log_are_passed_over(tmp_path: Path) -> None:
    labs = Labs(tmp_path)
    labs.folder("half").root.mkdir()
    assert auditing.folder_of(ONE, labs) is None
    made(labs, "bare", ONE).rmdir()
    assert auditing.folder_of(ONE, labs) is None
