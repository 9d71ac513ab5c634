"""The command line ``rhizome``: where the program is that the package holds."""

from __future__ import annotations

import pathlib


def program() -> pathlib.Path:
    """Returns the path of the program, which may be run as it is."""
    return pathlib.Path(__file__).parent / "bin" / "rhizome"
