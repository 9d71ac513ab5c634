#!/usr/bin/env python3
"""The package's own tests with a module and a library that the address sanitizer watches, and refcounts over 100,000
calls of each kind. Python knows nothing of sanitizers, so their library is loaded before it.

    sanitized_long_test.py [TEST ...]           # builds into RHIZOME_ASAN, or a folder that is removed; default: all tests
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ["RHIZOME_SOURCE"])
#: rz.train and others run a program with libtorch, which is not built here.
LEFT_OUT = {"package_native_test.py"}
#: Python leaves much in memory when it ends, so leaks are looked for by counting (package_reads_test).
OPTIONS = "detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=1:strict_string_checks=1"


def tests():
    if sys.argv[1:]:
        return [pathlib.Path(name) for name in sys.argv[1:]]
    folder = SOURCE / "tests/python"
    found = [folder / "package_test.py", *sorted(folder.glob("package_*_test.py"))]
    return [test for test in found if "_ci_" not in test.name and test.name not in LEFT_OUT]


def build(folder):
    begun = time.monotonic()
    subprocess.run(["cmake", "-G", "Ninja", "-S", SOURCE, "-B", folder, "-DCMAKE_CXX_COMPILER=g++",
                    "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG",
                    "-DRHIZOME_BATCHES=ON", "-DRHIZOME_SANITIZE=address", "-DRHIZOME_GNN=OFF", "-DRHIZOME_CUDA=OFF",
                    "-DRHIZOME_TESTS=OFF"], check=True, stdout=subprocess.DEVNULL)
    if "rhizome_python" not in subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], check=True, text=True,
                                              capture_output=True).stdout:
        print("nanobind or the headers of Python are missing (tools/install_deps.sh --tests): nothing to test")
        sys.exit(77)
    subprocess.run(["ninja", "-C", folder, "rhizome_python"], check=True, stdout=subprocess.DEVNULL)
    program = folder / "bin/rhizome"  # that of the build that this test is of
    program.parent.mkdir(exist_ok=True)
    program.unlink(missing_ok=True)
    program.symlink_to(os.environ["RHIZOME"])
    print(f"built in {time.monotonic() - begun:.0f} s", flush=True)


def library(name):
    """Returns the path of one of the compiler's libraries."""
    return subprocess.run(["g++", f"-print-file-name={name}"], check=True, text=True, capture_output=True).stdout.strip()


def main(folder):
    build(folder)
    # The C++ library comes with it: the sanitizer looks for the function that throws when it starts.
    env = {**os.environ, "RHIZOME_BUILD": str(folder), "ASAN_OPTIONS": OPTIONS,
           "LD_PRELOAD": f"{library('libasan.so')} {library('libstdc++.so.6')}", "RHIZOME_CALLS": "100000",
           "PYTHONMALLOC": "malloc"}
    failed = []
    for test in tests():
        begun = time.monotonic()
        run = subprocess.run([sys.executable, "-X", "dev", test], env=env, check=False)
        print(f"{test.name}: {run.returncode} after {time.monotonic() - begun:.0f} s", flush=True)
        if run.returncode:
            failed.append(test.name)
    assert not failed, failed


if __name__ == "__main__":
    if "RHIZOME_ASAN" in os.environ:
        main(pathlib.Path(os.environ["RHIZOME_ASAN"]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(pathlib.Path(made))
