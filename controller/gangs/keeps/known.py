"""What people have kept, followed by events: what of it is left, and who may draw on that."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from api.quantities import Amounts
from api.streams import Pod
from controller.gangs.deciding import Place
from controller.gangs.keeps import owners, views
from controller.gangs.keeps.views import Keep, KeepView
from controller.gangs.stockroom import Stockroom
from controller.gangs.views import GangView, Reservation
from controller.podgang import Gang
from kube.objects import Key
from scheduler import needs
from scheduler.requests import Kept, Share


class Keeps:
    """All keeps there are, and the entries of the ledger that draw on them.

    What is left of each is put into the stockroom as taken, at every change.
    """

    def __init__(
        self,
        stockroom: Stockroom,
        changed: Callable[[], None],
        entries: Mapping[Key, Reservation],
    ) -> None:
        """`changed` is called when there may be more room for somebody; `entries` is the ledger."""
        self._stockroom = stockroom
        self._changed = changed
        self._keeps: dict[Key, Keep] = {}
        self._in: dict[str, set[Key]] = {}  # by namespace
        self._users: dict[Key, dict[Key, Reservation]] = {}  # of each keep, by the gang's key
        self._used_by: dict[Key, Key] = {}  # the keep that each entry draws on
        self._entries = entries
        self._on_node: dict[str, set[Key]] = {}
        self._touched: Callable[[Key], None] = _nobody
        self._freed: Callable[[], None] = _nothing

    def watch(self, touched: Callable[[Key], None], freed: Callable[[], None]) -> None:
        """Tell of changes from now on, and at once of all that is there."""
        self._touched, self._freed = touched, freed
        for key in self._keeps:
            touched(key)

    def put(self, key: Key, keep: Keep | None) -> None:
        """Take a keep as it is now; None if it is gone, or never was one."""
        before = self._keeps.pop(key, None)
        if before is None and keep is None:
            return
        if before is not None:
            self._in[key[0]].discard(key)
            for node in before.shares():
                self._on_node.get(node, set()).discard(key)
        if keep is not None:
            self._keeps[key] = keep
            self._in.setdefault(key[0], set()).add(key)
            for node in keep.shares():
                self._on_node.setdefault(node, set()).add(key)
        self._count(key)
        shares = [each.shares() if each else {} for each in (before, keep)]
        if shares[0] != shares[1]:
            self._changed()
        self._touched(key)

    def follow(self, key: Key, entry: Reservation | None) -> None:
        """Take an entry of the ledger as it is now; None if it is gone."""
        before = self._used_by.pop(key, None)
        if before is not None:
            del self._users[before][key]
        uses = entry.spec.uses if entry is not None else None
        now = (key[0], uses.name) if uses is not None else None
        if entry is not None and now is not None:
            self._used_by[key] = now
            self._users.setdefault(now, {})[key] = entry
        for changed in {before, now} - {None}:
            if changed is not None and changed in self._keeps:
                self._count(changed)
                self._touched(changed)

    def more_room(self) -> None:
        """Room may have come free."""
        self._freed()

    def went(self, namespace: str) -> None:
        """A gang or a pod of the namespace is gone."""
        for key in self._in.get(namespace, ()):
            if owners.named(self._keeps[key]):
                self._touched(key)

    def on_node(self, node: str) -> None:
        """Somebody else has come to a node, or it is gone."""
        for key in self._on_node.get(node, ()):
            self._touched(key)

    def get(self, key: Key) -> Keep | None:
        """Give a keep by namespace and name."""
        return self._keeps.get(key)

    def view(self, key: Key, is_there: Callable[[str], bool]) -> KeepView | None:
        """Look at one keep; `is_there` says whether there is such a node."""
        keep = self._keeps.get(key)
        if keep is None:
            return None
        shares = keep.shares()
        gone = frozenset(node for node in shares if not is_there(node))
        lost = gone | self._stockroom.short_of(shares)
        return KeepView(keep, self._users_of(keep), lost)

    def offer(self, view: GangView, place: Place) -> Kept | None:
        """Give the room that the gang may draw on, as far as it would be of use to it.

        One that draws on a keep already stays with that; of several others it gets the one it asks
        for, else the oldest.
        """
        every = self._in.get(view.gang.metadata.namespace)
        if not every:
            return None
        wants = [needs.of_pod(member.pod) for member in (*place.minimum, *place.extras)]
        pods = [member.pod for member in view.members]
        for keep in self._candidates(view, pods):
            left = views.rest(keep, self._users_of(keep))
            if any(_serves(there, want) for there in left.values() for want in wants):
                shares = tuple(Share(node, left[node]) for node in sorted(left))
                name = f"{keep.metadata.name}/{keep.metadata.uid}"
                return Kept(name, shares, keep.spec.allocate_once)
        return None

    def before(self, gang: Gang) -> tuple[str, ...]:
        """Name the nodes of the gang whose place this one asks to have again, as far as it is free.

        Its entry in the ledger is called like that gang, so that it can be named like a keep.
        """
        asked = owners.asked_for(gang, ())
        if asked is None or asked == gang.key or asked[0] != gang.metadata.namespace:
            return ()
        entry = self._entries.get(asked)
        if entry is None:
            return ()
        return tuple(sorted({slot.node for _, slot, _ in entry.slots()}))

    def unheeded(self, gang: Gang, every: Mapping[Key, Pod]) -> str:
        """Say why a gang does not get the room it asks for by name; "" if it asks for none."""
        pods = _first_pods(gang, every)
        asked = owners.asked_for(gang, pods)
        if asked is None or self._used_by.get(gang.key) == asked:
            return ""
        what = f"reservation {asked[1]}"
        if asked[0] != gang.metadata.namespace:
            return f"{what} is in namespace {asked[0]}, and room is kept for its own only"
        keep = self._keeps.get(asked)
        if keep is None and asked in self._entries:
            return ""  # another gang's, whose place it would like
        if keep is None:
            return f"there is no {what}"
        if not owners.meant(keep, gang, pods):
            return f"{what} is not for this gang, by its owners"
        return f"{what} is {keep.status.state.value}" if not keep.shares() else ""

    def _candidates(self, view: GangView, pods: Sequence[Pod]) -> Iterator[Keep]:
        """List the keeps that a gang may draw on, the one it should draw on first."""
        gang, entry = view.gang, view.reservation
        uses = entry.spec.uses if entry is not None and views.drawn_by(entry) else None
        asked = owners.asked_for(gang, pods)
        found = [self._keeps[key] for key in self._in.get(gang.metadata.namespace, ())]
        for keep in sorted(found, key=lambda each: (each.key != asked, views.age(each))):
            if not keep.shares() or (uses is not None and keep.metadata.uid != uses.uid):
                continue
            others = {user.metadata.name for user in self._users_of(keep)} - {gang.metadata.name}
            if owners.meant(keep, gang, pods) and not (keep.spec.allocate_once and others):
                yield keep

    def _users_of(self, keep: Keep) -> tuple[Reservation, ...]:
        """List the entries that draw on a keep, and not on a namesake that is gone."""
        return tuple(
            entry
            for _, entry in sorted(self._users.get(keep.key, {}).items())
            if entry.spec.uses is not None
            and entry.spec.uses.uid == keep.metadata.uid
            and views.drawn_by(entry)
        )

    def _count(self, key: Key) -> None:
        keep = self._keeps.get(key)
        left = views.rest(keep, self._users_of(keep)) if keep is not None else {}
        self._stockroom.keep(key, left)


def _first_pods(gang: Gang, every: Mapping[Key, Pod]) -> list[Pod]:
    """Give one pod of each clique: those of a clique are alike."""
    found = []
    for group in gang.spec.pod_groups:
        for reference in group.pod_references[:1]:
            pod = every.get((reference.namespace, reference.name))
            found += [pod] if pod is not None else []
    return found


def _serves(there: Amounts, want: Amounts) -> bool:
    """Whether a pod would take something of what is left that is worth drawing on."""
    return any(there.get(name, 0) for name, amount in want.items() if amount and name != "pods")


def _nobody(_key: Key) -> None:
    pass


def _nothing() -> None:
    pass
