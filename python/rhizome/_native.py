"""Training, inference and imports by the engine itself: verbs of the command line, run as child processes.

So libtorch is never in the process of the caller, who may have another release of it.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import tempfile
from typing import Any

from . import errors
from ._types import PathLike, Progress, as_path
from .cli import program

_LOG = logging.getLogger("rhizome")


def train(store: PathLike, *, progress: Progress | None = None, **options: Any) -> dict[str, Any]:
    """Trains a network of the engine on a store, out of core, and returns what ``rhizome train --json`` says.

        rz.train("g.rz", model="sage", layers=2, fanout=[10, 10], epochs=5, memory="512M", out="g.safetensors")

    ``options``: those of the command line (docs/CLI.md) with ``_`` for ``-`` (``lr``, ``batch_size``); a list is joined by commas, True is a flag
    without a value, None and False leave an option out. ``rhizome models`` lists the networks with their options.
    ``progress``: called with (phase, done, total). What the command line notes is logged as warnings of ``rhizome``.
    Needs the wheel ``rhizome-gnn``, or a build with libtorch.
    Ctrl-C raises KeyboardInterrupt when the child has ended; the best weights so far are in ``out`` then.
    Errors: InvalidArgument, an option that there is not, or a value that it has not; Unsupported, no rhizome-gnn; those
    of ``rhizome train``.
    """
    return _run("train", [as_path(store)], options, progress)


def infer(store: PathLike, *, progress: Progress | None = None, **options: Any) -> dict[str, Any]:
    """Computes the embedding of every vertex by a model that ``train`` wrote, and stores them as an array.

        rz.infer("g.rz", model_file="g.safetensors", out="emb", new_version=True, live=True, memory="512M")

    Layer by layer, within ``memory``; ``resume=True`` goes on with what a run that was killed has left. ``at=graph.point``
    computes on the state that ``graph`` holds, instead of the last commit. Returns what ``rhizome infer --json`` says. ``options``, ``progress`` and errors: as ``train``. Graphs that are open see the array
    after ``refresh()``.
    """
    return _run("infer", [as_path(store)], options, progress)


def import_(name: str, store: PathLike, *, progress: Progress | None = None, **options: Any) -> dict[str, Any]:
    """Makes a store of a known data set, or of one in a known layout, from where it lies.

        rz.import_("ogb", "arxiv.rz", from_="ogbn_arxiv")

    ``name``: "wordnet", "ogb" or "graphbolt". ``options``: those of ``rhizome import``. Returns what it says with
    ``--json``. ``progress`` and errors: as ``train``, but for rhizome-gnn, which it does not need.
    """
    return _run("import", [name, as_path(store)], options, progress)


def _flags(options: dict[str, Any]) -> list[str]:
    flags = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            flags.append(flag)
        elif isinstance(value, (list, tuple)):
            flags += [flag, ",".join(map(str, value))]
        else:
            flags += [flag, os.fsdecode(value) if isinstance(value, os.PathLike) else str(value)]
    return flags


def _run(verb: str, arguments: list[str], options: dict[str, Any], progress: Progress | None) -> dict[str, Any]:
    command = [str(program()), verb, *arguments, *_flags(options), "--json", "--progress", "json"]
    with tempfile.TemporaryFile("w+") as told:
        # A session of its own: Ctrl-C on a terminal reaches this process alone, which passes it on.
        with subprocess.Popen(command, stdout=told, stderr=subprocess.PIPE, text=True, start_new_session=True) as child:
            try:
                said = _follow(child, progress)
            except BaseException:
                child.send_signal(signal.SIGINT)
                child.communicate()
                raise
        told.seek(0)
        answer = json.loads(told.read() or "{}")
    if child.returncode == 0:
        return dict(answer)
    error = answer.get("error")
    if error is None:
        raise errors.InvalidArgument(said or f"rhizome {verb} ended with {child.returncode}")
    raise errors._of_code(error["code"], error["message"], "store")


def _follow(child: subprocess.Popen[str], progress: Progress | None) -> str:
    """Passes on what a child reports; returns what else it says."""
    said = []
    assert child.stderr is not None
    for line in child.stderr:
        report = _report(line)
        if report is not None:
            if progress:
                progress(report["phase"], report["done"], report["total"])
        elif line.startswith("note: "):
            _LOG.warning("%s", line.strip().removeprefix("note: "))
        else:
            said.append(line.strip())
    return " ".join(said)


def _report(line: str) -> dict[str, Any] | None:
    try:
        report = json.loads(line)
    except ValueError:
        return None
    return report if isinstance(report, dict) and "phase" in report else None
