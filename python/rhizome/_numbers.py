"""Conversions of numbers between types. A number that would become another one is refused with its place."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Rows that are compared at once.
_ROWS = 1 << 16


def exactly(name: str, values: np.ndarray, target: np.dtype) -> np.ndarray:
    """Converts a matrix, C-contiguous. Fractions are rounded to a narrower type of floats.

    Errors: ValueError, as for ``check_same``.
    """
    if values.dtype == target:
        return np.ascontiguousarray(values)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = np.ascontiguousarray(values, target)
    check_same(name, values, narrow)
    return narrow


def check_same(name: str, values: np.ndarray, narrow: np.ndarray) -> None:
    """Checks that numbers converted to another type are the same, except that fractions may be rounded.

    Errors: ValueError, a number that became another, infinite or 0, naming the row.
    """
    rounded = values.dtype.kind in "iu" and narrow.dtype.kind == "f"  # NumPy calls int64 to float64 safe
    if np.can_cast(values.dtype, narrow.dtype) and not rounded:
        return
    for first in range(0, len(values), _ROWS):
        wide, made = values[first:first + _ROWS], narrow[first:first + _ROWS]
        lost = _lost(wide, made)
        if lost.any():
            place = np.argwhere(lost)[0]
            raise ValueError(_changed(name, first + int(place[0]), wide[tuple(place)], narrow.dtype))


def _lost(wide: np.ndarray, made: np.ndarray) -> np.ndarray:
    lost: np.ndarray
    if wide.dtype.kind == "f":
        lost = (wide != made) & np.isfinite(wide) & \
            (~np.isfinite(made) | (made == 0) | ((wide == np.trunc(wide)) & (np.abs(wide) <= 2.0**53)))
    elif made.dtype.kind == "f":  # compared as integers: NumPy would compare them as floats
        whole = made.astype(np.float64)
        lost = (np.abs(whole) >= 2.0**63) | (np.where(np.abs(whole) < 2.0**63, whole, 0).astype(np.int64) != wide)
    else:
        lost = wide != made
    return lost


def _changed(name: str, row: int, value: Any, target: np.dtype) -> str:
    with np.errstate(over="ignore"):
        made = np.asarray(value).astype(target)
    if target.kind in "iu":
        return f"{name!r}: row {row}: {value} is beyond {target}"
    if value.dtype.kind == "f" and abs(value) < np.finfo(target).tiny:
        return (f"{name!r}: row {row}: {value} is too small for {target}, where it would become 0 (the smallest is "
                f"{np.finfo(target).smallest_subnormal:.2g}); scale such numbers, or use their logarithms")
    return (f"{name!r}: row {row}: {value} would be stored as {made}, the nearest {target}: give whole numbers as "
            "int64, and scale numbers that are too large")
