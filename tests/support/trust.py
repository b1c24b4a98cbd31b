"""A pretend cluster in which steps of the rotation are carried out, and what must always hold."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs import bundle, issue, reading, rotation
from certs.issue import Authority, Names
from certs.ledger import Ledger, Pair

NAMES = Names.of("webhook.svc", "127.0.0.1")
WAITS = rotation.Waits()
MOST_STEPS = 60


def der(pem: bytes) -> bytes:
    """The first certificate, as it goes over the wire; b"" if there is none."""
    found = reading.certificate(pem)
    return found.public_bytes(Encoding.DER) if found else b""


@cache
def signed(leaf: bytes, authority: bytes) -> bool:
    """Whether the authority (PEM) signed the leaf (DER)."""
    issuer = x509.load_pem_x509_certificate(authority)
    return reading.signed_by(x509.load_der_x509_certificate(leaf), issuer)


@cache
def members(pem: bytes) -> tuple[tuple[bytes, datetime], ...]:
    """The authorities in a bundle (PEM), and until when each is good."""
    found = bundle.good(pem, datetime.min.replace(tzinfo=UTC))
    return tuple((bundle.text((each,)), each.not_valid_after_utc) for each in found)


def trusted(leaf: bytes, pem: bytes, now: datetime) -> bool:
    """Whether who holds this bundle accepts this leaf (DER)."""
    return any(now <= until and signed(leaf, authority) for authority, until in members(pem))


@dataclass
class TrustWorld:
    """Replicas may serve any leaf since they were last asked; API servers may lag by the wait."""

    now: datetime
    ledger: Ledger
    leaf: Pair
    bundles: list[bytes]
    steps: list[rotation.Step] = field(default_factory=list)
    served: list[bytes] = field(default_factory=list)
    lagging: list[tuple[datetime, list[bytes]]] = field(default_factory=list)
    protected: bool = False
    rested: datetime = field(init=False)

    def __post_init__(self) -> None:
        shown = der(self.leaf.certificate)
        self.protected = bool(shown) and all(trusted(shown, b, self.now) for b in self.bundles)
        self.served = [shown] if self.protected else []

    def untrusted(self) -> Iterator[str]:
        """Say which served leaf somebody would not trust; only if one was trusted to begin with."""
        known = [self.bundles, *(old for until, old in self.lagging if until > self.now)]
        for leaf in self.served if self.protected else ():
            for pem in (pem for bundles in known for pem in bundles):
                if not trusted(leaf, pem, self.now):
                    yield f"after {[type(step).__name__ for step in self.steps]}"

    def step(self, choose: Callable[[int], int]) -> bool:
        """Do the next step, or a part of it as if dead after that; False when all is good."""
        seen = rotation.Seen(self.ledger, self.leaf, tuple(self.bundles))
        step = rotation.decide(seen, NAMES, self.now, WAITS)
        if isinstance(step, rotation.AskReplicas):
            step = rotation.decide(replace(seen, served=self._ask(choose)), NAMES, self.now, WAITS)
        self.steps.append(step)
        return self._do(step, choose)

    def _ask(self, choose: Callable[[int], int]) -> rotation.Served:
        """Each of two replicas has the newest leaf already, or any of those before."""
        newest = der(self.leaf.certificate)
        shown = [([newest] * 2 + self.served)[choose(2 + len(self.served))] for _ in range(2)]
        if shown == [newest] * 2:
            self.served = [newest]
        return rotation.Served(tuple(shown))

    def _do(self, step: rotation.Step, choose: Callable[[int], int]) -> bool:
        match step:
            case rotation.Introduce(ledger):
                self.ledger = ledger.introduced(issue.issue_authority(self.now))
            case rotation.Store(ledger):
                self.ledger = ledger
            case rotation.Trust(wanted):
                self.lagging.append((self.now + WAITS.trust, list(self.bundles)))
                parts = [i for i, pem in enumerate(self.bundles) if pem != wanted]
                for i in parts[: 1 + choose(len(parts))]:
                    self.bundles[i] = wanted
            case rotation.IssueLeaf():
                signer = Authority(self.ledger.authority.certificate, self.ledger.authority.key)
                fresh = issue.issue_leaf(signer, NAMES, self.now)
                self.leaf = Pair(fresh.certificate_pem, fresh.key_pem)
                self.served.append(der(fresh.certificate_pem))
            case rotation.Rest(until, what):
                self.rested = self.now
                self.now = until
                return what != "renewal"
            case rotation.AskReplicas():
                raise AssertionError("asked already")
        self.now += timedelta(milliseconds=choose(2000))
        return True


def run(world: TrustWorld, choose: Callable[[int], int]) -> list[str]:
    """Go on until nothing is left to do; return what was not trusted on the way."""
    faults = list(world.untrusted())
    for _ in range(MOST_STEPS):
        going_on = world.step(choose)
        faults += world.untrusted()
        if not going_on:
            return faults
    raise AssertionError(f"it never comes to rest: {world.steps}")
