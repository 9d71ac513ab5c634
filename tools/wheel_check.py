#!/usr/bin/env python3
"""Checks the properties of a wheel. usage: wheel_check.py WHEEL BUILD     BUILD: the build folder of the wheel

Checks size, tags, exported symbols, instructions that not every processor supports, the stable ABI, licences, and
whether the wheel works in an otherwise empty environment. Prints each result; exit code 1 if a check fails.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
MOST_BYTES = 12_000_000
# Instructions beyond what every x86-64 has: those of AVX begin with v, the others have names.
NEWER = re.compile(
    r"v(?!err$|erw$|mcall$)[a-z0-9]+|andn|bextr|bls[ir]|blsmsk|bzhi|mulx|pdep|pext|rorx|s[ah]rx|shlx|movbe|popcnt"
    r"|crc32[bwlq]?|pshufb|palignr|p(min[su]d|max[su]d|minuw|maxuw|minsb|maxsb|mulld)|pcmp(eqq|gtq|[ei]str[im])"
    r"|p(ins|ext)r[bdq]|ptest|p?blend\w+|round[sp][sd]|pclmul\w+|aes\w+|sha\d\w+"
    r"|k(mov|and|or|xor|not|shift|test|unpck)\w+")
# The functions that may hold them, for they are called after a look at the processor: those of storage/base/nonzero.cc
# and storage/catalog/crc_shift.cc, and what is compiled for a width of vectors (cache/kernels/simd.h).
DISPATCHED = re.compile(r"\b(Avx2|Avx512)\b|::(Unpack|Pack)WholeGroup\(|::ProductByInstruction\(")


def run(*command, **options):
    command = [str(part) for part in command]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def exported(file):
    return {line.split()[-1] for line in run("nm", "-D", "--defined-only", file).splitlines()}


class Check:
    def __init__(self):
        self.failed = False

    def __call__(self, good, text):
        self.failed |= not good
        print(f"{'ok' if good else 'FAILED'}  {text}", flush=True)


def check_file(check, wheel, version):
    size = wheel.stat().st_size
    check(size <= MOST_BYTES, f"{wheel.name}: {size / 1e6:.1f} MB of at most {MOST_BYTES / 1e6:.0f}")
    tag = "py3-none" if "gnn" in wheel.name else "cp310-abi3"
    check(re.search(rf"-{version}-{tag}-manylinux_2_35_\w+\.whl$", wheel.name) is not None,
          f"its tags are {tag} and manylinux_2_35")


def elf_files(folder):
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]


def check_libraries(check, folder, build):
    """Nothing is looked for outside of the wheel and its neighbours; nothing but our own names is exported."""
    lost = [f"{file.relative_to(folder)}: {path}" for file in elf_files(folder)
            for path in re.findall(r"R(?:UN)?PATH.*\[(.*)\]", run("readelf", "-d", file))
            if any(part and not part.startswith("$ORIGIN") for part in path.split(":"))]
    check(not lost, f"paths of libraries begin at the file that needs them {lost or ''}")
    stripped = [str(file.relative_to(folder)) for file in elf_files(folder) if ".symtab" in run("readelf", "-SW", file)]
    check(not stripped, f"all is stripped {stripped or ''}")
    for module in folder.glob("rhizome/_core*.so"):
        check(exported(module) == {"PyInit__core"}, f"{module.name} exports what Python looks up")
    for library in [*folder.glob("rhizome/librhizome.so.*"), *folder.glob("rhizome_gnn/librhizome_gnn.so.*")]:
        names = exported(library)
        built = exported(build / "lib" / library.name)
        foreign = [name for name in names if "7rhizome" not in name and not name.startswith("rhizome_")]
        check(names == built and not foreign,
              f"{library.name} exports {len(names)} names, as it was built {foreign or ''}")
    told = run(SOURCE / "tests/tools/architecture/exports_test.sh",
               env={**os.environ, "RHIZOME_SOURCE": str(SOURCE), "RHIZOME_BUILD": str(build)})
    count = re.search(r"librhizome.so: .*", told)
    check(count is not None, f"they are those of the public headers: {count and count.group()}")


def newer_instructions(file):
    """Returns {function: one instruction that an old processor has not} of a file with its symbols."""
    found, function = {}, "?"
    for line in subprocess.Popen(["objdump", "-d", "-C", "--no-show-raw-insn", file], text=True,
                                 stdout=subprocess.PIPE).stdout:
        if line.endswith(">:\n"):
            function = line.split("<", 1)[1][:-3]
        elif (part := line.split("\t")) and len(part) > 1 and NEWER.fullmatch(part[1].split()[0]):
            found.setdefault(function, part[1].strip())
    return found


def check_instructions(check, build):
    """Old processors run it: newer instructions stand where the processor is asked first, and nowhere else."""
    libraries = {file.resolve() for file in build.glob("lib/lib*.so")}
    for file in [*sorted(libraries), build / "bin/rhizome", *build.glob("python/rhizome/_core*.so")]:
        if not file.exists():
            continue
        found = newer_instructions(file)
        wrong = {name: what for name, what in found.items() if not DISPATCHED.search(name)}
        check(not wrong,
              f"{file.name}: {len(found)} functions for newer processors, all chosen when it runs {wrong or ''}")
        if file.name.startswith("librhizome.so"):
            check(len(found) > 10, f"{file.name} has kernels for wide vectors")


def check_metadata(check, folder):
    (info,) = folder.glob("*.dist-info")
    named = set(re.findall(r"^License-File: (.*)$", (info / "METADATA").read_text(), re.M))
    there = {str(path.relative_to(info / "licenses")) for path in (info / "licenses").rglob("*") if path.is_file()}
    check(named == there and "LICENSE" in there, f"{len(there)} files of licences, each named by METADATA")
    bom = json.loads((info / "sboms/rhizome.cdx.json").read_text())
    libraries = {item["value"] for component in bom["components"] for item in component["properties"]
                 if item["name"] == "rhizome:library"}
    packed = {path.name for path in folder.glob("*.libs/*")}
    check(libraries == packed,
          f"the SBOM names all {len(packed)} libraries of others, and {len(bom['components'])} packages")
    without = [component["name"] for component in bom["components"]
               if f"vendored/{component['name']}.txt" not in there or not component["licenses"]]
    check(not without, f"each of them comes with its licence {without or ''}")


def check_stable_abi(check, wheel):
    done = subprocess.run(["abi3audit", "--strict", "--verbose", wheel], text=True, capture_output=True, check=False)
    check(done.returncode == 0, "abi3audit: " + (done.stdout + done.stderr).strip().splitlines()[-1])


USE = """
import importlib.metadata, sys
import numpy as np, rhizome as rz
heavy = {"torch", "pandas", "scipy", "pyarrow", "networkx", "torch_geometric"} & set(sys.modules)
assert not heavy, heavy
rz.ingest("g.rz", np.array([[0, 1, 2], [1, 2, 0]]), arrays={"feat": np.eye(3, dtype=np.float32)}, memory="1G")
with rz.open("g.rz") as g:
    assert np.array_equal(g["feat"][[2, 0]], np.eye(3)[[2, 0]]) and g.neighbors(1).ids.tolist() == [2]
assert rz.__version__ == importlib.metadata.version("rhizome-store")
print(rz.__version__)
"""


def check_use(check, wheel, python):
    """It works where nothing is installed but what it asks for."""
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        run(python, "-m", "venv", folder / "venv")
        bin = folder / "venv/bin"
        run(bin / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel)
        version = run(bin / "python", "-W", "error", "-c", USE, cwd=path).strip()
        told = run(bin / "rhizome", "--version").strip()
        read = run(bin / "rhizome", "info", "g.rz", cwd=path)
        check(told == f"rhizome {version}" and "feat" in read,
              f"{python}: import, ingest, read, and the command line: {told}")


def main(wheel, build):
    check = Check()
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        with zipfile.ZipFile(wheel) as file:
            file.extractall(folder)
        check_file(check, wheel, wheel.name.split("-")[1])
        check_libraries(check, folder, build)
        check_instructions(check, build)
        check_metadata(check, folder)
    if "gnn" not in wheel.name:
        check_stable_abi(check, wheel)
        for python in os.environ.get("RHIZOME_PYTHONS", sys.executable).split():
            check_use(check, wheel, python)
    sys.exit(check.failed)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*map(pathlib.Path, sys.argv[1:]))
