"""Rows of integers, some of which are missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._types import dtype_name

#: Functions that join arrays.
_JOINING = (np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack)


class MaskedRows(np.ma.MaskedArray):
    """Rows of an array of integers that has the attribute ``null``: the elements without a value are masked.

    It is a ``numpy.ma.MaskedArray``: ``rows.mask`` is true where there is no value, computations leave these elements
    out, and ``rows.filled(0)`` replaces them. ``rows.data`` is the memory as stored, with the integer of ``null`` at these
    places; ``numpy.asarray`` and PyTorch see it, too. ``rows.astype("float64")``, or another float type, is a plain array
    with NaN at these places.
    """

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """As ``numpy.ndarray.astype``; of float types, a plain array with NaN where there is no value."""
        made = super().astype(dtype, *args, **options)
        if made.dtype.kind not in "fc" and dtype_name(made.dtype) != "bfloat16":
            return made
        values = np.array(made.data)
        values[np.ma.getmaskarray(made)] = np.nan
        return values

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """``numpy.concatenate``, ``stack``, ``vstack``, ``hstack``, ... are those of ``numpy.ma``: NumPy's lose the mask."""
        if function in _JOINING and not {"out", "dtype", "casting"} & set(kwargs):
            return getattr(np.ma, function.__name__)(*args, **kwargs).view(MaskedRows)
        return super().__array_function__(function, types, args, kwargs)


def masked(rows: np.ndarray, null: int) -> np.ndarray:
    """Returns rows with their elements ``null`` masked; ``rows`` itself if its dtype does not have that integer."""
    if rows.dtype.kind not in "iu" or not np.iinfo(rows.dtype).min <= null <= np.iinfo(rows.dtype).max:
        return rows
    found = MaskedRows(rows, mask=rows == null)
    found.fill_value = null
    return found
