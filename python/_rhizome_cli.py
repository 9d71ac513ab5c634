"""The command `rhizome` as pip installs it: becomes the program that the package holds.

It stands beside the package, because whoever imports that one loads NumPy, which takes longer than most verbs.
"""

import os
import sys


def main():
    os.execv(os.path.join(os.path.dirname(__file__), "rhizome", "bin", "rhizome"), ["rhizome", *sys.argv[1:]])
