#!/usr/bin/env python3
"""Writes the diagram of layers and modules into README.md and docs/DESIGN.md, from the files */modules.cmake.

usage: tools/layers_page.py [--check]     --check changes nothing, and exits with 1 if a page is out of date

The diagram replaces the text between the lines BEGIN and END of each page. DESCRIPTION of a layer is its last column.
"""
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/DESIGN.md")
ORDER = ("python", "tools", "gnn", "cuda", "cache", "index", "storage")  # from the highest to the lowest
BEGIN, END = "<!-- tools/layers_page.py writes this diagram. -->\n", "<!-- End of the diagram. -->\n"
MODULES_WIDTH, DESCRIPTION_WIDTH = 68, 36


def layers():
    """The modules and the description of each layer."""
    text = "".join((ROOT / layer / "modules.cmake").read_text() for layer in ORDER if layer != "python")
    for name, words in re.findall(r"\bset\((\w+)\s+([^()]*)\)", text):
        text = text.replace("${%s}" % name, words)
    found = {}
    for name, arguments in re.findall(r"^ *rhizome_layer\((\w+)\s([^()]*)\)", text, re.M):
        modules = re.search(r"\bMODULES\s+([a-z_\s]+?)\s+[A-Z]", arguments)
        found[name] = (modules[1].split() if modules else [], re.search(r'DESCRIPTION "([^"]*)"', arguments)[1])
    modules = re.search(r"foreach\(module ([\w ]+)\)\s*rhizome_tools_module\(\$\{module\}", text)[1].split()
    found["tools"] = (modules, "the command line; also bench and mpi")
    found["python"] = (["src", "rhizome"], "bindings, and the package")
    return found


def diagram():
    lines = []
    found = layers()
    for name in ORDER:
        modules, description = found[name]
        left = textwrap.wrap(" › ".join(modules), MODULES_WIDTH)
        right = textwrap.wrap(description, DESCRIPTION_WIDTH)
        for i in range(max(len(left), len(right))):
            cells = (name if i == 0 else "", left[i] if i < len(left) else "", right[i] if i < len(right) else "")
            lines.append(f"    {cells[0]:8} {cells[1]:{MODULES_WIDTH}}  {cells[2]}".rstrip())
    return "\n" + "\n".join(lines) + "\n\n"


def main():
    stale = []
    for page in PAGES:
        text = (ROOT / page).read_text()
        before, rest = text.split(BEGIN)
        after = rest.split(END)[1]
        wanted = before + BEGIN + diagram() + END + after
        if wanted != text:
            stale.append(page)
            if "--check" not in sys.argv[1:]:
                (ROOT / page).write_text(wanted)
    if "--check" in sys.argv[1:] and stale:
        print(f"{' and '.join(stale)}: the diagram of layers is out of date: run tools/layers_page.py", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
