#!/usr/bin/env python3
"""The examples of README.md and docs/PYTHON.md run as they stand, and do what their comments say.

Those that need further libraries are marked so (```python needs=pyarrow), and run where these are there.
"""
import importlib
import os
import pathlib
import re

from package import folder, np

SOURCE = pathlib.Path(os.environ["RHIZOME_SOURCE"])


def is_there(needs):
    """Whether all libraries of a list "a,b" can be imported; says which one cannot."""
    for name in filter(None, needs.split(",")):
        try:
            importlib.import_module(name)
        except (ImportError, OSError):
            print(f"skipped: an example that needs {name}")
            return False
    return True


def main():
    for page in ("README.md", "docs/PYTHON.md"):
        found = re.findall(r"^```python(?: needs=(\S+))?\n(.*?)^```$", (SOURCE / page).read_text(), re.M | re.S)
        assert found, page
        blocks = [block for needs, block in found if is_there(needs)]
        names = {"np": np}
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
        print("ok", page, len(blocks), "examples")


if __name__ == "__main__":
    main()
