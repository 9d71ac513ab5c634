#!/usr/bin/env python3
"""The wheels as a user meets them: made by tools/wheel.sh, installed where nothing else is, they pass the tests of the
package; the sdist builds by what pyproject.toml alone says; rhizome-gnn lets the installed program train."""
import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["RHIZOME_SOURCE"])
DIST = SOURCE / "build/wheel/dist"
TESTS = sorted((SOURCE / "tests/python").glob("package_*_test.py")) + [SOURCE / "tests/python/package_test.py"]


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def the(pattern):
    (path,) = DIST.glob(pattern)
    return path


def clean_venv(folder, *wheels):
    """Makes an environment of `wheels` and what they ask for; returns its programs and its packages."""
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *wheels)
    (packages,) = folder.glob("lib/python*/site-packages")
    return folder / "bin", packages


def test_package(bin, packages, folder):
    """The tests of the package find it in a build folder: one whose package is what pip installed."""
    (folder / "bin").mkdir()
    (folder / "bin/rhizome").symlink_to(packages / "rhizome/bin/rhizome")
    (folder / "python").symlink_to(packages)
    env = {**os.environ, "RHIZOME_BUILD": str(folder), "RHIZOME": str(bin / "rhizome")}
    for test in TESTS:
        if "_ci_" not in test.name:  # those need more than the package does
            run(bin / "python", test, env=env)


def test_sdist(folder):
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin/python", "-m", "pip", "wheel", "-q", "--no-deps", "--disable-pip-version-check",
        "--wheel-dir", folder, the("rhizome-*.tar.gz"), env={**os.environ, "CXX": "g++"})
    assert list(folder.glob("rhizome-*-cp310-abi3-linux_*.whl")), list(folder.iterdir())


def test_gnn(bin, packages, folder):
    """The program of the one wheel finds the library of the other, and that one libtorch, which is not installed
    again: 2 GB and more."""
    run(bin / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
        the("rhizome_gnn-*.whl"))
    (libraries,) = glob.glob(str(SOURCE / "build/venv/lib/python*/site-packages"))
    for name in ("torch", "nvidia"):
        (packages / name).symlink_to(pathlib.Path(libraries) / name)
    env = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}

    def rhizome(*words):
        return run(bin / "rhizome", *words, env=env, cwd=folder, stdout=subprocess.PIPE, text=True).stdout

    rhizome("generate", "planted", "--out", "in", "--scale", "10", "--dim", "8")
    rhizome("ingest", "g.rz", "--edges", "in/edges.npy", "--nodes", "in/nodes.tsv", "--node-columns", "id,label,split",
            "--array", "feat=in/features.npy")
    trained = json.loads(rhizome("train", "g.rz", "--epochs", "20", "--fanout", "5,5", "--hidden", "16", "--json",
                                 "--out", "m.safetensors"))
    rhizome("infer", "g.rz", "--model-file", "m.safetensors", "--out", "emb")
    code = "import rhizome as rz; print(rz.open('g.rz')['emb'][[1, 2]].shape)"
    told = run(bin / "python", "-c", code, env=env, cwd=folder, stdout=subprocess.PIPE, text=True).stdout
    assert trained["mean"]["accuracy"] > 2 / 8 and told == "(2, 16)\n", (trained, told)


def main():
    run(SOURCE / "tools/wheel.sh", "rhizome", "gnn")
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        bin, packages = clean_venv(folder / "venv", the("rhizome-*.whl"))
        for test, *about in ((test_package, bin, packages), (test_gnn, bin, packages), (test_sdist,)):
            (folder / test.__name__).mkdir()
            test(*about, folder / test.__name__)
            print("ok", test.__name__, flush=True)


if __name__ == "__main__":
    main()
