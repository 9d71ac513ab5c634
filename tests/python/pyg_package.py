"""Shared by the tests of rhizome.pyg: the package as built, and PyG. Without PyG the tests are
skipped."""
import atexit
import importlib.util
import os
import pathlib
import shutil
import sys
import tempfile
import warnings

import cpu_torch
from package import FOLDER

warnings.simplefilter("ignore", FutureWarning)


def import_torch():
    """Imports torch, with stand-ins for those of its CUDA libraries that are not there; spawned workers find them, too."""
    if importlib.util.find_spec("torch") is None:
        raise ImportError("No module named 'torch'")
    folder = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    imported = cpu_torch.import_torch(folder)
    if (folder / "librhizome_stand_ins.so").exists():
        os.environ["LD_LIBRARY_PATH"] = str(folder)
        os.environ["LD_PRELOAD"] = str(folder / "librhizome_stand_ins.so")
    return imported


try:
    torch = import_torch()
    import torch_geometric
except (ImportError, OSError, AttributeError) as error:
    print(f"torch or torch_geometric does not import ({error}): nothing is tested. Make a venv with both, and run this "
          f"by its Python.")
    sys.exit(77)

os.environ["PYTHONPATH"] = str(FOLDER)  # for workers that are spawned
torch.set_num_threads(1)
print("torch", torch.__version__, "torch_geometric", torch_geometric.__version__)
