#!/usr/bin/env python3
"""What a machine can keep of the house: format, order of rooms, include rings, public headers, openings of comments.

usage: tests/tidy_test.py [--build FOLDER] [ROOT]    FOLDER: of a Ninja build, whose header checks are looked at
       tests/tidy_test.py --self-test                every check finds its fault in a small broken tree

Prints a line for each finding, "file:line: message", and exits with 1 if there is any. Reads the order of halls and
rooms, and the public headers, from the calls of rhizome_hall and rhizome_tool_room in CMakeLists.txt.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCES = (".h", ".cc", ".cu", ".cuh")
FORMAT_VERSION = "14"  # another version of clang-format breaks lines elsewhere
FILES_OF_A_PROCESS = 40
LARGEST_RING = 4  # units
IN_PUBLIC = ("tl/expected.hpp", "sys/types.h")  # beside the standard library
BARE_OPENING = re.compile(r"^\s*///?<?\s+(Of|What|Where|Who|Those|One more)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
DEFINITION = re.compile(r"^(?:struct|class|enum class) (?:RHIZOME_\w+ )?(\w+)(?: final)?(?: :[^{]*)? ?\{")

Finding = collections.namedtuple("Finding", "file line message")
Include = collections.namedtuple("Include", "file line name quoted")
Hall = collections.namedtuple("Hall", "name rooms headers uses")


class Tree:
    """The sources below `root`, each read once, and what CMakeLists.txt says of them."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.lines = {file: (self.root / file).read_text().split("\n") for file in sorted(self.sources())}
        self.includes = {file: list(includes_of(file, lines)) for file, lines in self.lines.items()}
        self.cmake = (self.root / "CMakeLists.txt").read_text()
        self.commands = re.sub(r"(?m)^\s*#.*$|\s#.*$", "", self.cmake)
        self.halls = {hall.name: hall for hall in self.read_halls()}
        self.tool_rooms = self.read_tool_rooms()

    def sources(self):
        for folder, folders, files in os.walk(self.root):
            top = pathlib.Path(folder) == self.root
            folders[:] = [f for f in folders if not f.startswith(".") and not (top and f == "build")]
            for file in files:
                if file.endswith(SOURCES):
                    yield os.path.relpath(os.path.join(folder, file), self.root)

    def read_halls(self):
        values = {name: words.split() for name, words in re.findall(r"\bset\((\w+)\s+([^()]*)\)", self.commands)}
        for call in re.findall(r"\brhizome_hall\(([^()]*)\)", self.commands):
            lists = collections.defaultdict(list)
            key = "name"
            for word in call.split():
                if re.fullmatch("[A-Z_]+", word):  # ROOMS, HEADERS, ...
                    key = word
                else:
                    variable = re.fullmatch(r"\$\{(\w+)\}", word)
                    lists[key] += values.get(variable[1], []) if variable else [word]
            yield Hall(lists["name"][0], lists["ROOMS"] or ["."], lists["HEADERS"], lists["USES"])

    def read_tool_rooms(self):
        loops = re.findall(r"\bforeach\(room ([^()$]*)\)\s*rhizome_tool_room\((\S*)\$\{room\}", self.commands)
        return [prefix + room for rooms, prefix in loops for room in rooms.split()]

    def homes(self, hall, header):
        """The files that are `header` in a room of a hall."""
        files = [os.path.normpath(f"{hall.name}/{room}/{header}") for room in hall.rooms]
        return [file for file in files if file in self.lines]

    def sees(self, hall):
        """The names of the halls that a hall uses, and of those that they use."""
        seen = set()
        for name in hall.uses:
            if name in self.halls:
                seen |= {name} | self.sees(self.halls[name])
        return seen

    def place(self, file):
        """Hall and room of a file; None for what stands in neither (tests, fuzz targets)."""
        hall = self.halls.get(file.split("/")[0])
        room = os.path.dirname(file).partition("/")[2] or "."
        return (hall, room) if hall and room in hall.rooms else None

    def tool_room(self, file):
        room = os.path.dirname(file).partition("/")[2]
        return room if file.startswith("tools/") and room in self.tool_rooms else None

    def target(self, include):
        """The file that an include names; None if it is not one of the halls or of the tools' rooms."""
        if not include.quoted:
            return None
        parts = include.name.split("/")
        if parts[0] == "rhizome" and len(parts) == 3 and parts[1] in self.halls:
            return next(iter(self.homes(self.halls[parts[1]], parts[2])), None)
        if include.file.startswith("tools/"):
            return next((f"tools/{room}/{include.name}" for room in self.tool_rooms
                         if f"tools/{room}/{include.name}" in self.lines), None)
        return None

    def line_in_cmake(self, word):
        """The line that names a header in CMakeLists.txt."""
        for number, line in enumerate(self.cmake.split("\n"), 1):
            if not line.lstrip().startswith("#") and word in re.findall(r"[\w.]+", line):
                return number
        return 1


def includes_of(file, lines):
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        if found:
            yield Include(file, number, found[2], found[1] == '"')


def check_format(tree):
    """All sources are as clang-format leaves them. One finding a file: its first line that is not."""
    program = shutil.which("clang-format")
    version = program and subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    if not version or f"version {FORMAT_VERSION}." not in version:
        print(f"format: skipped, no clang-format {FORMAT_VERSION} here")
        return
    files = list(tree.lines)

    def formatted(chunk):
        return subprocess.run([program, *chunk], cwd=tree.root, capture_output=True, text=True).stdout

    def run(chunk):
        # Version 14 also reports (--dry-run) a comment of a nested inline namespace that it would not change.
        if formatted(chunk) == "".join((tree.root / file).read_text() for file in chunk):
            return
        for file in chunk:
            pairs = zip(formatted([file]).splitlines() + [None], (tree.root / file).read_text().splitlines() + [None])
            for number, (wanted, found) in enumerate(pairs, 1):
                if wanted != found:
                    wrong.append(Finding(file, number, "not formatted: clang-format -i"))
                    break

    wrong = []
    chunks = [files[i:i + FILES_OF_A_PROCESS] for i in range(0, len(files), FILES_OF_A_PROCESS)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, chunks))
    yield from sorted(wrong)


def check_order(tree):
    """A file stands in a room; an include names a room before its own, or a hall that its own one uses."""
    if not tree.halls or not tree.tool_rooms:
        yield Finding("CMakeLists.txt", 1, "no call of rhizome_hall, or of rhizome_tool_room, is found")
    for file, includes in tree.includes.items():
        if file.split("/")[0] in tree.halls and not tree.place(file):
            yield Finding(file, 1, "stands in no room of its hall")
        for include in includes:
            target = tree.target(include)
            message = target and upward(tree, file, target)
            if message:
                yield Finding(file, include.line, f"{message}: {include.name} stands in {os.path.dirname(target)}/")


def upward(tree, file, target):
    """Why `file` may not include `target`; None if it may."""
    here, there = tree.place(file), tree.place(target)
    if here and there:
        (hall, room), (other, other_room) = here, there
        if hall.name == other.name:
            return "goes up" if hall.rooms.index(other_room) > hall.rooms.index(room) else None
        return None if other.name in tree.sees(hall) else f"{hall.name} does not use {other.name}"
    here, there = tree.tool_room(file), tree.tool_room(target)
    if here and there and not file.endswith("/main.cc"):
        return "goes up" if tree.tool_rooms.index(there) > tree.tool_rooms.index(here) else None
    return None


def check_rings(tree):
    """No more than LARGEST_RING units (x.h and x.cc are one) include each other in a ring."""
    edges = collections.defaultdict(dict)
    for file, includes in tree.includes.items():
        for include in includes:
            target = tree.target(include)
            if target and unit(target) != unit(file):
                edges[unit(file)].setdefault(unit(target), include)
    for ring in components(edges):
        if len(ring) > LARGEST_RING:
            way = way_around(edges, ring)
            steps = ", ".join(f"{i.file}:{i.line} includes {os.path.basename(i.name)}" for i in way)
            yield Finding(way[0].file, way[0].line,
                          f"{len(ring)} units include each other: {' '.join(sorted(ring))}; by {steps}")


def unit(file):
    return os.path.splitext(file)[0]


def components(edges):
    """The strongly connected components of a graph (Tarjan 1972), without recursion."""
    index, low, stack, open_units, result = {}, {}, [], set(), []
    for start in list(edges):
        if start in index:
            continue
        calls = [(start, iter(edges[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        open_units.add(start)
        while calls:
            node, successors = calls[-1]
            for other in successors:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    open_units.add(other)
                    calls.append((other, iter(edges.get(other, {}))))
                    break
                if other in open_units:
                    low[node] = min(low[node], index[other])
            else:
                calls.pop()
                if calls:
                    low[calls[-1][0]] = min(low[calls[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    result.append(stack[at:])
                    open_units -= set(stack[at:])
                    del stack[at:]
    return result


def way_around(edges, ring):
    """The includes of a shortest way from the first unit of a ring back to it."""
    start = min(ring)
    ways = {start: []}
    queue = collections.deque([start])
    while queue:
        node = queue.popleft()
        for other, include in sorted(edges[node].items()):
            if other == start:
                return ways[node] + [include]
            if other in ring and other not in ways:
                ways[other] = ways[node] + [include]
                queue.append(other)
    raise AssertionError("not a ring")


def check_public(tree):
    """A public header stands in one room of its hall, and includes public headers, those of IN_PUBLIC and standard ones alone."""
    for hall in tree.halls.values():
        for header in hall.headers:
            homes = tree.homes(hall, header)
            if len(homes) != 1:
                where = " and ".join(homes) or "no room"
                yield Finding("CMakeLists.txt", tree.line_in_cmake(header), f"{hall.name}'s {header} stands in {where}")
            for include in (i for file in homes for i in tree.includes[file]):
                if not may_be_public(tree, include):
                    yield Finding(include.file, include.line, f"public, but includes {include.name}, which is not")


def may_be_public(tree, include):
    if not include.quoted:
        return include.name in IN_PUBLIC or re.fullmatch(r"[a-z_]+", include.name)
    parts = include.name.split("/")
    return len(parts) == 3 and parts[0] == "rhizome" and parts[1] in tree.halls and \
        parts[2] in tree.halls[parts[1]].headers


def check_alone(tree, build):
    """The step of tools/test.sh that compiles each public header alone is there, and covers all of them."""
    script = tree.root / "tools/test.sh"
    steps = [line for line in script.read_text().split("\n") if not line.lstrip().startswith("#")]
    if not any("all_verify_interface_header_sets" in line for line in steps):
        yield Finding("tools/test.sh", 1, "compiles no public header alone (all_verify_interface_header_sets)")
    ninja = build and pathlib.Path(build) / "build.ninja"
    if not ninja or not ninja.exists():
        print("headers alone: the targets are not looked at, no Ninja build was named")
        return
    rules = ninja.read_text()
    compiled = set(re.findall(r"_verify_interface_header_sets\.dir/\S*/rhizome/(\w+/\w+\.h)\.cxx\.\w+: ", rules))
    for hall in tree.halls.values():
        if f"rhizome_{hall.name}" not in rules and hall.name in ("gnn", "cuda"):
            continue  # configured without libtorch
        for header in hall.headers:
            if f"{hall.name}/{header}" not in compiled:
                yield Finding("CMakeLists.txt", tree.line_in_cmake(header),
                              f"{hall.name}'s {header} is compiled alone by no target")


def check_names(tree):
    """A program that links the libraries sees one type of a name: no two headers define it."""
    places = collections.defaultdict(dict)
    for file, lines in tree.lines.items():
        if file.endswith(".h") and (tree.place(file) or file.startswith("tools/")):
            for number, line in enumerate(lines, 1):
                found = DEFINITION.match(line)
                if found:
                    places[found[1]].setdefault(file, number)
    for name, found in sorted(places.items()):
        for (file, line), other in zip(list(found.items())[1:], found):
            yield Finding(file, line, f"{name} is defined in {other}, too")


def check_openings(tree):
    """A comment block begins with a sentence that has a subject."""
    for file, lines in tree.lines.items():
        before = ""
        for number, line in enumerate(lines, 1):
            found = BARE_OPENING.match(line)
            if found and not before.lstrip().startswith("//"):
                yield Finding(file, number, f"a comment begins with a bare \"{found[1]}\": give it a subject")
            before = line


def findings(root, build=None):
    tree = Tree(root)
    checks = (check_format, check_order, check_rings, check_public, check_names, check_openings)
    return [f for check in checks for f in check(tree)] + list(check_alone(tree, build))


# --- The test of the test -------------------------------------------------------------------------

BROKEN = {
    "CMakeLists.txt": """\
set(upper_rooms top)
# rhizome_hall(commented ROOMS out HEADERS nothing.h)
rhizome_hall(lower
  ROOMS base middle
  HEADERS good.h twice.h nowhere.h leaks.h
  PRIVATE_LIBS x)
rhizome_hall(upper ROOMS ${upper_rooms} USES lower)
foreach(room cli verbs)
  rhizome_tool_room(${room} "${before}")
endforeach()
""",
    ".clang-format": "BasedOnStyle: Google\n",
    "tools/test.sh": "# step all_verify_interface_header_sets\n",
    "lower/base/good.h": "#pragma once\n\n#include <sys/types.h>\n\n#include <tl/expected.hpp>\n#include <vector>\n",
    "lower/base/twice.h": "#pragma once\n",
    "lower/middle/twice.h": "#pragma once\n",
    "lower/middle/leaks.h": "#pragma once\n#include <fmt/format.h>\n\n"
                            '#include "rhizome/lower/good.h"\n#include "rhizome/lower/hidden.h"\n',
    "lower/middle/hidden.h": "#pragma once\nstruct Same {};\n",
    "lower/base/up.cc": '#include "rhizome/lower/good.h"\n#include "rhizome/lower/leaks.h"\n',
    "lower/base/far.cc": '#include "rhizome/upper/roof.h"\n',
    "upper/top/roof.h": '#pragma once\n#include "rhizome/lower/hidden.h"\n\nstruct Same {};\n',
    "upper/lost/unbuilt.cc": "int c;\n",
    "upper/top/crooked.cc": "int a;\nint  b;\n",
    # A ring of five units, one of whose steps is in a .cc file; and one of four, which may be.
    **{f"upper/top/r{i}.h": f'#pragma once\n#include "rhizome/upper/r{i + 1}.h"\n' for i in range(4)},
    "upper/top/r4.h": "#pragma once\n",
    "upper/top/r4.cc": '\n#include "rhizome/upper/r0.h"\n',
    **{f"upper/top/q{i}.h": f'#pragma once\n#include "rhizome/upper/q{(i + 1) % 4}.h"\n' for i in range(4)},
    "tools/cli/early.cc": '#include "late.h"\n',
    "tools/verbs/late.h": "#pragma once\n",
    "tools/verbs/main.cc": '#include "late.h"\n',
    "tests/prose.cc": "// Says something. What follows\n// Of a block, this is its second line.\n\n"
                      "// Whatever it is, it is fine.\n\n/// Of a thing\nint x;\n  // One more thing\n",
}
EXPECTED = {
    ("CMakeLists.txt", 5, "lower's twice.h stands in lower/base/twice.h and lower/middle/twice.h"),
    ("CMakeLists.txt", 5, "lower's nowhere.h stands in no room"),
    ("lower/middle/leaks.h", 5, "public, but includes rhizome/lower/hidden.h, which is not"),
    ("lower/middle/leaks.h", 2, "public, but includes fmt/format.h, which is not"),
    ("lower/base/up.cc", 2, "goes up: rhizome/lower/leaks.h stands in lower/middle/"),
    ("lower/base/far.cc", 1, "lower does not use upper: rhizome/upper/roof.h stands in upper/top/"),
    ("upper/lost/unbuilt.cc", 1, "stands in no room of its hall"),
    ("tools/cli/early.cc", 1, "goes up: late.h stands in tools/verbs/"),
    ("upper/top/r0.h", 2, "5 units include each other"),
    ("upper/top/roof.h", 4, "Same is defined in lower/middle/hidden.h, too"),
    ("tests/prose.cc", 6, 'a comment begins with a bare "Of"'),
    ("tests/prose.cc", 8, 'a comment begins with a bare "One more"'),
    ("tools/test.sh", 1, "compiles no public header alone"),
    ("CMakeLists.txt", 5, "lower's leaks.h is compiled alone by no target"),
}
NINJA = "build CMakeFiles/a_verify_interface_header_sets.dir/a/rhizome/lower/{}.cxx.o: CXX\n"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for file, text in BROKEN.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text(text)
        build = root / "build"
        build.mkdir()
        (build / "build.ninja").write_text("".join(map(NINJA.format, ("good.h", "twice.h", "nowhere.h"))))
        (build / "ignored.cc").write_text("int  crooked;\n")
        found = findings(root, build)
    wanted = set(EXPECTED)
    if shutil.which("clang-format"):
        wanted |= {("upper/top/crooked.cc", 2, "not formatted"), ("tests/prose.cc", 8, "not formatted")}
    failed = False
    for f in found:
        match = next((w for w in wanted if w[:2] == f[:2] and f.message.startswith(w[2])), None)
        wanted.discard(match)
        if not match:
            print(f"not expected: {f.file}:{f.line}: {f.message}")
            failed = True
    for file, line, message in sorted(wanted):
        print(f"not found: {file}:{line}: {message}")
        failed = True
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    found = findings(arguments.root, arguments.build)
    for f in found:
        print(f"{f.file}:{f.line}: {f.message}")
    print(f"{len(found)} findings")
    return 1 if found else 0


sys.exit(main())
