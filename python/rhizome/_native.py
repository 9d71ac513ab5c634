"""Training, inference and imports by the engine itself: commands of the command line, run as child processes.

This keeps libtorch out of the caller's process, which may use another version of it.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import tempfile
from typing import Any

from . import _spelling, errors
from ._types import PathLike, Progress, as_path
from .cli import program

_LOG = logging.getLogger("rhizome")


def train(store: PathLike, *, progress: Progress | None = None, **options: Any) -> dict[str, Any]:
    """Trains a model of the engine on a store, out of core, and returns the output of ``rhizome train --json``.

        rz.train("g.rz", model="sage", layers=2, fanout=[10, 10], epochs=5, memory="512M", out="g.safetensors")

    ``options``: options of the command line (docs/CLI.md) with ``_`` for ``-`` (``lr``, ``batch_size``); a list is
    joined by commas, True is a flag without a value, None and False omit an option. ``rhizome models`` lists the models
    with their options.
    ``progress``: called with (phase, done, total). Notes of the command line are logged as warnings of ``rhizome``.
    Requires the wheel ``rhizome-gnn``, or a build with libtorch.
    Ctrl-C raises KeyboardInterrupt after the child has ended; ``out`` then contains the best weights so far.
    Errors: InvalidArgument, an unknown option or an invalid value; Unsupported, no rhizome-gnn; any error of ``rhizome
    train``.
    """
    return _run("train", [as_path(store)], options, progress)


def infer(store: PathLike, *, progress: Progress | None = None, **options: Any) -> dict[str, Any]:
    """Computes the embedding of every vertex with a model written by ``train``, and stores them as an array.

        rz.infer("g.rz", model_file="g.safetensors", out="emb", new_version=True, live=True, memory="512M")

    The computation proceeds layer by layer, within ``memory``. ``resume=True`` continues the work of a killed run.
    ``at=graph.point`` computes on the state that ``graph`` holds, instead of the last commit. Returns the output of
    ``rhizome infer --json``. ``options``, ``progress`` and errors: as for ``train``. Open graphs see the array after
    ``refresh()``.
    """
    return _run("infer", [as_path(store)], options, progress)


def import_(name: str, store: PathLike, *, progress: Progress | None = None, **options: Any) -> dict[str, Any]:
    """Creates a store from a known data set, or from one in a known layout.

        rz.import_("ogb", "arxiv.rz", from_="ogbn_arxiv")

    ``name``: "wordnet", "ogb" or "graphbolt". ``options``: options of ``rhizome import``. Returns its ``--json``
    output. ``progress`` and errors: as for ``train``, except that rhizome-gnn is not needed.
    """
    return _run("import", [name, as_path(store)], options, progress)


def _flags(options: dict[str, Any]) -> list[str]:
    """Options as ``--set name=value``, which the command line accepts for usual options and for expert settings."""
    flags = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        if value is True:
            text = "true"
        elif isinstance(value, (list, tuple)):
            text = ",".join(map(str, value))
        else:
            text = os.fsdecode(value) if isinstance(value, os.PathLike) else str(value)
        flags += ["--set", f"{name.rstrip('_').replace('_', '-')}={text}"]
    return flags


def _run(verb: str, arguments: list[str], options: dict[str, Any], progress: Progress | None) -> dict[str, Any]:
    command = [str(program()), verb, *arguments, *_flags(options), "--json", "--progress", "json", "--keep-fields"]
    with tempfile.TemporaryFile("w+") as told:
        # A separate session: Ctrl-C on a terminal reaches only this process, which forwards it.
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
        for name in ("ignored", "warnings"):
            if name in answer:
                answer[name] = [_spelling.of_command(text) for text in answer[name]]
        return dict(answer)
    error = answer.get("error")
    if error is None:
        raise errors.InvalidArgument(_spelling.of_command(said) or f"rhizome {verb} ended with {child.returncode}")
    raise errors._of_code(error["code"], _spelling.of_command(error["message"]), "store")


def _follow(child: subprocess.Popen[str], progress: Progress | None) -> str:
    """Forwards the progress reports and notes of a child; returns its remaining output."""
    said = []
    assert child.stderr is not None
    for line in child.stderr:
        report = _report(line)
        if report is not None:
            if progress:
                progress(report["phase"], report["done"], report["total"])
        elif line.startswith("note: "):
            _LOG.warning("%s", _spelling.of_command(line.strip().removeprefix("note: ")))
        else:
            said.append(line.strip())
    return " ".join(said)


def _report(line: str) -> dict[str, Any] | None:
    try:
        report = json.loads(line)
    except ValueError:
        return None
    return report if isinstance(report, dict) and "phase" in report else None
