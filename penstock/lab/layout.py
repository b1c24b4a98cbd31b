"""Where Penstock keeps its things in a lab's directory, and what the keeper is told."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from api import features, names
from api.features import Features

KUBELET_ACCOUNT = "penstock-lab-kubelet"
"""The keeper's account: it may ask for tokens and read the webhook's certificate, no more."""

ACCOUNTS = (names.WEBHOOK_ACCOUNT, names.WORKLOADS_ACCOUNT, names.GANGS_ACCOUNT)


class Settings(msgspec.Struct, frozen=True):
    """What the keeper runs; written by `lab install`, read by the keeper when it starts."""

    balancer_port: int
    webhooks: int
    workloads: bool
    code: str
    """A digest of the program's files: when it differs, what runs is old and is started again."""
    feature_gates: str = ""
    companion: bool = False
    """Whether another controller makes the gangs of sets."""
    log_format: str = "text"
    traces_endpoint: str = ""
    """Where a collector takes traces; nowhere if empty."""

    @property
    def features(self) -> Features:
        """What is switched on."""
        return features.read(self.feature_gates)

    def components(self) -> Sequence[str]:
        """Name every component, in the order in which they are started."""
        webhooks = [f"webhook-{index}" for index in range(self.webhooks)]
        return [*webhooks, *(["workloads"] if self.workloads else []), "gangs"]


@dataclass(frozen=True)
class Layout:
    """Paths below one lab's directory."""

    root: Path

    @classmethod
    def of(cls, lab_directory: Path) -> "Layout":
        """Return the layout inside a lab's directory; nothing is created."""
        return cls(lab_directory / "penstock")

    def create(self) -> None:
        """Make the directories, closed to everybody else: they hold tokens and a private key."""
        directories = (self.root, self.records, self.holds, self.logs, self.kubeconfigs, self.tls)
        tokens = (self.token_directory(account) for account in (*ACCOUNTS, KUBELET_ACCOUNT))
        for directory in (*directories, self.exposed, *tokens):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def settings(self) -> Path:
        """Return what the keeper is told to run."""
        return self.root / "settings.json"

    @property
    def install_lock(self) -> Path:
        """Return the file that one `lab install` locks against another."""
        return self.root / "install.lock"

    @property
    def keeper_lock(self) -> Path:
        """Return the file that the one keeper of a lab holds locked while it lives."""
        return self.root / "keeper.lock"

    @property
    def records(self) -> Path:
        """Return where running processes are recorded."""
        return self.root / "processes"

    def record(self, process: str) -> Path:
        """Return the record of the keeper or of a component."""
        return self.records / f"{process}.json"

    @property
    def holds(self) -> Path:
        """Return where markers lie that keep a component from being run."""
        return self.root / "hold"

    def hold(self, component: str) -> Path:
        """Return the marker that keeps one component stopped while it exists."""
        return self.holds / component

    @property
    def logs(self) -> Path:
        """Return where logs are appended to."""
        return self.root / "logs"

    def log(self, process: str) -> Path:
        """Return the log of the keeper or of a component."""
        return self.logs / f"{process}.log"

    def token_directory(self, account: str) -> Path:
        """Return the projected volume with the `token` of an account."""
        return self.root / "tokens" / account

    def token(self, account: str) -> Path:
        """Return the file with the current token of an account."""
        return self.token_directory(account) / "token"

    @property
    def tls(self) -> Path:
        """Return the projected volume with the webhook's `tls.crt`, `tls.key` and `ca.crt`."""
        return self.root / "tls"

    @property
    def audit(self) -> Path:
        """Return where each webhook keeps its audit log, in a folder of its name."""
        return self.root / "audit"

    @property
    def audit_key(self) -> Path:
        """Return the key that webhooks share for their audit logs."""
        return self.root / "audit.key"

    @property
    def exposed(self) -> Path:
        """Return where it is written down at which URLs components serve their metrics."""
        return self.root / "metrics"

    def metrics(self, component: str) -> Path:
        """Return the file with the URL at which a component serves its metrics."""
        return self.exposed / component

    @property
    def addresses(self) -> Path:
        """Return the file with the address of each ready webhook, one a line."""
        return self.root / "webhooks"

    @property
    def kubeconfigs(self) -> Path:
        """Return where the accounts' kubeconfigs are."""
        return self.root / "kubeconfigs"

    def kubeconfig(self, account: str) -> Path:
        """Return the kubeconfig that holds one account's token file and no other credential."""
        return self.kubeconfigs / account
