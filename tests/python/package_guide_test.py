#!/usr/bin/env python3
"""The examples of README.md and docs/PYTHON.md run as they stand, and do what their comments say."""
import os
import pathlib
import re

from package import folder, np

SOURCE = pathlib.Path(os.environ["RHIZOME_SOURCE"])


def main():
    for page in ("README.md", "docs/PYTHON.md"):
        blocks = re.findall(r"^```python\n(.*?)^```$", (SOURCE / page).read_text(), re.M | re.S)
        assert blocks, page
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
