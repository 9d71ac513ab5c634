#!/usr/bin/env python3
"""The model in docs/MODELS.md is the one that is built, and it has at most 60 lines."""

import os
import pathlib
import re
import sys

source = pathlib.Path(os.environ["RHIZOME_SOURCE"])
shown = re.search(r"```cpp\n(.*?)```", (source / "docs/MODELS.md").read_text(), re.S)
built = (source / "gnn/models/kind_gin.cc").read_text()
if shown is None or shown.group(1) != built:
    sys.exit("docs/MODELS.md does not show gnn/models/kind_gin.cc as it is: copy it there")
if len(built.splitlines()) > 60:
    sys.exit(f"gnn/models/kind_gin.cc has {len(built.splitlines())} lines; it is to be short: 60")
