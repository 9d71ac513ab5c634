#!/usr/bin/env python3
"""The chapter "A store of three vertices" of storage/FORMAT.md shows the actual bytes of that
store.

Runs the two commands of the chapter, parses the bytes that it prints, and compares them with the
files.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

RHIZOME = os.environ["RHIZOME"]
PAGE = pathlib.Path(os.environ["RHIZOME_SOURCE"]) / "storage/FORMAT.md"
LINE = re.compile(r" {4,}(\d+)  ((?:[0-9a-f]{2} )*[0-9a-f]{2}(?: x\d+)?)(?:  .*)?")


def chapter():
    text = PAGE.read_text().split("\n## A store of three vertices\n")[1].split("\n## ")[0]
    intro, *files = re.split(r"^### (.*)$", text, flags=re.M)
    return intro, dict(zip(files[::2], files[1::2]))


def bytes_of(name, text):
    """What the lines of a file add up to; each offset has to be where the line before ends."""
    data = b""
    for line in text.split("\n"):
        found = LINE.fullmatch(line)
        if not found:
            assert not line.startswith("    "), f"{name}: cannot read the line {line!r}"
            continue
        assert int(found[1]) == len(data), f"{name}: offset {found[1]} comes after {len(data)} bytes"
        byte, times = re.fullmatch(r"(.*?)(?: x(\d+))?", found[2]).groups()
        data += bytes.fromhex(byte) * int(times or 1)
    return data


def compare(name, told, there):
    for at, (a, b) in enumerate(zip(told, there)):
        if a != b:
            sys.exit(f"{name}, offset {at}: FORMAT.md says {a:02x}, the store has {b:02x}")
    assert len(told) == len(there), f"{name}: FORMAT.md has {len(told)} bytes, the store {len(there)}"


def left_out(path):
    return path.name in ("LOCK", "PIN", "zarr.json") or "catalog" in path.parts


def main():
    intro, files = chapter()
    commands = "\n".join(line.strip() for line in intro.split("\n") if line.startswith("    "))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["bash", "-ec", f'rhizome() {{ "{RHIZOME}" "$@"; }}\n{commands}'], cwd=folder,
                       check=True, stdout=subprocess.DEVNULL)
        store = pathlib.Path(folder) / "three.rz"
        there = {str(p.relative_to(store)): p for p in store.rglob("*") if p.is_file()}
        assert set(files) == {n for n, p in there.items() if not left_out(p.relative_to(store))}, there
        for name, text in files.items():
            compare(name, bytes_of(name, text), there[name].read_bytes())
    print("the three vertices of FORMAT.md:", ", ".join(files))


if __name__ == "__main__":
    main()
