"""The build backend of this project: scikit-build-core, with progress on the terminal.

pip hides what a build prints, and compiling the engine takes minutes. The progress therefore goes to the terminal
itself, if there is one; RHIZOME_PROGRESS=0 turns it off. Everything else is as without this module.
"""

import contextlib
import os
import threading

import build_progress
from scikit_build_core import build as backend
from scikit_build_core.build import *  # noqa: F403  # the other hooks of a backend


@contextlib.contextmanager
def _progress():
    """What the block prints, and what its child processes do, is also read for progress."""
    try:
        terminal = None if os.environ.get("RHIZOME_PROGRESS") == "0" else open("/dev/tty", "w", encoding="utf-8")
    except OSError:
        terminal = None
    if terminal is None:
        yield
        return
    progress = build_progress.Progress(lambda text: print(f"\rrhizome: {text}", file=terminal, flush=True))
    progress.begin()
    printed, write = os.pipe()
    before = os.dup(1)

    def copy():
        with os.fdopen(printed, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                os.write(before, line.encode())
                progress.line(line)

    thread = threading.Thread(target=copy, daemon=True)
    os.dup2(write, 1)
    os.close(write)
    thread.start()
    try:
        yield
    finally:
        os.dup2(before, 1)
        thread.join(5)  # what the build left running may hold the other end of the pipe
        os.close(before)
        terminal.close()


def build_wheel(*arguments, **options):
    with _progress():
        return backend.build_wheel(*arguments, **options)


def build_editable(*arguments, **options):
    with _progress():
        return backend.build_editable(*arguments, **options)
