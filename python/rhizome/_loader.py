"""Minibatches with features, prefetched by the engine: a loader for graphs whose features exceed memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from . import _core
from ._graph import Graph
from ._repr import Box, as_html, boxed, shown
from ._sampler import sampler_arguments
from ._types import Direction, SplitName, as_array, as_bytes, as_count, as_integers, as_split, as_text, as_vertex_ids
from .errors import Error


#: The maximum world_size.
_MOST_RANKS = 1 << 20


class LentRows:
    """Feature rows in the loader's cache, without a copy (``zero_copy=True``): row i is ``table[place[i]]``.

    They keep the loader alive and occupy its memory until no array refers to them. Other rows of the table are
    undefined and may change. ``numpy.asarray(rows)`` copies.
    """

    __slots__ = ("place", "table")

    def __init__(self, table: np.ndarray, place: np.ndarray) -> None:
        self.table = table  #: [rows of the cache, dim], not writable
        self.place = place  #: int64 [n]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.place), self.table.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.table.dtype

    def __len__(self) -> int:
        return len(self.place)

    def __getitem__(self, rows: Any) -> np.ndarray:
        """Copies some of the rows: an int, a slice, or an array of indices or bools."""
        picked: np.ndarray = np.take(self.table, self.place[rows], axis=0)
        return picked

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("borrowed rows are not contiguous: an array of them is a copy")
        rows = self[:]
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        """Copies the rows, like ``numpy.asarray``, for ``torch.as_tensor`` and others."""
        return np.asarray(self).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns the device of host memory."""
        return 1, 0


class Minibatch(NamedTuple):
    """A sampled subgraph with its features. Its vertices are numbered from 0, starting with the seeds in their given
    order."""

    vertices: np.ndarray  #: vertex ids by number, int64 [n]
    edge_index: np.ndarray  #: int64 [2, edges] of numbers: the sampled neighbour, and the vertex it was sampled for
    x: Any  #: the row of each vertex, an array (or LentRows) [n, dim], float16 as the array, otherwise float32; with
    #: arrays by vertex type a dict: for each type with an array, the rows of its vertices, in the order of ``vertices``
    y: Any  #: the labels of the seeds, an array int64 [batch_size]; None: not requested
    batch_size: int  #: number of seeds
    hops: np.ndarray  #: number of vertices found in each hop, starting with the seeds, int64 [hops + 1]
    edge_hops: np.ndarray  #: number of edges sampled in each hop, int64 [hops]
    types: np.ndarray | None  #: edge types as indices of ``graph.edge_types``, uint16 [edges]; None: one type
    weights: np.ndarray | None  #: float32 [edges]; None: the graph has no weights
    edge_ids: np.ndarray | None  #: edge numbers, for ``loader.graph.edge_rows``, int64 [edges]; None: not requested
    seed_of: np.ndarray | None  #: if disjoint, for each vertex the number of its seed, int64 [n]; else None
    seed_times: np.ndarray | None  #: times of the seeds, int64 [batch_size], if samples are temporal; else None
    vertex_types: np.ndarray | None  #: indices of ``graph.vertex_types``, uint16 [n], with arrays by type; None: one type
    pairs: np.ndarray | None  #: the edges to learn as numbers of seeds, int64 [m, 2]; None: not requested
    pair_types: np.ndarray | None  #: their edge types, uint16 [m]; None: not requested
    negatives: np.ndarray | None  #: numbers of seeds that replace the source (0) or the destination (1) of each pair,
    #: int64 [2, m, negatives]; None: not requested
    epoch: int  #: from 0
    number: int  #: within the epoch, from 0
    tag: int  #: ``graph.sampler(...).sample(vertices[:batch_size], tag, seed_times)`` returns the same subgraph

    def __repr__(self) -> str:
        return boxed(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    def _box(self) -> Box:
        return Box("rhizome.Minibatch", [(name, shown(field)) for name, field in self._asdict().items() if field is not None])


class LoaderMemory(NamedTuple):
    """How a loader divides its memory, in bytes, as estimated from its first minibatch."""

    held: int  #: seeds, labels, tables of the sampler
    working: int  #: minibatches, rows outside the cache, read buffers, checksums
    schedules: int  #: schedules of the current superbatch and the next one
    cache: int  #: cached feature rows
    neighbor_cache: int  #: neighbour lists, if they are on disk
    total: int
    superbatch: int  #: number of minibatches that are sampled and scheduled together
    caches: dict[str, int]  #: the part of ``cache`` of each array, if there are several


class LoaderReport(NamedTuple):
    """Counts and times of the current epoch."""

    epoch: int
    minibatches: int  #: minibatches delivered
    seeds: int  #: seeds of these minibatches
    wait_seconds: float  #: time that the caller waited for minibatches
    sample_seconds: float  #: time of the loader's threads, like the following ones
    schedule_seconds: float
    switch_seconds: float
    gather_seconds: float
    update_seconds: float
    rows_requested: int
    rows_read: int  #: rows that were missing in the cache, or prefetched into it before their superbatch
    pool_hits: int  #: rows that were in the cache when their minibatch began, including prefetched ones
    rows_kept: int
    bytes_read: int
    reads_issued: int
    reads: dict[str, dict[str, int]]  #: rows_requested to reads_issued of each array, if there are several


class Loader:
    """Minibatches of sampled subgraphs with their features, for graphs whose features exceed memory.

        loader = rz.Loader(g, [10, 10], features="feat", labels="label", split="train", memory="1536M")
        for epoch in range(10):
            for batch in loader:
                ...  # batch.x, batch.edge_index, batch.y

    A ``for`` loop is one epoch. Many minibatches are sampled ahead, so that the row cache knows future requests
    (Belady's rule), and their rows are read while the caller computes. No worker processes are needed.

    Minibatch k of epoch e depends on the graph at the time of the loader's creation, on the seeds, ``batch_size``,
    ``shuffle``, ``drop_last``, ``seed``, the rank and the sampling options. It does not depend on memory, policy or
    threads, nor on earlier requests.

    Distributed training: each of ``world_size`` processes opens the store and creates a loader with the same arguments
    except for ``rank``. All ranks have the same number of minibatches, which together form the epoch of a single
    loader: minibatch i of rank r is its minibatch ``i * world_size + r``, as long as there are ``batch_size`` seeds for
    each rank. The remaining seeds are divided evenly, or dropped with ``drop_last``.

    Threads: not thread-safe. A child created by fork cannot use the loader: open the store and create a loader there.
    """

    def __init__(self, graph: Graph, fanouts: Sequence[int] | Mapping[str, Sequence[int]], *,
                 features: str | Mapping[str, str | None], labels: str | None = None, seeds: Any = None, split: SplitName | None = None,
                 split_array: str = "split", pairs: Any = None, negatives: int = 0,
                 negative_sources: Sequence[str] | str = "uniform", keep_seed_edges: bool = False, batch_size: int = 1000, shuffle: bool = True, drop_last: bool = False,
                 rank: int = 0, world_size: int = 1, epochs: int | None = None, memory: int | str = "1G", policy: str = "belady",
                 superbatch: int | None = None, normalize: bool = False, zero_copy: bool = False,
                 direction: Direction = "in", replace: bool = False, weighted: bool = False, disjoint: bool = False,
                 again: bool = False, edge_ids: bool = False, meta_path: Sequence[str] = (), times: str | None = None,
                 vertex_times: str | None = None, seed_times: Any = None, pick: Literal["uniform", "last"] = "uniform",
                 seed: int = 1, threads: int = 1) -> None:
        """Creates a loader of the graph in its current state, and starts to prepare its first minibatches.

        ``features``: the array of rows, of numbers or bool, of layout "row"; all types but float16 are converted to
        float32. Or arrays by vertex type, such as ``{"paper": "feat", "author": "author_feat", "venue": None}``: ``x`` is
        then a dict by type, and the memory of the cache is divided among the arrays so that the fewest bytes are read.
        None: no features. A type that is not named gets the only array of floats that is bound to it, else the array of
        floats that all types have ("feat" if there are several), else none; see ``features``. ``normalize``: divide each row by the sum of its absolute values, in float32. ``labels``: an array with
        one column of integers; every seed must have a label.
        ``seeds``: vertex ids [n], distinct (or a bool mask); or ``split``: the vertices of that set of ``split_array``.
        ``pairs``: instead, edges to learn: vertex ids [m, 2]; [m, 3] with indices of ``graph.edge_types``; or tuples (source,
        destination, name of the edge type). An epoch visits each once, and ``batch_size`` counts them. The seeds are the
        ends and the negatives (``Minibatch.pairs``). The edges between the ends of a minibatch's pairs are left out of its
        subgraph, in both directions and of any type, unless ``keep_seed_edges``. ``negatives``: the number of vertices
        that replace each end of each pair; they have its type. ``negative_sources``: where they come from, with shares:
        uniform, degree^ALPHA, in-batch, such as ["uniform:.5", "degree^.75"].
        ``batch_size``: seeds per minibatch; ``drop_last``: drop a minibatch that has fewer; ``shuffle``: use a new
        order in each epoch, determined by ``seed``, else the given order. ``rank``, ``world_size``: the number of this
        loader, and the number of loaders.
        ``epochs``: number of epochs; None: unknown. In that case the loader prepares some unneeded minibatches.
        ``memory``: maximum memory of the loader, in addition to the open graph and the objects that the caller keeps,
        in bytes or as a text such as "1536M"; 0: no limit. ``policy``: cache policy. ``superbatch``: number of
        minibatches to schedule together; None: chosen automatically.
        ``zero_copy``: ``x`` is not copied (LentRows).
        ``times``: an int64 attribute of edges: no edge is sampled that is later than its seed; requires ``disjoint``.
        ``vertex_times``: instead, an array with one column: no neighbour is sampled that is later than its seed.
        ``seed_times``: the times of ``seeds``, int64 [n], or the name of an array with the time of each vertex as a
        seed. None: ``vertex_times``.
        ``fanouts``, ``direction`` ... ``threads``: as for ``Graph.sampler``, but with one hop at least.
        Errors: ValueError, a duplicate seed (named), options in conflict or out of range, too few seeds for
        ``world_size``, an unknown vertex type, an array of another type; IndexError, a seed of no vertex; NotFound, no such array; OutOfMemory, reporting the required
        size; Corruption; IoError.
        """
        if sum(given is not None for given in (seeds, split, pairs)) != 1:
            raise ValueError("give one of seeds, split and pairs")
        if policy not in _core.policies():
            raise ValueError(f"policy is {policy!r}, but must be one of {', '.join(_core.policies())}")
        arguments = _core.LoaderArguments()
        arguments.sampler = sampler_arguments(
            graph, fanouts, direction=direction, replace=replace, weighted=weighted, disjoint=disjoint, again=again,
            edge_ids=edge_ids, meta_path=meta_path, times=times, vertex_times=vertex_times, pick=pick, seed=seed,
            threads=threads)
        if not (arguments.sampler.fanouts or arguments.sampler.typed_fanouts):
            raise ValueError("no fanouts are given: a minibatch has one hop at least, such as fanouts=[10]; to read rows of vertices "
                             "alone, use graph[features][ids]")
        if isinstance(features, Mapping):
            arguments.inputs = _by_type(features)
        else:
            arguments.features = as_text(features, "features")
        arguments.normalize = bool(normalize)
        arguments.labels = as_text(labels, "labels") if labels else ""
        arguments.negatives = as_count(negatives, "negatives")
        arguments.negative_sources = (negative_sources if isinstance(negative_sources, str)
                                      else ",".join(as_text(one, "negative_sources") for one in negative_sources))
        arguments.keep_seed_edges = bool(keep_seed_edges)
        if pairs is not None:
            arguments.pairs = _pairs(graph, pairs)
        elif split is not None:
            arguments.split, arguments.set = as_text(split_array, "split_array"), as_split(split)
        else:
            arguments.seeds = as_vertex_ids(seeds, graph.vertex_bound).copy()  # used again by _open
            if not arguments.seeds.size:
                raise ValueError("there are no seeds")
        seed_times = vertex_times if seed_times is None else seed_times
        if isinstance(seed_times, str):
            arguments.seed_time_array = as_text(seed_times, "seed_times")
        elif seed_times is not None:
            arguments.seed_times = as_integers(seed_times, "seed_times").copy()
        arguments.batch_size = as_count(batch_size, "batch_size", least=1)
        arguments.shuffle = bool(shuffle)
        arguments.drop_last = bool(drop_last)
        if not as_count(rank, "rank") < as_count(world_size, "world_size", least=1) <= _MOST_RANKS:
            raise ValueError(f"rank {rank} of world_size {world_size}: ranks are numbered from 0, and there are at "
                             f"most {_MOST_RANKS}")
        arguments.rank, arguments.ranks = int(rank), int(world_size)
        arguments.epochs = 0 if epochs is None else as_count(epochs, "epochs", least=1)
        arguments.memory_bytes = as_bytes(memory)
        arguments.policy = policy
        arguments.superbatch = 0 if superbatch is None else as_count(superbatch, "superbatch", least=1)
        self._arguments = arguments
        self._zero_copy = bool(zero_copy)
        self._graph = graph.snapshot()
        self._path = graph.path
        self._core: _core.Loader | None = None
        self._report: dict[str, Any] | None = None  # of the loop that was left early last
        self._position = 0  # minibatches returned or skipped, over all epochs
        self._goes_on = True  # the next loop starts at the position, even within an epoch
        self._end_due = False  # the engine has yet to report the end of the epoch
        self._loops = 0  # number of loops started
        core = self._open()
        self._memory = LoaderMemory(**core.memory())
        self._seed_count = core.seed_count
        self._length = core.minibatches_of_epoch
        self._classes = core.classes
        self._inputs = {name: array or None for name, array in core.inputs}

    def __len__(self) -> int:
        """The number of minibatches per epoch of this rank."""
        return self._length

    @property
    def graph(self) -> Graph:
        """A snapshot of the graph at the time of the loader's creation; ``edge_ids`` of minibatches refer to it."""
        return self._graph

    @property
    def num_seeds(self) -> int:
        """The number of seeds, or of pairs, per epoch, over all ranks, before ``drop_last``."""
        return self._seed_count

    @property
    def num_classes(self) -> int:
        """1 + the maximum label of the array; 0: no labels."""
        return self._classes

    @property
    def features(self) -> str | dict[str, str | None]:
        """The array of features; with arrays by vertex type, the array of each type, defaults included."""
        return dict(self._inputs) or self._arguments.features

    @property
    def memory(self) -> LoaderMemory:
        """How the loader divides its memory."""
        return self._memory

    def report(self) -> LoaderReport:
        """Returns the counts and times of the current epoch, or of the last one if none is in progress."""
        if self._core is not None:
            return LoaderReport(**self._core.report())
        if self._report is not None:
            return LoaderReport(**self._report)
        return LoaderReport._make([self._position // self._length, *[0] * (len(LoaderReport._fields) - 2), {}])

    def state_dict(self) -> dict[str, int]:
        """Returns the number of delivered minibatches, for ``load_state_dict`` of a loader created with the same
        arguments.

        It is valid for any rank, because all ranks have the same number of minibatches.
        """
        return {"position": self._position, "minibatches_of_epoch": self._length, "world_size": self._arguments.ranks}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Moves to the position of another loader: the next loop yields the rest of that epoch, with the same
        minibatches.

        Errors: ValueError, that loader had a different number of minibatches per epoch, or a different world_size.
        """
        if state.get("world_size", 1) != self._arguments.ranks:
            raise ValueError(f"the state is from a loader with world_size {state.get('world_size', 1)}, but this one "
                             f"has {self._arguments.ranks}: they must be equal")
        if state["minibatches_of_epoch"] != self._length:
            raise ValueError(f"the state is from epochs with {state['minibatches_of_epoch']} minibatches, but these "
                             f"have {self._length}: create the loader with the same arguments")
        self._move(as_count(state["position"], "position"))

    def __iter__(self) -> Iterator[Minibatch]:
        """Starts an epoch, or continues one after load_state_dict.

        After a loop was left early, the loader stops, and the next loop starts the next epoch; this takes about as long as
        creating a loader.
        Errors: ValueError, all ``epochs`` are over. The loop raises errors of reading, and OutOfMemory if too many
        minibatches of ``zero_copy`` are kept. After such an error the next loop continues at the same minibatch.
        """
        if not self._goes_on and self._position % self._length:
            self._move(self._position + self._length - self._position % self._length)
        epochs = self._arguments.epochs
        if epochs and self._position >= epochs * self._length:
            raise ValueError(f"all of the loader's {epochs} epochs are over")
        core = self._open()
        if self._end_due:
            core.next(False)
        self._goes_on = self._end_due = False
        self._loops += 1
        return self._epoch(core, self._loops)

    __repr__ = boxed
    _repr_html_ = as_html

    def _box(self) -> Box:
        arguments = self._arguments
        epochs = f" of {arguments.epochs}" if arguments.epochs else ""
        kind = "seeds" if arguments.pairs is None else "pairs"
        return Box(f"rhizome.Loader of {self._path!r}", [
            ("features", self._shown_features()), (kind, f"{self.num_seeds:,}"),
            ("minibatches", f"{self._length:,} per epoch, of up to {arguments.batch_size:,} {kind}"),
            ("position", f"{self._position % self._length:,} in epoch {self._position // self._length}{epochs}"),
            ("memory", f"{self._memory.total / 2**20:,.0f} MiB")])

    def _shown_features(self) -> str:
        if not self._inputs:
            return self._arguments.features
        return ", ".join(f"{name}: {array or 'none'}" for name, array in self._inputs.items())

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a loader cannot be pickled: create it in the process that uses it")

    def _move(self, position: int) -> None:
        self._core, self._position, self._goes_on, self._end_due = None, position, True, False
        self._report = None

    def _open(self) -> _core.Loader:
        if self._core is None:
            self._arguments.first = self._position
            self._core = _core.Loader(self._graph._core, self._arguments)
        return self._core

    def _epoch(self, core: _core.Loader, loop: int) -> Iterator[Minibatch]:
        ended = False
        try:
            while loop == self._loops:
                try:
                    parts = core.next(self._zero_copy)
                except Error:
                    self._move(self._position)  # the engine's loader has ended
                    raise
                if self._is_ahead(parts):
                    self._move(self._position)
                    core = self._open()
                    self._goes_on = False
                elif parts is None:
                    self._end_due, ended = False, True
                    return
                else:
                    self._position += 1
                    self._end_due = self._position % self._length == 0
                    yield self._minibatch(parts)
            raise ValueError("another loop over this loader has started: only one can run at a time")
        finally:
            if not ended and not self._end_due and loop == self._loops:
                self._stop()

    def _stop(self) -> None:
        """Stops the engine's loader after a loop that was left early: its minibatches are of no use any more."""
        if self._core is None:
            return
        try:
            self._report = self._core.report()
        except (Error, ValueError):  # the graph was closed, or this is a forked child
            return
        self._core = None

    def _is_ahead(self, parts: tuple[Any, ...] | None) -> bool:
        """Returns whether the minibatch before this one was lost because Ctrl-C arrived while it was being returned."""
        if parts is None:
            return self._position % self._length != 0
        epoch, number = parts[-3:-1]
        return bool(epoch * self._length + number != self._position)

    def _minibatch(self, parts: tuple[Any, ...]) -> Minibatch:
        x = parts[2]
        if self._zero_copy:
            x = {name: LentRows(*rows) for name, rows in x.items()} if isinstance(x, dict) else LentRows(*x)
        return Minibatch._make([*parts[:2], x, *parts[3:]])


def _pairs(graph: Graph, pairs: Any) -> np.ndarray:
    """Returns pairs as int64 [m, 3]: vertex ids, and indices of edge types."""
    types = graph.edge_types
    if not isinstance(pairs, np.ndarray) and isinstance(pairs, Sequence):
        pairs = [[*pair[:2], _edge_type(types, pair[2])] if isinstance(pair, Sequence) and len(pair) == 3 else pair
                 for pair in pairs]
    array = as_array(pairs)
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise TypeError(f"pairs must be an array [m, 2] or [m, 3], not {list(array.shape)}")
    if not array.size:
        raise ValueError("there are no pairs")
    rows = np.zeros((len(array), 3), np.int64)
    rows[:, :array.shape[1]] = as_integers(array.reshape(-1), "pairs").reshape(array.shape)
    outside = np.flatnonzero(((rows[:, :2] < 0) | (rows[:, :2] >= graph.vertex_bound)).any(axis=1))
    if outside.size:
        raise IndexError(f"pair {outside[0]} is {rows[outside[0], :2].tolist()}: vertex ids are in [0, {graph.vertex_bound})")
    unknown = np.flatnonzero((rows[:, 2] < 0) | (rows[:, 2] >= max(len(types), 1)))
    if unknown.size:
        raise ValueError(f"pair {unknown[0]} has edge type {rows[unknown[0], 2]}, but the graph has {len(types)} edge types")
    return rows


def _edge_type(types: Sequence[str], name: Any) -> Any:
    """Returns the index of an edge type's name; other values are returned unchanged."""
    if not isinstance(name, str):
        return name
    if name not in types:
        raise ValueError(f"there is no edge type {name!r}; the graph has {', '.join(types)}")
    return types.index(name)


def _by_type(features: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """Returns pairs of a vertex type and its array; "" means none."""
    if not features:
        raise ValueError("features is an empty mapping: name an array for at least one vertex type")
    return [(as_text(name, "features"), "" if array is None else as_text(array, "features"))
            for name, array in features.items()]
