"""What the tests of rhizome.pyg share: the package as built, and PyG, without which there is nothing to test."""
import os
import sys
import warnings

from package import FOLDER

warnings.simplefilter("ignore", FutureWarning)
try:
    import torch
    import torch_geometric
except (ImportError, OSError) as error:
    print(f"torch or torch_geometric does not import ({error}): nothing is tested. Make a venv with both, and run this "
          f"by its Python.")
    sys.exit(77)

os.environ["PYTHONPATH"] = str(FOLDER)  # for workers that are spawned
torch.set_num_threads(1)
print("torch", torch.__version__, "torch_geometric", torch_geometric.__version__)
