"""Plans and what became of them, as text for people and as JSON for tools. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from api import quantities
from api.jsons import JsonObject
from scheduler import explain
from scheduler.answers import (
    AskFewer,
    CliqueReport,
    FreeRoom,
    LevelReport,
    Loosen,
    MoreNodes,
    NoFit,
    Placement,
    Plan,
    Remedy,
    Uncordon,
    Widen,
)
from scheduler.parts import scarcity
from scheduler.requests import GangRequest
from scheduler.whatif import Difference, Key

_GAP: Final = "  "


def plan_text(plan: Plan, nodes: int) -> str:
    """Show who is placed where, and for everybody else why not."""
    lines = [
        f"{_plural(len(plan.placements) + len(plan.refusals), 'gang')} on "
        f"{_plural(nodes, 'node')}: {len(plan.placements)} placed, {len(plan.refusals)} refused"
    ]
    if plan.placements:
        head = ("GANG", "DOMAIN", "PODS", "SCORE", "FRAGMENTED", "STEPS")
        rows = [
            (
                gang_text(p.gang),
                explain.domain_text(p.domain),
                f"{len(p.placed)}/{len(p.gang.minimum) + len(p.gang.extras)}",
                f"{p.score:.2f}",
                f"{p.fragmentation:.2f}",
                str(p.steps),
            )
            for p in plan.placements
        ]
        lines += ["", *_table(head, rows)]
    for refusal in plan.refusals:
        lines += ["", f"{gang_text(refusal.gang)}: {explain.sentence(refusal)}"]
    return "\n".join(lines) + "\n"


def difference_text(difference: Difference, displaced: Mapping[Key, int]) -> str:
    """Show what the edits change, gang by gang."""
    lines = ["against the saved snapshot:"]
    lines += [f"  {'/'.join(key)}: placed now" for key in difference.placed]
    lines += [f"  {'/'.join(key)}: not placed any more" for key in difference.starved]
    for move in difference.moved:
        there = explain.domain_text(move.after)
        where = f"in {there}" if move.before == move.after else f"to {there}"
        lines.append(f"  {'/'.join(move.gang)}: {_plural(move.pods, 'pod')} moved {where}")
    lines += [f"  {'/'.join(key)}: not asked about any more" for key in difference.gone]
    for key, pods in displaced.items():
        whose = "/".join(key) if key[1] else "pods of no gang"
        lines.append(f"  {whose}: {_plural(pods, 'pod')} drained, and not placed again here")
    if len(lines) == 1:
        lines.append("  nothing changes")
    unchanged = len(difference.same) + len(difference.waiting)
    if unchanged and len(lines) > 1:
        lines.append(f"  {_plural(unchanged, 'gang')} as before")
    return "\n".join(lines) + "\n"


def gang_explained(plan: Plan, key: Key) -> str | None:
    """Show all that is known of one gang's answer; None if the plan has none for it."""
    for placement in plan.placements:
        if _key(placement.gang) == key:
            return _placed_text(placement)
    for refusal in plan.refusals:
        if _key(refusal.gang) == key:
            return "\n".join(_refused_lines(refusal)) + "\n"
    return None


def plan_json(plan: Plan, nodes: int) -> JsonObject:
    """Give the plan for tools."""
    return {
        "nodes": nodes,
        "placements": [placement_json(placement) for placement in plan.placements],
        "refusals": [explain.details(refusal) for refusal in plan.refusals],
    }


def gang_json(plan: Plan, key: Key) -> JsonObject:
    """Give all that is known of one gang's answer for tools; the plan must have one."""
    placed = [each for each in plan.placements if _key(each.gang) == key]
    refused = [each for each in plan.refusals if _key(each.gang) == key]
    return placement_json(placed[0]) if placed else explain.details(refused[0])


def placement_json(placement: Placement) -> JsonObject:
    """Give a placement for tools."""
    return {
        "gang": {"namespace": placement.gang.namespace, "name": placement.gang.name},
        "domain": list(placement.domain),
        "score": placement.score,
        "fragmentation": placement.fragmentation,
        "steps": placement.steps,
        "pods": [
            {"clique": each.want.clique, "index": each.want.index, "node": each.node}
            for each in placement.placed
        ],
    }


def difference_json(difference: Difference, displaced: Mapping[Key, int]) -> JsonObject:
    """Give what the edits change for tools."""
    found: JsonObject = msgspec.json.decode(msgspec.json.encode(difference))
    found["displaced"] = [
        {"namespace": namespace, "name": name, "pods": pods}
        for (namespace, name), pods in displaced.items()
    ]
    return found


def gang_text(gang: GangRequest) -> str:
    """Name a gang."""
    return "/".join(_key(gang))


def _placed_text(placement: Placement) -> str:
    where = explain.domain_text(placement.domain)
    rows = [(each.want.clique, str(each.want.index), each.node) for each in placement.placed]
    head = (
        f"{gang_text(placement.gang)} is placed in {where}: score {placement.score:.2f}, "
        f"fragmentation {placement.fragmentation:.2f}, {_plural(placement.steps, 'step')}"
    )
    return "\n".join([head, "", *_table(("CLIQUE", "INDEX", "NODE"), rows)]) + "\n"


def _refused_lines(refusal: NoFit) -> Iterator[str]:
    yield f"{gang_text(refusal.gang)}: {explain.sentence(refusal)}"
    yield ""
    yield f"cause: {refusal.cause.value}" + (f" ({refusal.subject})" if refusal.subject else "")
    if refusal.cliques:
        yield ""
        cliques = ("CLIQUE", "ASKED", "FIT", "ROOM", "NODES", "NEED", "OBSTACLES")
        yield from _table(cliques, [_clique(each) for each in refusal.cliques])
    if refusal.levels:
        yield ""
        levels = ("PART", "LEVEL", "DOMAINS", "ENOUGH", "STOPPED BY")
        yield from _table(levels, [_level(each) for each in refusal.levels])
    domains = [(report, domain) for report in refusal.levels for domain in report.best]
    if domains:
        yield ""
        rows = [
            (
                explain.domain_text(domain.path),
                str(domain.fits),
                _amounts(domain.lacks) or "-",
                domain.stopped or "-",
            )
            for _, domain in domains
        ]
        yield from _table(("NEAREST", "FIT", "LACKS", "STOPPED BY"), rows)
    if refusal.remedies:
        yield ""
        yield "any one of these would do:"
        for remedy in refusal.remedies:
            yield f"  {_remedy(remedy)}"


def _clique(each: CliqueReport) -> tuple[str, ...]:
    return (
        each.clique,
        str(each.asked),
        str(each.fits),
        str(each.room),
        str(each.usable),
        _amounts({name: n for name, n in each.need.items() if name != quantities.PODS}),
        _counts(each.obstacles) or "-",
    )


def _level(each: LevelReport) -> tuple[str, ...]:
    level = explain.level_word(each.level) or "cluster"
    return (
        each.part or "gang",
        f"{level} (required)" if each.required else level,
        str(each.domains),
        str(each.enough),
        _counts(each.stopped) or "-",
    )


def _remedy(remedy: Remedy) -> str:
    match remedy:
        case Uncordon(nodes):
            return f"uncordon {', '.join(nodes)}"
        case Widen(part, level, wider, domain):
            whose = f" of {part}" if part else ""
            wide = f"{explain.level_word(wider)} instead of" if wider else "no level and not"
            where = explain.domain_text(domain)
            return f"require{whose} {wide} {explain.level_word(level)}: it fits {where}"
        case FreeRoom(_, _, nodes):
            each = "; ".join(f"{_amounts(amounts)} on {node}" for node, amounts in nodes.items())
            return f"free {each}"
        case MoreNodes(domain, count, like):
            where = f" in {explain.domain_text(domain)}" if domain else ""
            return f"add {_plural(count, 'node')} like {like}{where}"
        case Loosen(level):
            return f"let replicas share a {explain.level_word(level)}"
        case AskFewer(domain, pods):
            few = ", ".join(f"{count} {clique}" for clique, count in pods.items())
            return f"ask for no more than {few}: these fit {explain.domain_text(domain)}"


def _amounts(amounts: Mapping[str, int]) -> str:
    names = sorted((name for name in amounts if amounts[name]), key=scarcity)
    return ", ".join(f"{quantities.text(name, amounts[name])} {name}" for name in names)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.items())


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    ]


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _key(gang: GangRequest) -> Key:
    return gang.namespace, gang.name
