#!/usr/bin/env python3
"""Generates the part of docs/CLI.md that consists of the output of `rhizome --help` and of each verb's --help.

usage: tools/cli_page.py [--check] [RHIZOME]     RHIZOME: default build/release/bin/rhizome

The text above the line MARK is written by hand and preserved. --check changes nothing, prints the
differences, and exits with 1 if there are any.
"""
import difflib
import os
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/CLI.md"
MARK = "<!-- Below this line the page is written by tools/cli_page.py: edit the help of the verb. -->"
# All verbs have these, and the page says so once. `bench` is another executable.
COMMON = ("  -h,--help ", "  --help-all ", "  --json ", "  --progress ", "  --log ")
LEFT_OUT = ("bench", "help", "completion")


def help_of(rhizome, words):
    """The complete help of a verb. That of one with verbs below it would contain theirs."""
    for flag in ("--help", "--help-all"):
        run = subprocess.run([rhizome, *words, flag], capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"{rhizome} {' '.join(words)} {flag}: {run.stderr}")
        if "\nSubcommands:\n" in run.stdout:
            break
    return run.stdout.rstrip("\n").split("\n")


def verbs_in(lines):
    """The names under "Subcommands:", in their order."""
    if "Subcommands:" not in lines:
        return []
    names = []
    for line in lines[lines.index("Subcommands:") + 1:]:
        if not line:
            break
        name = re.match(r"  (\S+)", line)
        if name and name[1] not in LEFT_OUT:
            names.append(name[1])
    return names


def section(words, lines):
    """A verb's help as a section: its first line is a sentence, the rest stands as it is printed."""
    kept = [line for line in lines[1:] if not line.startswith(COMMON)]
    text = re.sub(r"\nOptions:\n(?=\n|$)", "", "\n".join(kept)).strip("\n")
    return f"\n{'#' * (len(words) + 2)} rhizome {' '.join(words)}\n\n{lines[0]}.\n\n```text\n{text}\n```\n"


def sections(rhizome, words, lines):
    found = [section(words, lines)] if words else []
    for name in verbs_in(lines):
        deeper = [*words, name]
        found += sections(rhizome, deeper, help_of(rhizome, deeper))
    return found


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    rhizome = os.path.abspath(arguments[0] if arguments else PAGE.parent.parent / "build/release/bin/rhizome")
    there = PAGE.read_text()
    head, mark, _ = there.partition(MARK)
    if not mark:
        sys.exit(f"{PAGE}: the line that begins with '{MARK[:20]}' is gone")
    page = head + MARK + "\n" + "".join(sections(rhizome, [], help_of(rhizome, [])))
    if "--check" not in sys.argv:
        PAGE.write_text(page)
    elif page != there:
        sys.stdout.writelines(difflib.unified_diff(
            there.splitlines(True), page.splitlines(True), "docs/CLI.md", "what --help says"))
        sys.exit("docs/CLI.md is out of date; update it with tools/cli_page.py")


if __name__ == "__main__":
    main()
