"""Columns of tables, and arrays, of any library as NumPy arrays with a mask of what is missing. Only NumPy is imported;
other libraries are recognised by the attributes of their objects.
"""

from __future__ import annotations

import datetime
import numbers
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Union

import numpy as np

from ._types import as_array, as_text, dtype_name

#: Kinds of NumPy's types that are stored as they are: bool, integers, floats.
_PLAIN_KINDS = "biuf"


@dataclass(frozen=True)
class Column:
    """Values of one name. Texts are a list of str; times are int64 microseconds since 1970 UTC."""

    name: str
    values: Union[np.ndarray, list[str]]  #: [n] or [n, dim]; at missing places there is any value
    missing: np.ndarray | None = None  #: bool, in the shape of the values; None: nothing is missing
    type: str = ""  #: "", "text" or "timestamp"

    def __len__(self) -> int:
        return len(self.values)

    @property
    def array(self) -> np.ndarray:
        """The values of a column that has no texts."""
        assert not isinstance(self.values, list)
        return self.values

    def take(self, chosen: Any) -> Column:
        """Returns some of the rows."""
        if isinstance(self.values, list) and not isinstance(chosen, slice):
            values = [self.values[i] for i in chosen]
        else:
            values = self.values[chosen]
        return replace(self, values=values, missing=None if self.missing is None else self.missing[chosen])

    @property
    def first_missing(self) -> int | None:
        """The first row in which something is missing; None: nothing is."""
        if self.missing is None or not self.missing.any():
            return None
        return int(np.argmax(self.missing.reshape(len(self.missing), -1).any(axis=1)))


def column_of(name: str, values: Any) -> Column:
    """Reads a column of pandas, pyarrow or any library that exports Arrow's C stream (polars), a masked array, or
    anything that NumPy reads.

    Errors: TypeError, ValueError: values that no array can hold, naming column and row.
    """
    if isinstance(values, Column):
        return replace(values, name=name)
    if hasattr(values, "isna") and hasattr(values, "to_numpy"):
        return _of_pandas(name, values)
    if hasattr(values, "null_count") and hasattr(values, "type"):
        return _of_arrow(name, values)
    if hasattr(values, "__arrow_c_stream__"):
        from ._tables import library
        return _of_arrow(name, library("pyarrow", "a column of Arrow", "arrow").chunked_array(values))
    if isinstance(values, np.ma.MaskedArray):
        return _of_numpy(name, values.data, np.ma.getmaskarray(values))
    if str(getattr(values, "dtype", "")) == "torch.bfloat16":  # which NumPy does not have
        bits = values.detach().cpu().contiguous().view(sys.modules["torch"].int16)
        return _of_numpy(name, as_array(bits).view("V2"), None)
    array = as_array(values)
    if array.dtype.kind in "UT" and array.ndim == 1 and isinstance(values, (list, tuple)):
        return _of_objects(name, list(values), None)  # NumPy has made texts of numbers and NaN among texts
    return _of_numpy(name, array, None)


def joined(name: str, columns: Sequence[Column | None], counts: Sequence[int]) -> Column:
    """Concatenates columns of one name. ``counts``: their rows; None stands for rows that are missing.

    Errors: TypeError, ValueError: columns of different kinds or widths.
    """
    there = [column for column in columns if column is not None]
    kinds = {column.type or ("float" if column.array.dtype.kind == "f" else "integer") for column in there}
    if len(kinds) > 1:
        raise TypeError(f"{name!r} has " + ", ".join(f"{kind}s in one table" for kind in sorted(kinds)))
    absent = [column is None for column in columns]
    if kinds == {"text"}:
        texts = [text for column, count in zip(columns, counts) for text in ([""] * count if column is None else column.values)]
        return Column(name, texts, _missing_of(columns, counts, None), "text")
    shapes = {column.array.shape[1:] for column in there}
    if len(shapes) > 1:
        raise ValueError(f"{name!r} has rows of several widths in several tables: give them different names")
    shape, dtype = shapes.pop(), np.result_type(*(column.array.dtype for column in there))
    parts = [np.zeros((count, *shape), dtype) if column is None else column.values for column, count in zip(columns, counts)]
    if any(dtype.kind != column.array.dtype.kind and dtype.kind == "f" for column in there):  # uint64 and int64
        raise TypeError(f"{name!r} has integers that no type holds together")
    missing = _missing_of(columns, counts, shape) if any(absent) or any(column.missing is not None for column in there) else None
    return Column(name, np.concatenate(parts), missing, there[0].type)


def _missing_of(columns: Sequence[Column | None], counts: Sequence[int], shape: tuple[int, ...] | None) -> np.ndarray:
    parts = []
    for column, count in zip(columns, counts):
        if column is not None and column.missing is not None:
            parts.append(column.missing)
        else:
            parts.append(np.full((count, *(shape or ())), column is None))
    return np.concatenate(parts)


def _of_pandas(name: str, values: Any) -> Column:
    dtype, missing = values.dtype, np.asarray(values.isna(), dtype=bool)
    if isinstance(dtype, np.dtype):
        return _of_numpy(name, values.to_numpy(), missing if dtype.kind != "f" else None)
    if hasattr(dtype, "pyarrow_dtype"):
        return _of_arrow(name, values.array.__arrow_array__())
    if hasattr(dtype, "categories"):
        codes, categories = np.asarray(getattr(values, "cat", values).codes), np.asarray(dtype.categories)
        if not len(categories):
            categories = np.array([""], object)
        return _of_numpy(name, categories[np.maximum(codes, 0)], codes < 0)
    if hasattr(dtype, "tz"):
        times = getattr(values, "dt", values).tz_convert("UTC")
        return _of_numpy(name, getattr(times, "dt", times).tz_localize(None).to_numpy(), missing)
    if hasattr(dtype, "numpy_dtype"):  # integers, floats and bools with NA
        kind = dtype.numpy_dtype
        return _of_numpy(name, values.to_numpy(dtype=kind, na_value=np.nan if kind.kind == "f" else 0), missing)
    return _of_numpy(name, values.to_numpy(dtype=object), missing)


def _of_arrow(name: str, values: Any) -> Column:
    """Reads a pyarrow.Array or ChunkedArray."""
    import pyarrow as arrow

    kind = values.type
    is_a = arrow.types
    if is_a.is_dictionary(kind):
        parts = [_of_dictionary(name, part) for part in getattr(values, "chunks", [values]) if len(part)]
        return joined(name, parts, [len(part.values) for part in parts]) if parts else \
            _of_arrow(name, arrow.array([], kind.value_type))
    if is_a.is_null(kind):
        return Column(name, np.full(len(values), np.nan, np.float32), np.ones(len(values), bool))
    missing = _to_numpy(values.is_null()) if values.null_count else None
    if any(getattr(is_a, f"is_{text}", lambda _: False)(kind) for text in ("string", "large_string", "string_view")):
        return _texts(name, values.to_pylist(), missing)
    if is_a.is_date(kind):
        values, kind = values.cast(arrow.timestamp("s" if is_a.is_date32(kind) else "ms")), None
        kind = values.type
    if is_a.is_timestamp(kind):
        filled = _to_numpy(values.cast(arrow.int64()).fill_null(0))
        return _times(name, filled.view(f"datetime64[{kind.unit}]"), missing)
    if is_a.is_fixed_size_list(kind) or is_a.is_list(kind) or is_a.is_large_list(kind):
        return _lists(name, values, missing)
    if is_a.is_boolean(kind):
        return _of_numpy(name, _to_numpy(values.fill_null(False)), missing)
    if is_a.is_integer(kind):
        return _of_numpy(name, _to_numpy(values.fill_null(0)), missing)
    if is_a.is_floating(kind):
        return _of_numpy(name, _to_numpy(values), missing)
    raise TypeError(f"{name!r} is of Arrow's type {kind}: give numbers, bools, texts, times or lists of numbers")


def _of_dictionary(name: str, values: Any) -> Column:
    """Reads a pyarrow.DictionaryArray."""
    missing = _to_numpy(values.is_null()) if values.null_count else None
    known = _of_arrow(name, values.dictionary)
    if not len(known.values):  # nothing but nulls
        return Column(name, [""] * len(values) if known.type == "text" else np.zeros(len(values), known.array.dtype), missing,
                      known.type)
    column = known.take(_to_numpy(values.indices.fill_null(0)))
    if missing is not None:
        column = replace(column, missing=missing if column.missing is None else missing | column.missing)
    return column


def _to_numpy(values: Any) -> np.ndarray:
    return np.asarray(values.to_numpy() if hasattr(values, "chunks") else values.to_numpy(zero_copy_only=False))


def _lists(name: str, values: Any, missing: np.ndarray | None) -> Column:
    """Reads lists of one length as a matrix."""
    import pyarrow as arrow

    parts = values.chunks if hasattr(values, "chunks") else [values]
    flat = arrow.chunked_array([part.drop_null().flatten() for part in parts], type=values.type.value_type)
    count = len(values) - int(values.null_count)
    width = len(flat) // count if count else 0
    if any(length != width for part in parts for length in arrow.compute.list_value_length(part.drop_null()).unique().to_pylist()):
        raise ValueError(f"{name!r} has lists of several lengths: an array has rows of one width")
    column = column_of(name, flat)
    if isinstance(column.values, list):
        raise TypeError(f"{name!r} has lists of texts, which no array can hold")
    whole = np.zeros((len(values), width), column.values.dtype)
    there = np.ones(len(values), bool) if missing is None else ~missing
    whole[there] = column.values.reshape(count, width)
    mask = None
    if missing is not None or column.missing is not None:
        mask = np.ones(whole.shape, bool)
        mask[there] = False if column.missing is None else column.missing.reshape(count, width)
    return Column(name, whole, mask, column.type)


def _of_numpy(name: str, array: np.ndarray, missing: np.ndarray | None) -> Column:
    if missing is not None and not missing.any():
        missing = None
    if dtype_name(array.dtype) == "bfloat16":
        return Column(name, array, missing)
    if array.dtype.kind in _PLAIN_KINDS:
        return Column(name, array.astype(array.dtype.newbyteorder("="), copy=False), missing)
    if array.dtype.kind == "M":
        return _times(name, array, missing)
    if array.dtype.kind in "UT":
        return _texts(name, array.tolist(), missing)
    if array.dtype.kind == "O" and array.ndim == 1:
        return _of_objects(name, array.tolist(), missing)
    raise TypeError(f"{name!r} is of {array.dtype}: give numbers, bools, texts or times (datetime64)")


def _of_objects(name: str, values: list[Any], missing: np.ndarray | None) -> Column:
    """Reads objects of one kind, with None, NaN or NA where nothing is."""
    empty = np.array([_is_nothing(value) for value in values], bool)
    missing = empty if missing is None else missing | empty
    there = [value for value, gone in zip(values, missing) if not gone]
    if all(isinstance(value, str) for value in there):
        return _texts(name, values, missing)
    if all(isinstance(value, np.datetime64) for value in there):
        nothing = np.datetime64("NaT")
        return _times(name, np.array([nothing if gone else value for value, gone in zip(values, missing)]), missing)
    for kinds, fill, dtype in (((bool, np.bool_), False, np.bool_), (numbers.Integral, 0, np.int64),
                               (numbers.Real, np.nan, np.float64), (datetime.datetime, None, None),
                               (datetime.date, None, None)):
        if all(isinstance(value, kinds) for value in there):
            break
    else:
        return _of_rows(name, values, missing, there)
    if fill is None:
        return _of_dates(name, values, missing)
    filled = [fill if gone else value for value, gone in zip(values, missing)]
    try:
        array = np.array(filled, dtype)
    except OverflowError:
        raise ValueError(f"{name!r} has integers beyond int64") from None
    for row, value in enumerate(filled if dtype is np.float64 else ()):
        if isinstance(value, numbers.Integral) and int(array[row]) != int(value):
            raise ValueError(f"{name!r}: row {row}: {value} is no float64, and the column has floats too")
    return _of_numpy(name, array, missing)


def _of_rows(name: str, values: list[Any], missing: np.ndarray, there: list[Any]) -> Column:
    """Reads rows that are arrays or lists of numbers."""
    lengths = {len(value) if isinstance(value, (list, tuple, np.ndarray)) else -1 for value in there}
    if len(lengths) == 1 and -1 not in lengths:
        whole = np.array(there)
        if whole.ndim == 2 and whole.dtype.kind in _PLAIN_KINDS:
            rows = np.zeros((len(values), whole.shape[1]), whole.dtype)
            rows[~missing] = whole
            return _of_numpy(name, rows, np.repeat(missing[:, None], whole.shape[1], axis=1))
    kinds = sorted({type(value).__name__ for value in there})
    raise TypeError(f"{name!r} has values of {', '.join(kinds)}: a column has numbers, bools, texts or times, of one kind")


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, (float, np.floating)) and value != value) or \
        type(value).__name__ in ("NAType", "NaTType")


def _of_dates(name: str, values: list[Any], missing: np.ndarray) -> Column:
    zone = datetime.timezone.utc
    plain = [value.astimezone(zone).replace(tzinfo=None) if getattr(value, "tzinfo", None) else value for value in values]
    filled = [None if gone else value for value, gone in zip(plain, missing)]
    return _times(name, np.array(filled, "datetime64[us]"), missing)


def _texts(name: str, values: list[Any], missing: np.ndarray | None) -> Column:
    if missing is not None and missing.any():
        values = ["" if gone else value for value, gone in zip(values, missing)]
    else:
        missing = None
    return Column(name, [as_text(value, f"a value of {name!r}") for value in values], missing, "text")


def _times(name: str, times: np.ndarray, missing: np.ndarray | None) -> Column:
    """Converts times to microseconds. Errors: ValueError, a time with nanoseconds, or beyond int64."""
    nothing = np.isnat(times)
    if nothing.any():
        missing = nothing if missing is None else missing | nothing
    given = times if missing is None else np.where(missing, np.datetime64(0, "s").astype(times.dtype), times)
    micros = given.astype("datetime64[us]")
    lost = np.flatnonzero(micros.astype(times.dtype).reshape(-1) != given.reshape(-1))
    if len(lost):
        row = int(lost[0]) // max(times.size // max(len(times), 1), 1)
        raise ValueError(f"{name!r}: row {row}: {given.reshape(-1)[lost[0]]} is no whole number of microseconds in int64, "
                         "in which times are stored: round the column first, or give its numbers as int64")
    return Column(name, micros.view(np.int64), missing, "timestamp")
