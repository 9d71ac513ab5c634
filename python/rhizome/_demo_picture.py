"""A drawing of a neighbourhood as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

_SIZE, _LEGEND = 720, 150
_RADII = (0, 150, 310)  # of the centre, of its neighbours, and of theirs
_COLOURS = ("#4477aa", "#228833", "#ee6677", "#ccbb44", "#aa3377", "#66ccee")


class Circle(NamedTuple):
    """A vertex of the drawing."""

    name: str
    colour: int


def picture(circles: Sequence[Circle], first: int, lines: Sequence[tuple[int, int]], kinds: Sequence[str], title: str) -> str:
    """Returns an SVG document: the first of ``circles`` in the middle, the next ``first`` ones around it, the others
    around these, near the ones that they are connected to.

    ``lines``: pairs of positions in ``circles``; ``kinds``: the name of each colour.
    """
    angles = _angles(len(circles), first, lines)
    rings = [0] + [1] * first + [2] * (len(circles) - 1 - first)
    middle = _SIZE / 2
    places = [(middle + _RADII[ring] * math.cos(angle), middle + _RADII[ring] * math.sin(angle))
              for ring, angle in zip(rings, angles)]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE + _LEGEND} {_SIZE}" font-family="sans-serif" '
             f'font-size="12">', f"<title>{escape(title)}</title>",
             '<rect width="100%" height="100%" fill="white"/>']
    for a, b in lines:
        (x1, y1), (x2, y2) = places[a], places[b]
        parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#bbb"/>')
    for circle, ring, (x, y) in zip(circles, rings, places):
        radius = (12, 9, 5)[ring]
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{_COLOURS[circle.colour % len(_COLOURS)]}">'
                     f"<title>{escape(circle.name)}</title></circle>")
        if ring < 2:
            parts.append(f'<text x="{x:.1f}" y="{y + radius + 12:.1f}" text-anchor="middle">{escape(circle.name)}</text>')
    for number, kind in enumerate(kinds):
        y = 30 + 22 * number
        parts.append(f'<circle cx="{_SIZE + 20}" cy="{y}" r="7" fill="{_COLOURS[number % len(_COLOURS)]}"/>'
                     f'<text x="{_SIZE + 34}" y="{y + 4}">{escape(kind)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _angles(count: int, first: int, lines: Sequence[tuple[int, int]]) -> list[float]:
    """Returns the angle of each circle: the inner ring evenly, the outer ring in the order of the inner one."""
    angles = [0.0] + [2 * math.pi * number / max(first, 1) for number in range(first)]
    owner: dict[int, int] = {}
    for a, b in lines:
        if a <= first < b:
            owner.setdefault(b, a)
    outer = sorted(range(first + 1, count), key=lambda place: (owner.get(place, 0), place))
    angles += [0.0] * len(outer)
    for number, place in enumerate(outer):
        angles[place] = 2 * math.pi * number / max(len(outer), 1)
    return angles
