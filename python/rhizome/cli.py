"""The command line ``rhizome``: the program that the package holds, in place of this process."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn


def program() -> pathlib.Path:
    """Returns the path of the program, which may be run as it is."""
    return pathlib.Path(__file__).parent / "bin" / "rhizome"


def main() -> NoReturn:
    """Becomes the program, with this process's arguments."""
    os.execv(program(), ["rhizome", *sys.argv[1:]])
