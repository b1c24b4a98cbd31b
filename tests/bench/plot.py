"""Lines in an SVG, both axes logarithmic: enough to see whether a cost grows faster than its cause.

Dashed guides show what is proportional.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape

Points = Sequence[tuple[float, float]]

WIDTH: Final = 900
HEIGHT: Final = 560
LEFT, TOP, RIGHT, BOTTOM = 80, 50, 300, 60
COLOURS: Final = (
    "#1b6ca8", "#d1495b", "#2e8b57", "#b8860b", "#6a4c93", "#00798c", "#8d5524", "#444444",
)  # fmt: skip


class _Scale:
    """From values to places on one axis."""

    def __init__(self, ticks: Sequence[float], start: float, stop: float) -> None:
        self.ticks = ticks
        self._start, self._stop = start, stop

    def __call__(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        share = math.log(value / low) / math.log(high / low)
        return round(self._start + share * (self._stop - self._start), 1)


def _decades(values: Sequence[float]) -> list[float]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return [10.0**power for power in range(low, max(low + 1, high) + 1)]


def svg(title: str, across: str, up: str, lines: Mapping[str, Points]) -> str:
    """Draw one line for each name."""
    points = [point for line in lines.values() for point in line]
    x = _Scale(sorted({point[0] for point in points}), LEFT, WIDTH - RIGHT)
    y = _Scale(_decades([point[1] for point in points]), HEIGHT - BOTTOM, TOP)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 24, title, 'font-size="15"'),
        _text(LEFT, HEIGHT - 16, across),
        _text(8, TOP - 14, up),
        *_grid(x, y),
    ]
    for number, (name, line) in enumerate(lines.items()):
        drawn += _line(name, [(x(a), y(b)) for a, b in line], number)
    return "\n".join([*drawn, "</svg>", ""])


def _grid(x: _Scale, y: _Scale) -> list[str]:
    drawn = []
    for value in x.ticks:
        at = x(value)
        drawn += [
            _rule(at, TOP, at, HEIGHT - BOTTOM),
            _text(at, HEIGHT - BOTTOM + 18, _said(value)),
        ]
    for value in y.ticks:
        at = y(value)
        drawn += [_rule(LEFT, at, WIDTH - RIGHT, at), _text(8, at + 4, _said(value))]
    # Proportional guides start at each decade and end where they leave the picture.
    growth = x.ticks[-1] / x.ticks[0]
    for value in y.ticks[:-1]:
        far = min(growth, y.ticks[-1] / value)
        ends = x(x.ticks[0]), y(value), x(x.ticks[0] * far), y(value * far)
        drawn.append(_rule(*ends, 'stroke-dasharray="4 4"'))
    return drawn


def _line(name: str, places: Sequence[tuple[float, float]], number: int) -> list[str]:
    colour = COLOURS[number % len(COLOURS)]
    dashes = "" if number < len(COLOURS) else ' stroke-dasharray="6 3"'
    path = " ".join(f"{a},{b}" for a, b in places)
    legend = TOP + 20 * number
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>',
        *(f'<circle cx="{a}" cy="{b}" r="3" fill="{colour}"/>' for a, b in places),
        f'<rect x="{WIDTH - RIGHT + 16}" y="{legend}" width="14" height="4" fill="{colour}"/>',
        _text(WIDTH - RIGHT + 36, legend + 6, name),
    ]


def _rule(x1: float, y1: float, x2: float, y2: float, how: str = "") -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#cccccc" {how}/>'


def _text(x: float, y: float, text: str, how: str = "") -> str:
    return f'<text x="{x}" y="{y}" {how}>{escape(text)}</text>'


def _said(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"
