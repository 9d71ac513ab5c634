#!/usr/bin/env python3
"""A build says first how long it takes, and then how many objects of all are built: to the terminal of pip, and to
whoever runs tools/wheel.sh."""
import os
import pathlib
import pty
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["RHIZOME_SOURCE"])
FOLDER = SOURCE / "tools/backend"
sys.path.insert(0, str(FOLDER))

import build_progress  # noqa: E402

BACKEND = """
import subprocess, sys
def build_wheel(folder, config_settings=None, metadata_directory=None):
    subprocess.run(["printf", "configure\\n[1/4] a.cc\\n[2/4] b.cc\\n[4/4] end\\n"], check=True)
    print("a line of Python", flush=True)
    if config_settings:
        raise ValueError("no compiler")
    return "made.whl"
def build_editable(*arguments, **options):
    raise NotImplementedError
def build_sdist(folder, config_settings=None):
    return "made.tar.gz"
def get_requires_for_build_wheel(config_settings=None):
    return ["ninja"]
"""

USE = """
import os, sys
sys.path[:0] = sys.argv[1:3]
import rhizome_backend
assert rhizome_backend.build_sdist(".") == "made.tar.gz" and rhizome_backend.get_requires_for_build_wheel() == ["ninja"]
print(rhizome_backend.build_wheel("."), flush=True)
try:
    rhizome_backend.build_wheel(".", {"fail": "1"})
except ValueError as error:
    print(error, flush=True)
"""
PRINTED = "configure\n[1/4] a.cc\n[2/4] b.cc\n[4/4] end\na line of Python\n"


def test_lines():
    said, now = [], [0.0]
    progress = build_progress.Progress(said.append, lambda: now[0], cores=2)
    progress.begin()
    assert said == [f"the engine is compiled: about {round(build_progress.OBJECTS * build_progress.SECONDS_PER_OBJECT / 120)} "
                    "minutes on 2 cores"]
    for second, text in ((0, "-- Configuring done"), (10, "[1/101] Building CXX object a.cc"), (11, "[2/101] b"), (70, "[26/101] c"),
                         (72, "[27/101] d"), (73, "[101/101] Linking")):
        now[0] = second
        progress.line(text)
    assert said[1:] == ["1 of 101 objects built", "26 of 101 objects built, about 3 minutes left", "101 of 101 objects built"]


def test_filter():
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log")
        done = subprocess.run([sys.executable, FOLDER / "build_progress.py", log], input=PRINTED, text=True, check=True,
                              stdout=subprocess.PIPE)
        assert log.read_text() == PRINTED
        assert done.stdout == "  1 of 4 objects built\n  4 of 4 objects built\n"


def on_a_terminal(command, printed, env):
    """Runs a command whose terminal is a new one; returns what it showed there."""
    child, terminal = pty.fork()
    if child == 0:
        os.dup2(os.open(printed, os.O_WRONLY | os.O_CREAT), 1)
        os.execve(command[0], command, env)
    shown = b""
    while True:
        try:
            block = os.read(terminal, 4096)
        except OSError:  # Linux says so at the end
            break
        if not block:
            break
        shown += block
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, shown
    return shown.decode().replace("\r", "")


def test_backend():
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        package = folder / "scikit_build_core"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "build.py").write_text(BACKEND)
        command = [sys.executable, "-c", USE, str(FOLDER), path]
        env = {**os.environ, "RHIZOME_PROGRESS": ""}
        shown = on_a_terminal(command, folder / "printed", env)
        assert (folder / "printed").read_text() == PRINTED + "made.whl\n" + PRINTED + "no compiler\n"
        lines = shown.splitlines()
        assert len(lines) == 6 and "minute" in lines[0] and lines[1] == "rhizome: 1 of 4 objects built", shown
        assert lines[2] == "rhizome: 4 of 4 objects built" and lines[3:] == lines[:3], shown
        assert on_a_terminal(command, folder / "again", {**env, "RHIZOME_PROGRESS": "0"}) == ""
        assert (folder / "again").read_text() == (folder / "printed").read_text()
        # Without a terminal: as scikit-build-core alone.
        done = subprocess.run(command, env=env, text=True, check=True, stdout=subprocess.PIPE, start_new_session=True)
        assert done.stdout == (folder / "printed").read_text()


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("ok", name, flush=True)
