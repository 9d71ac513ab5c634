"""Makes `import torch` work with the wheel that tools/install_deps.sh installs without its CUDA
libraries.

libtorch_cpu.so, which Rhizome links, needs none of these libraries (gigabytes), but the Python
binding loads them all, although no code on a CPU calls them. Missing ones are replaced by libraries
of the same names whose functions end the process, so that a call of one cannot go unnoticed.
"""
import collections
import ctypes
import importlib.util
import os
import pathlib
import re
import subprocess


def lines_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def wanted_of(library):
    """Returns the CUDA libraries that it needs, and its undefined symbols by version."""
    told = lines_of("objdump", "-p", library)
    needed = set(re.findall(r"NEEDED\s+(lib(?:cu|nv|nccl)\S+)", told))
    files = {version: name for name, block in re.findall(r"required from (\S+):\n((?:\s+0x.*\n)+)", told)
             for version in re.findall(r"\s(\S+)\n", block)}
    symbols = collections.defaultdict(set)
    for symbol in re.findall(r"^\s+U (\S+)$", lines_of("nm", "-D", "--undefined-only", library), re.M):
        name, _, version = symbol.replace("@@", "@").partition("@")
        if version in files:
            symbols[files[version], version].add(name)
        elif re.match("cu[A-Z]|cu[a-z]+[A-Z]|nccl|nvrtc|nvshmem", name):
            symbols[None, None].add(name)
    return needed, symbols


def compile_stand_in(folder, name, symbols):
    """symbols: pairs of a version (None: of none) and names."""
    source, script = folder / f"{name}.c", folder / f"{name}.map"
    source.write_text("#include <stdlib.h>\n" + "".join(
        f"void {symbol}(void) {{ abort(); }}\n" for _, names in symbols for symbol in sorted(names)))
    script.write_text("".join(f"{version} {{ global: {'; '.join(sorted(names))}; }};\n"
                              for version, names in symbols if version))
    versions = [f"-Wl,--version-script={script}"] if script.stat().st_size else []
    subprocess.run(["cc", "-w", "-fno-builtin", "-shared", "-fPIC", f"-Wl,-soname,{name}", *versions, "-o",
                    folder / name, source], check=True)
    ctypes.CDLL(folder / name, mode=ctypes.RTLD_GLOBAL)


def load_stand_ins(folder):
    libraries = pathlib.Path(importlib.util.find_spec("torch").submodule_search_locations[0], "lib")
    needed, symbols = set(), collections.defaultdict(set)
    for library in libraries.glob("lib*.so"):
        its_needed, its_symbols = wanted_of(library)
        needed |= its_needed
        for key, names in its_symbols.items():
            symbols[key] |= names
    wheels = [libraries, *libraries.parents[1].glob("nvidia/*/lib")]
    missing = sorted(name for name in needed if not any((folder / name).exists() for folder in wheels))
    for name in missing:
        its = [(version, names) for (file, version), names in symbols.items() if file == name]
        compile_stand_in(folder, name, its)
    if missing:  # symbols without a version are found in any library
        compile_stand_in(folder, "librhizome_stand_ins.so", [(None, symbols[None, None])])


def import_torch(folder):
    load_stand_ins(pathlib.Path(folder))
    import torch
    return torch
