"""The next step in the care of authority, CA bundles and leaf: from what is found to one write.

Rules are asked in turn and the first that has something to say is followed; then everything is
read again. Each step is one write (of bundles, one a configuration), so whoever dies between two
leaves a state that these rules go on from.

What holds at every prefix of these writes: every leaf that is served is trusted by every bundle.
An authority signs what is served only after all bundles have held it for a while, and leaves them
only when nobody has served a leaf of its own for a while. Where others broke that, the shortest
way back is taken that does not break it for what is still served and trusted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509

from certs import bundle, issue, judging, reading
from certs.issue import Names
from certs.judging import Fault, Good, Verdict
from certs.ledger import Ledger, Pair, Phase

DAY: Final = timedelta(days=1)
# By then an authority has signed its first leaf, so that a missing one was taken away.
FIRST_LEAF: Final = timedelta(minutes=10)


@dataclass(frozen=True)
class Waits:
    """How long the phases wait."""

    trust: timedelta = timedelta(seconds=60)  # until every API server knows the new bundles
    retire: timedelta = DAY  # for a replica that nobody saw
    ask_again: timedelta = timedelta(seconds=2)  # which replicas serve the new leaf


@dataclass(frozen=True)
class NotAsked:
    """Nobody has looked yet what the replicas serve."""


@dataclass(frozen=True)
class Served:
    """The certificate that each ready replica shows (DER); b"" is one that could not be asked."""

    leaves: tuple[bytes, ...]


@dataclass(frozen=True)
class Seen:
    """Everything as it was found."""

    ledger: Ledger
    leaf: Pair
    bundles: tuple[bytes, ...]  # one a webhook, over all configurations
    served: NotAsked | Served = NotAsked()


@dataclass(frozen=True)
class Introduce:
    """Make an authority and store it as the ledger's incoming one."""

    ledger: Ledger
    reason: str
    alarming: bool


@dataclass(frozen=True)
class Store:
    """Write the ledger."""

    ledger: Ledger
    reason: str
    alarming: bool = False


@dataclass(frozen=True)
class Trust:
    """Give every webhook that has another one this CA bundle."""

    bundle: bytes
    reason: str
    alarming: bool


@dataclass(frozen=True)
class IssueLeaf:
    """Have the authority sign a new leaf."""

    reason: str
    alarming: bool


@dataclass(frozen=True)
class AskReplicas:
    """Find out what each ready replica serves, and decide again."""


@dataclass(frozen=True)
class Rest:
    """There is nothing to do until then, and what is waited for."""

    until: datetime
    waiting_for: str


Write = Introduce | Store | Trust | IssueLeaf
Step = Write | AskReplicas | Rest


def decide(seen: Seen, wanted: Names, now: datetime, waits: Waits) -> Step:
    """Say what to do next; total: no bytes make it raise."""
    view = _look(seen, wanted, now, waits)
    for rule in _RULES:
        for step in rule(view):
            return step
    return Rest(min(_renewals(view), default=now + DAY), "renewal")


@dataclass(frozen=True)
class _View:
    """What was found, judged once for all rules."""

    seen: Seen
    now: datetime
    waits: Waits
    authority: Verdict
    incoming: Verdict
    leaf: Verdict
    former: tuple[x509.Certificate, ...]
    strangers: tuple[x509.Certificate, ...]  # good authorities in every bundle, not in the ledger
    since: datetime | None

    @property
    def ledger(self) -> Ledger:
        return self.seen.ledger

    @property
    def phase(self) -> Phase:
        """The phase by what there is; the recorded one only says whose `since` it is."""
        if isinstance(self.incoming, Good):
            return Phase.TRUSTING
        if not self.former:
            return Phase.STEADY
        retiring = self.ledger.phase is Phase.RETIRING and self.since is not None
        return Phase.RETIRING if retiring else Phase.SERVING

    @property
    def over(self) -> bool:
        """Whether former authorities have been kept for long enough."""
        done = self.since is not None and self.now >= self.since + self.waits.retire
        return self.phase is Phase.RETIRING and done

    @property
    def estranged(self) -> bool:
        """Whether what is trusted and served is not ours: the ledger was exchanged for another."""
        if not self.strangers:
            return False
        if _signed_by(self.seen.leaf, self.strangers) or isinstance(self.authority, Fault):
            return True
        ours = isinstance(self.leaf, Good) or any(map(self._trusts_us, self.seen.bundles))
        return not ours

    def _trusts_us(self, pem: bytes) -> bool:
        ours = self.authority
        return isinstance(ours, Good) and ours.certificate in bundle.good(pem, self.now)


def _look(seen: Seen, wanted: Names, now: datetime, waits: Waits) -> _View:
    ledger = seen.ledger
    authority = judging.authority(ledger.authority, now)
    incoming = judging.authority(ledger.incoming, now)
    former = bundle.good(ledger.former, now)
    current = (authority.certificate,) if isinstance(authority, Good) else ()
    newcomer = (incoming.certificate,) if isinstance(incoming, Good) else ()
    # Before the switch any leaf that is trusted will do: it is about to be replaced anyway.
    signers = (*current, *former) if newcomer else current
    known = {*current, *newcomer, *former}
    strangers = _common(seen.bundles, now)
    since = ledger.since if ledger.since is not None and ledger.since <= now else None
    return _View(
        seen,
        now,
        waits,
        authority,
        incoming,
        judging.leaf(seen.leaf, signers, wanted, now),
        former,
        tuple(each for each in strangers if each not in known),
        since,
    )


def _common(bundles: tuple[bytes, ...], now: datetime) -> tuple[x509.Certificate, ...]:
    """Give the good authorities that all bundles hold."""
    each = [bundle.good(pem, now) for pem in bundles]
    return tuple(c for c in each[0] if all(c in rest for rest in each[1:])) if each else ()


def _discard(view: _View) -> Iterator[Step]:
    """An incoming authority that is of no use is thrown away."""
    if isinstance(view.incoming, Fault) and view.ledger.incoming != Pair():
        phase = Phase.SERVING if view.former else Phase.STEADY
        kept = replace(view.ledger, incoming=Pair(), phase=phase, since=None)
        yield Store(kept, f"the incoming one is of no use: {view.incoming.reason}", alarming=True)


def _exchange(view: _View) -> Iterator[Step]:
    """Whatever is served and trusted stays so when the ledger does not know it."""
    if not view.estranged or not (
        isinstance(view.authority, Good) or isinstance(view.incoming, Good)
    ):
        return
    reason = "what the webhooks serve is trusted, but not signed by the authority found"
    kept = _with_strangers(view)
    if isinstance(view.authority, Good) and not _in_any(view, view.authority.certificate):
        kept = replace(kept, authority=Pair())
    if isinstance(view.incoming, Good):
        yield Store(replace(kept, phase=Phase.TRUSTING, since=None), reason, alarming=True)
    else:
        yield Introduce(kept, reason, alarming=True)


def _step_back(view: _View) -> Iterator[Step]:
    """An authority that lost its place in a bundle before it signed the leaf has to wait again."""
    if isinstance(view.authority, Fault) or isinstance(view.incoming, Good):
        return
    ours = view.authority.certificate
    everywhere = all(ours in bundle.good(pem, view.now) for pem in view.seen.bundles)
    common = _common(view.seen.bundles, view.now)
    if not everywhere and _signed_by(view.seen.leaf, tuple(c for c in common if c != ours)):
        again = replace(
            view.ledger,
            authority=Pair(),
            incoming=view.ledger.authority,
            phase=Phase.TRUSTING,
            since=None,
        )
        yield Store(again, "not every bundle holds the authority that is to sign", alarming=True)


def _introduce(view: _View) -> Iterator[Step]:
    """Phase 1 begins when there is no good authority, when it is due, or when a person asks."""
    if isinstance(view.incoming, Good):
        return
    if isinstance(view.authority, Fault):
        lost = view.authority.alarming or bool(view.strangers)
        yield Introduce(_with_strangers(view), view.authority.reason, lost)
    elif view.phase is not Phase.SERVING:
        ledger = view.ledger
        if view.authority.due:
            yield Introduce(ledger, view.authority.due, alarming=False)
        elif ledger.wish and ledger.wish != ledger.granted:
            yield Introduce(ledger, f"asked for as {ledger.wish[:64]!r}", alarming=False)


def _trust(view: _View) -> Iterator[Step]:
    """Every bundle holds exactly those who sign, will sign and have signed."""
    members = _members(view)
    wanted = bundle.text(members)
    if all(pem == wanted for pem in view.seen.bundles):
        return
    held = [set(bundle.good(pem, view.now)) for pem in view.seen.bundles]
    beginning = view.phase is Phase.TRUSTING and view.since is None
    newcomer = {view.incoming.certificate} if isinstance(view.incoming, Good) else set()
    if view.phase is Phase.TRUSTING and not beginning and any(not newcomer <= h for h in held):
        waited = replace(view.ledger, since=None)
        yield Store(waited, "a bundle lost the incoming authority, the wait begins again")
        return
    due = set(members) - (newcomer if beginning else set())
    known = {*members, *bundle.good(view.ledger.former, view.now)}
    if any(due - h or h - known for h in held):
        yield Trust(wanted, "a webhook's CA bundle was empty or not ours", alarming=True)
    else:
        yield Trust(wanted, "all CA bundles hold the same authorities", alarming=False)


def _issue(view: _View) -> Iterator[Step]:
    """The leaf is replaced when it is bad or due, and in phase 2."""
    if not isinstance(view.authority, Good):
        return  # the last good leaf is served on until there is somebody to sign another
    if isinstance(view.leaf, Fault):
        planned = view.phase is Phase.SERVING and _signed_by(view.seen.leaf, view.former)
        begun = view.authority.certificate.not_valid_before_utc + issue.BACKDATED
        had_one = view.now > begun + FIRST_LEAF
        yield IssueLeaf(view.leaf.reason, (view.leaf.alarming or had_one) and not planned)
    elif view.leaf.due:
        yield IssueLeaf(view.leaf.due, alarming=False)


def _switch(view: _View) -> Iterator[Step]:
    """Phase 2 begins when all API servers have had the time to learn of the newcomer."""
    if not isinstance(view.incoming, Good):
        return
    promoted = Store(view.ledger.promoted(view.now), "the new authority signs from now on")
    if isinstance(view.authority, Fault) and not view.former:
        yield promoted  # nothing was trusted before, so nothing is lost
    elif view.since is None:
        yield Store(view.ledger.trusted(view.now), "every bundle holds the new authority")
    elif view.now < view.since + view.waits.trust:
        yield Rest(view.since + view.waits.trust, "API servers to learn of the new authority")
    else:
        yield promoted


def _serve(view: _View) -> Iterator[Step]:
    """Phase 4 begins when every ready replica shows a leaf of the new authority."""
    if view.phase is not Phase.SERVING or not isinstance(view.authority, Good):
        return
    served = view.seen.served
    if isinstance(served, NotAsked):
        yield AskReplicas()
        return
    behind = [der for der in served.leaves if not _shown(der, view.authority.certificate)]
    if behind:
        what = f"{len(behind)} of {len(served.leaves)} replicas to serve the new leaf"
        yield Rest(view.now + view.waits.ask_again, what)
    else:
        yield Store(view.ledger.served(view.now), "every ready replica serves the new leaf")


def _retire(view: _View) -> Iterator[Step]:
    """Who signed before is forgotten at last."""
    settled = view.ledger.settled()
    if view.phase is Phase.RETIRING and not view.over:
        end = (view.since or view.now) + view.waits.retire
        yield Rest(min([end, *_renewals(view)]), "the former authority to retire")
    elif settled != view.ledger:
        yield Store(settled, "former authorities are trusted no more")


_RULES: Final[tuple[Callable[[_View], Iterator[Step]], ...]] = (
    _discard,
    _exchange,
    _step_back,
    _introduce,
    _trust,
    _issue,
    _switch,
    _serve,
    _retire,
)


def _members(view: _View) -> tuple[x509.Certificate, ...]:
    """Give who is to be in every bundle, the newest first."""
    current = [v.certificate for v in (view.incoming, view.authority) if isinstance(v, Good)]
    former = () if view.over else view.former
    return tuple(dict.fromkeys((*current, *former)))


def _with_strangers(view: _View) -> Ledger:
    """Keep trusting whatever every bundle trusts now."""
    former = dict.fromkeys((*view.former, *view.strangers))
    return replace(view.ledger, former=bundle.text(tuple(former)))


def _in_any(view: _View, certificate: x509.Certificate) -> bool:
    return any(certificate in bundle.good(pem, view.now) for pem in view.seen.bundles)


def _renewals(view: _View) -> list[datetime]:
    found = (view.authority, view.leaf)
    return [judging.renewal(each.certificate) for each in found if isinstance(each, Good)]


def _signed_by(leaf: Pair, signers: tuple[x509.Certificate, ...]) -> bool:
    certificate = reading.certificate(leaf.certificate)
    return certificate is not None and judging.signed_by_one_of(certificate, signers)


def _shown(der: bytes, authority: x509.Certificate) -> bool:
    try:
        return reading.signed_by(x509.load_der_x509_certificate(der), authority)
    except reading.UNREADABLE:
        return False
