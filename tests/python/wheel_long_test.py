#!/usr/bin/env python3
"""The wheels as users get them. They are built by tools/wheel.sh and, installed in an empty
environment, pass the package's tests; the sdist builds with pyproject.toml alone; rhizome-store-gnn
enables training with the installed program; and the adapters' tests pass beside any torch of an
environment.

    wheel_long_test.py [--made] [PYTHON ...]

PYTHON: interpreters of environments with torch and torch_geometric (or dgl), of any releases;
nothing is installed there. --made: the wheels are in build/wheel/dist already.
"""
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
        "--wheel-dir", folder, the("rhizome_store-*.tar.gz"), env={**os.environ, "CXX": "g++"})
    assert list(folder.glob("rhizome_store-*-cp310-abi3-linux_*.whl")), list(folder.iterdir())


def test_gnn(bin, packages, folder):
    """The program of the one wheel finds the library of the other, and that one libtorch, which is not installed
    again: 2 GB and more."""
    run(bin / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
        the("rhizome_store_gnn-*.whl"))
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


#: torch before the package; the tests import them in the other order.
TORCH_FIRST = """
import sys, tempfile
sys.path[:0] = sys.argv[1:]
import cpu_torch
with tempfile.TemporaryDirectory() as folder:
    torch = cpu_torch.import_torch(folder)
import rhizome as rz
print("torch", torch.__version__, "NumPy", rz._graph.np.__version__, "Python", sys.version.split()[0])
"""


def test_torch(python, folder):
    """The wheel beside the torch of another environment: the tests of rhizome.pyg and rhizome.graphbolt."""
    run(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--target",
        folder / "python", the("rhizome_store-*.whl"), "nanobind-backend")
    (folder / "bin").mkdir()
    (folder / "bin/rhizome").symlink_to(folder / "python/rhizome/bin/rhizome")
    env = {**os.environ, "RHIZOME_BUILD": str(folder), "RHIZOME": str(folder / "bin/rhizome")}
    run(python, "-c", TORCH_FIRST, SOURCE / "tests/python", folder / "python", env=env)
    done = 0
    for test in ("pyg_loaders_test.py", "pyg_infer_test.py", "graphbolt_test.py"):
        status = subprocess.run([python, SOURCE / "tests/python" / test], env=env, check=False).returncode
        assert status in (0, 77), (python, test, status)
        done += status == 0
    assert done, f"{python}: torch, or what the tests need beside it, does not import"


def main():
    words = sys.argv[1:]
    if "--made" in words:
        words.remove("--made")
    else:
        run(SOURCE / "tools/wheel.sh", "rhizome", "gnn")
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        bin, packages = clean_venv(folder / "venv", the("rhizome_store-*.whl"))
        for test, *about in ((test_package, bin, packages), (test_gnn, bin, packages), (test_sdist,)):
            (folder / test.__name__).mkdir()
            test(*about, folder / test.__name__)
            print("ok", test.__name__, flush=True)
        for number, python in enumerate(words):
            (folder / f"torch-{number}").mkdir()
            test_torch(python, folder / f"torch-{number}")
            print("ok test_torch", python, flush=True)


if __name__ == "__main__":
    main()
