#!/usr/bin/env python3
"""Type checkers accept the package `rhizome`, the stubs of its module, and the examples of
docs/PYTHON.md.

Modules that depend on torch are excluded, because they have no types for PyTorch Geometric and
GraphBolt.
"""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

from package import FOLDER, folder

ON_TORCH = re.compile(r"^(import|from) (torch|dgl)", re.M)
SOURCE = pathlib.Path(os.environ["RHIZOME_SOURCE"])


def main():
    if importlib.util.find_spec("mypy") is None:
        print("skipped: no mypy here")
        sys.exit(77)
    blocks = re.findall(r"^```python\n(.*?)^```$", (SOURCE / "docs/PYTHON.md").read_text(), re.M | re.S)
    assert blocks
    with folder() as path:
        (path / "rhizome").mkdir()
        for file in (FOLDER / "rhizome").iterdir():
            if file.suffix in (".py", ".pyi", ".typed"):
                shutil.copy(file, path / "rhizome")
        (path / "examples.py").write_text("\n".join(blocks))
        checked = [file for file in sorted(path.glob("rhizome/*.py*")) if not ON_TORCH.search(file.read_text())]
        assert path / "rhizome/_graph.py" in checked and path / "rhizome/_core.pyi" in checked
        subprocess.run([sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--follow-imports=silent",
                        *checked, "examples.py"], cwd=path, check=True)


if __name__ == "__main__":
    main()
