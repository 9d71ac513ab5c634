"""Verbs of the command line, run as child processes.

This keeps libtorch out of the caller's process, which may use another version of it. The functions of _verbs.py call
``run``.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from . import _spelling, errors
from ._types import Progress, as_path
from .cli import program

_LOG = logging.getLogger("rhizome")


def run(verb: str, arguments: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Runs a verb, and returns the output of its ``--json``.

    ``given``: the parameters of a function of _verbs.py by name: those in ``arguments``, which the verb expects without
    a name; ``progress``; and options. None and False omit an option, True is a flag, a list is joined by commas, and a
    dict becomes ``key=value,...`` with "none" for None.
    Errors: as for ``rhizome.train``.
    """
    options = dict(given)
    progress = options.pop("progress")
    words = [as_path(options.pop(name)) for name in arguments]
    return _run(verb, [*words, *_flags(options)], progress)


def _flags(options: Mapping[str, Any]) -> list[str]:
    """Options as ``--set name=value``, which the command line accepts for usual options and for expert settings."""
    flags = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        if value is True:
            text = "true"
        elif isinstance(value, Mapping):
            text = ",".join(f"{key}={'none' if one is None else one}" for key, one in value.items())
        elif isinstance(value, Sequence) and not isinstance(value, str):
            text = ",".join(map(str, value))
        else:
            text = os.fsdecode(value) if isinstance(value, os.PathLike) else str(value)
        flags += ["--set", f"{name.rstrip('_').replace('_', '-')}={text}"]
    return flags


def _run(verb: str, arguments: Sequence[str], progress: Progress | None) -> dict[str, Any]:
    command = [str(program()), verb, *arguments, "--json", "--progress", "json", "--keep-fields"]
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
