"""Short descriptions of objects: a box of a few lines, also as a table of HTML for notebooks."""

from __future__ import annotations

import html
from typing import Any, NamedTuple

import numpy as np

#: Maximum length of a line, and maximum number of values that are shown.
_WIDTH = 96
_VALUES = 6


class Box(NamedTuple):
    """A description: a title, and names with texts. A row without a name continues the one above."""

    title: str
    rows: list[tuple[str, str]]


def box_of(value: Any) -> Box:
    """Describes an object that has a method ``_box``, or a named tuple by its fields."""
    if hasattr(value, "_box"):
        box: Box = value._box()
        return box
    return Box(f"rhizome.{type(value).__name__}", [(name, shown(field)) for name, field in value._asdict().items()])


def boxed(value: Any) -> str:
    """Returns the description as a box of text; for ``__repr__``."""
    title, rows = box_of(value)
    if not rows:
        return f"<{title}>"
    left = max(len(name) for name, _ in rows)
    lines = [_shortened(f"{name:{left}}  {text}") for name, text in rows]
    title = _shortened(title)
    width = max(len(title) + 1, *map(len, lines))
    head = f"┌ {title} ".ljust(width + 3, "─") + "┐"
    return "\n".join([head, *(f"│ {line:{width}} │" for line in lines), "└" + "─" * (width + 2) + "┘"])


def as_html(value: Any) -> str:
    """Returns the description as a table; for ``_repr_html_``, which notebooks call."""
    title, rows = box_of(value)
    cells = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
                    f"<td style='text-align:left'>{html.escape(text)}</td></tr>" for name, text in rows)
    return f"<table><caption style='text-align:left'>{html.escape(title)}</caption>{cells}</table>"


def shown(value: Any) -> str:
    """Describes a value in a few words: an array by dtype, shape and its first values."""
    if isinstance(value, np.ndarray):
        kind = f"{value.dtype} {list(value.shape)}"
        if value.ndim != 1 or not value.size:
            return kind
        first = " ".join(f"{one:.4g}" if value.dtype.kind == "f" else str(one) for one in value[:_VALUES].tolist())
        return f"{kind}: {first}{' ...' if value.size > _VALUES else ''}"
    if isinstance(value, (list, tuple)):
        first = " ".join(map(repr, value[:_VALUES]))
        return f"list [{len(value)}]: {first}{' ...' if len(value) > _VALUES else ''}"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{type(value).__name__}, {value.dtype} {list(value.shape)}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def listed(names: Any) -> str:
    """Joins names, at most a few of them."""
    names = list(names)
    more = f" and {len(names) - _VALUES} more" if len(names) > _VALUES else ""
    return ", ".join(names[:_VALUES]) + more


def _shortened(text: str) -> str:
    text = " ".join(text.splitlines()) if "\n" in text else text
    return text if len(text) <= _WIDTH else text[:_WIDTH - 1] + "…"
