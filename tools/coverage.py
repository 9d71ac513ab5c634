"""Reports line and branch coverage from the output of `llvm-cov export` (tools/coverage.sh).

usage: coverage.py files EXPORT.json FOLDER...      lines and branches of each file in the folders
       coverage.py parsers EXPORT.json TARGET COVERS EXCEPT LEAST
           lines of the files COVERS (a,b,c), without functions whose names match EXCEPT; exit code 1
           if less than LEAST per cent of the lines of any file ran
"""

import json
import os
import re
import sys


BUILD = os.path.abspath("build/coverage")


def load(path):
    """The export, its paths made absolute: the compiler was called in the build folder."""
    with open(path) as file:
        data = json.load(file)["data"][0]
    for file in data["files"]:
        file["filename"] = absolute(file["filename"])
    for function in data["functions"]:
        function["filenames"] = [absolute(name) for name in function["filenames"]]
    return data


def absolute(path):
    return os.path.normpath(os.path.join(BUILD, path))


def relative(path):
    return os.path.relpath(path, os.getcwd())


def percent(part, whole):
    return 100.0 * part / whole if whole else 100.0


def lines_of(file):
    """Line -> did it run, from the segments [line, column, count, has_count, is_entry, is_gap]."""
    ran = {}
    segments = file["segments"]
    for i, (line, _, count, has_count, _, is_gap) in enumerate(segments):
        last = segments[i + 1][0] if i + 1 < len(segments) else line
        ends_at_start = i + 1 < len(segments) and segments[i + 1][1] <= 1
        for n in range(line, last if ends_at_start and last > line else last + 1):
            if has_count and not is_gap:
                ran[n] = ran.get(n, False) or count > 0
    return ran


def functions_of(data, path):
    """(first line, last line, name, regions' highest count) of each function in a file."""
    for function in data["functions"]:
        if function["filenames"][0] == path and function["regions"]:
            region = function["regions"][0]
            yield region[0], region[2], function["name"], function["count"]


def report_files(export, folders):
    data = load(export)
    total = {folder: [0, 0, 0, 0] for folder in folders}
    rows = []
    for file in data["files"]:
        name = relative(file["filename"])
        folder = name.split("/")[0]
        if folder not in total or "/" not in name:
            continue
        lines, branches = file["summary"]["lines"], file["summary"]["branches"]
        counts = [lines["covered"], lines["count"], branches["covered"], branches["count"]]
        total[folder] = [a + b for a, b in zip(total[folder], counts)]
        rows.append((name, counts))
    for name, c in sorted(rows, key=lambda row: percent(row[1][0], row[1][1])):
        print(f"{name:44} lines {c[0]:5}/{c[1]:5} {percent(c[0], c[1]):6.1f} %"
              f"   branches {c[2]:5}/{c[3]:5} {percent(c[2], c[3]):6.1f} %")
    for folder, c in total.items():
        print(f"COVERAGE {folder} lines {percent(c[0], c[1]):.1f} % ({c[0]} of {c[1]}), "
              f"branches {percent(c[2], c[3]):.1f} % ({c[2]} of {c[3]})")


def report_parsers(export, target, covers, excepted, least):
    data = load(export)
    low = False
    for name in covers.split(","):
        path = os.path.abspath(name)
        file = next((f for f in data["files"] if f["filename"] == path), None)
        if file is None:
            print(f"{target}: {name} is in no binary")
            low = True
            continue
        ran = lines_of(file)
        for first, last, function, _ in functions_of(data, path):
            if excepted and re.search(excepted, function):
                for n in range(first, last + 1):
                    ran.pop(n, None)
        missed = sorted(n for n, did in ran.items() if not did)
        share = percent(len(ran) - len(missed), len(ran))
        low = low or share < least
        shown = " ".join(map(str, missed[:40])) + (" ..." if len(missed) > 40 else "")
        print(f"{target:22} {name:36} {len(ran) - len(missed):4}/{len(ran):4} {share:6.1f} %"
              f"{'  not: ' + shown if missed else ''}")
    return 1 if low else 0


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] == "files":
        report_files(sys.argv[2], sys.argv[3:])
    elif len(sys.argv) == 7 and sys.argv[1] == "parsers":
        sys.exit(report_parsers(*sys.argv[2:6], float(sys.argv[6])))
    else:
        sys.exit(__doc__)
