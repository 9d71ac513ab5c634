#!/usr/bin/env python3
"""Runs the package's tests with a module built with the address sanitizer, and checks reference
counts over 100,000 calls of each kind.

Python is not built with sanitizers, so their library is loaded before it.

    sanitized_long_test.py [TEST ...]
"""
import os
import pathlib
import subprocess
import sys
import time

SOURCE, BUILD = pathlib.Path(os.environ["RHIZOME_SOURCE"]), pathlib.Path(os.environ["RHIZOME_BUILD"])
TARGET = "rhizome_python_sanitized"
#: Python leaves much in memory when it ends, so leaks are looked for by counting (package_reads_test).
OPTIONS = "detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=1"


def tests():
    folder = SOURCE / "tests/python"
    found = [folder / "package_test.py", *sorted(folder.glob("package_*_test.py"))]
    return [pathlib.Path(name) for name in sys.argv[1:]] or [test for test in found if "_ci_" not in test.name]


def library(name):
    """Returns the path of one of the compiler's libraries."""
    return subprocess.run(["g++", f"-print-file-name={name}"], check=True, text=True, capture_output=True).stdout.strip()


def main():
    targets = subprocess.run(["ninja", "-C", BUILD, "-t", "targets", "all"], check=True, text=True, capture_output=True)
    if TARGET not in targets.stdout:
        print("the Python module is not built here, or not by GCC: nothing to test")
        sys.exit(77)
    subprocess.run(["ninja", "-C", BUILD, TARGET], check=True, stdout=subprocess.DEVNULL)
    # The C++ library comes with it: the sanitizer looks for the function that throws when it starts.
    env = {**os.environ, "RHIZOME_BUILD": str(BUILD / "sanitized"), "ASAN_OPTIONS": OPTIONS, "RHIZOME_CALLS": "100000",
           "LD_PRELOAD": f"{library('libasan.so')} {library('libstdc++.so.6')}", "PYTHONMALLOC": "malloc"}
    failed = []
    for test in tests():
        begun = time.monotonic()
        run = subprocess.run([sys.executable, "-X", "dev", test], env=env, check=False)
        print(f"{test.name}: {run.returncode} after {time.monotonic() - begun:.0f} s", flush=True)
        if run.returncode not in (0, 77):
            failed.append(test.name)
    assert not failed, failed


if __name__ == "__main__":
    main()
