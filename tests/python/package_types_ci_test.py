#!/usr/bin/env python3
"""Type checkers accept the package `rhizome`, the stubs of its module, and the examples of
docs/PYTHON.md. They reject options that `train`, `infer` and `import_` do not have.

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

# Each line that ends in "# wrong" is an error, and no other line.
VERBS = """\
import pathlib
import rhizome as rz
rz.train("g.rz", model="gat", heads=2, fanout=[10, "all"], lr=1, memory="512M", norm="layer", out=pathlib.Path("g"))
rz.train("g.rz", fanout=5, superbatch="auto", class_weights="balanced", resume=True, patience=None)
rz.train("g.rz", features={"paper": "feat", "venue": None})
rz.train("g.rz", features={"paper": 3})  # wrong
rz.train("g.rz", epoch=5)  # wrong
rz.train("g.rz", optimizer="adm")  # wrong
rz.train("g.rz", epochs="5")  # wrong
rz.train("g.rz", superbatch="all")  # wrong
rz.train("g.rz", "out")  # wrong
with rz.open("g.rz") as graph:
    rz.infer("g.rz", model_file="g", out="emb", at=graph.point, codec="zstd:9", cache="cached-first")
rz.infer("g.rz", out="emb")  # wrong
rz.infer("g.rz", model_file="g", out="emb", live="yes")  # wrong
rz.import_("ogb", "g.rz", from_="ogbn_arxiv", homes="edgecut", partitions=4)
rz.import_("obg", "g.rz")  # wrong
"""


def check_verbs(folder):
    """Compares the lines that mypy rejects with those that are wrong."""
    (folder / "verbs.py").write_text(VERBS)
    said = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "verbs.py"], cwd=folder,
                          text=True, capture_output=True).stdout
    found = {int(line) for line in re.findall(r"(?m)^verbs\.py:(\d+): error: ", said)}
    wrong = {number for number, line in enumerate(VERBS.split("\n"), 1) if line.endswith("# wrong")}
    assert found == wrong, said


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
        check_verbs(path)


if __name__ == "__main__":
    main()
