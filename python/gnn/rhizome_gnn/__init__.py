"""librhizome_gnn, the library with which the command line of the package rhizome trains and infers.

There is nothing to import: the program `rhizome`, which is a process of its own, finds the library in this
folder and libtorch in the package torch. A Python program starts it as a child (`rhizome.cli.program()`), and
may use any torch itself.
"""
