"""The command line ``rhizome``: location of the program in the package."""

from __future__ import annotations

import pathlib


def program() -> pathlib.Path:
    """Returns the path of the executable."""
    return pathlib.Path(__file__).parent / "bin" / "rhizome"
