#!/usr/bin/env python3
"""The examples of README.md, docs/PYTHON.md and docs/ECOSYSTEM.md run unchanged and do what their comments say.

Examples that need further libraries are marked (```python needs=pyarrow). They are skipped only if
one of these libraries is not installed; if all are, they must import, and the example must run.
"""
import importlib
import importlib.util
import os
import pathlib
import re

import cpu_torch
from package import FOLDER, folder, np

SOURCE = pathlib.Path(os.environ["RHIZOME_SOURCE"])


def imports(needs, stand_ins):
    """Imports all libraries of a list "a,b"; returns whether all are installed, and says which one is not."""
    names = list(filter(None, needs.split(",")))
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    # Where torch is, the examples of its users must run.
    assert "torch_geometric" not in missing or importlib.util.find_spec("torch") is None, \
        f"torch is installed and torch_geometric is not: an example that needs {needs} would not be run"
    if missing:
        print(f"skipped: an example that needs {needs}, for {', '.join(missing)} is not installed")
        return False
    for name in names:
        if name == "torch":
            cpu_torch.import_torch(stand_ins)
        importlib.import_module(name)
    return True


def main():
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(FOLDER), os.environ.get("PYTHONPATH"))))  # for workers
    with folder() as stand_ins:
        for page in ("README.md", "docs/PYTHON.md", "docs/ECOSYSTEM.md"):
            text = (SOURCE / page).read_text()
            found = re.findall(r"^```python(?: needs=(\S+))?\n(.*?)^```$", text, re.M | re.S)
            assert found and len(found) == len(re.findall("^ *```python", text, re.M)), f"{page}: an example is not run"
            blocks = [block for needs, block in found if imports(needs, stand_ins)]
            names = {"np": np, "__name__": "__main__"}  # workers get functions of it by value
            with folder() as path:
                os.chdir(path)
                for block in blocks:
                    exec(compile(block, page, "exec"), names)  # pylint: disable=exec-used
                if page == "README.md":
                    assert names["rows"].shape == (3, 64) and names["sub"].vertices[:3].tolist() == [7, 8, 9]
                for thing in names.values():
                    if type(thing).__name__ == "Graph":
                        thing.close()
                os.chdir(SOURCE)
            print("ok", page, len(blocks), "of", len(found), "examples")


if __name__ == "__main__":
    main()
