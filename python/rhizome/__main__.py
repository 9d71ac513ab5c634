"""``python -m rhizome demo [FOLDER]`` shows the package on a small graph; other words are those of the command line."""

from __future__ import annotations

import os
import sys

from .cli import program


def main() -> None:
    """Runs the demo, or becomes the command line."""
    words = sys.argv[1:]
    if words[:1] == ["demo"]:
        from ._demo import main as demo

        sys.exit(demo(words[1:]))
    os.execv(program(), ["rhizome", *words])


if __name__ == "__main__":
    main()
