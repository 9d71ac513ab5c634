"""Samples of neighbourhoods, and the arguments of samplers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import _core
from ._repr import Box, as_html, boxed
from ._types import Direction, Subgraph, as_count, as_integers, as_names, as_text, as_threads
from .errors import NotFound

if TYPE_CHECKING:
    from ._graph import Graph


class Sampler:
    """Samples neighbourhoods; created by ``Graph.sampler``. Threads: may be used concurrently."""

    __slots__ = ("_arguments", "_core")

    def __init__(self, core: _core.Sampler, arguments: _core.SamplerArguments) -> None:
        self._core = core
        self._arguments = arguments

    __repr__ = boxed
    _repr_html_ = as_html

    def _box(self) -> Box:
        given = self._arguments
        flags = [name for name in ("replace", "weighted", "disjoint", "again", "induced", "edge_ids") if
                 getattr(given, name)]
        rows = [("fanouts", str(given.typed_fanouts or given.fanouts)), ("direction", given.direction),
                ("meta_path", ", ".join(given.meta_path)), ("options", ", ".join(flags)),
                ("times", given.times or given.vertex_times), ("seed", str(given.seed))]
        return Box("rhizome.Sampler", [(name, text) for name, text in rows if text])

    def sample(self, seeds: Any, batch: int = 0, times: Any = None) -> Subgraph:
        """Samples the subgraph of ``seeds``, vertex ids int64 [n]; a repeated seed occurs once, unless disjoint.

        ``batch`` selects the random numbers: the same seed, batch and graph give the same subgraph, for any number of
        threads. ``times``: times of the seeds, int64 [n]; required if the sampler has times, else not allowed.
        Errors: IndexError, a seed of no vertex; TypeError; InvalidArgument, the number of times differs from the number
        of seeds.
        """
        given = None if times is None else as_integers(times, "times")
        return Subgraph(*self._core.sample(seeds, as_count(batch, "batch"), given))


def sampler_arguments(graph: Graph, fanouts: Sequence[int] | Mapping[str, Sequence[int]], *, direction: Direction,
                       replace: bool, weighted: bool, disjoint: bool, again: bool, edge_ids: bool,
                       meta_path: Sequence[str], seed: int, threads: int, induced: bool = False,
                       times: str | None = None, vertex_times: str | None = None,
                       pick: Literal["uniform", "last"] = "uniform") -> _core.SamplerArguments:
    """Checks the arguments of ``Graph.sampler`` and converts them for the engine."""
    if pick not in ("uniform", "last"):
        raise ValueError(f"pick must be 'uniform' or 'last', not {pick!r}")
    arguments = _core.SamplerArguments()
    if isinstance(fanouts, Mapping):
        arguments.typed_fanouts = _typed_fanouts(fanouts, graph.edge_types)
    else:
        arguments.fanouts = _fanouts(fanouts)
    arguments.meta_path = as_names(meta_path, "meta_path")
    arguments.direction = as_text(direction, "direction")
    arguments.replace = bool(replace)
    arguments.weighted = bool(weighted)
    arguments.disjoint = bool(disjoint)
    arguments.again = bool(again)
    arguments.edge_ids = bool(edge_ids)
    arguments.induced = bool(induced)
    arguments.times = "" if times is None else as_text(times, "times")
    arguments.vertex_times = "" if vertex_times is None else as_text(vertex_times, "vertex_times")
    arguments.last = pick == "last"
    arguments.seed = as_count(seed, "seed")
    arguments.threads = as_threads(threads)
    return arguments


def _fanouts(fanouts: Sequence[int]) -> list[int]:
    if isinstance(fanouts, str) or not hasattr(fanouts, "__iter__"):
        raise TypeError(f"fanouts must be a list of int, such as [10, 10], or a dict of lists by edge type, not {fanouts!r}")
    return [as_count(fanout, "a fanout", least=-1) for fanout in fanouts]


def _typed_fanouts(fanouts: Mapping[str, Sequence[int]], types: list[str]) -> list[list[int]]:
    """Returns fanouts by hop and type, [hops, types]."""
    unknown = [name for name in fanouts if name not in types]
    if unknown:
        raise NotFound(f"no edge type {unknown[0]!r}; there are {', '.join(types)}")
    by_type = {name: _fanouts(of_hops) for name, of_hops in fanouts.items()}
    hops = {len(of_hops) for of_hops in by_type.values()}
    if len(hops) != 1:
        raise ValueError("fanouts by edge type must have the same number of hops")
    return [[by_type[name][hop] if name in by_type else 0 for name in types] for hop in range(hops.pop())]
