#!/usr/bin/env python3
"""Checks of the sources: format, order of modules, include cycles, public headers, plain English, messages.

usage: tests/tidy_test.py [--build FOLDER] [ROOT]    FOLDER: of a Ninja build, whose header checks are looked at
       tests/tidy_test.py --self-test                every check finds its fault in a small broken tree

Prints a line for each finding, "file:line: message", and exits with 1 if there is any. Reads the order of layers and
modules from the calls of rhizome_layer and rhizome_tools_module in */modules.cmake.
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
# Words of a private dialect, with what to write instead: they are clear to their author alone.
DIALECT = {
    r"the way back|on the way": "backward pass; name the step",
    r"gatherings?": "aggregation",
    r"dear|dearer": "expensive, more expensive",
    r"(?:is|are|was|were|be) told|tells?|telling": "reports, notifies, receives",
    r"stands? (?:in|for|at|on|there|behind|before|beside)|stood|lies? (?:in|at|on)": "is in, is stored in, represents",
    r"of which|of whom|that of|those of": "name the thing again",
    r"so many": "the number",
    r"whoever|whatever|but for": "the caller, any, except",
    r"look(?:s|ed)? at": "checks, reads",
    r"for ever|by then|meanwhile|go(?:es)? on|going on|anew": "never expires, by that time, concurrently, continues, again",
    r"keepers?|outlook|contest|halls?|rooms?|house": "remote cache policy, lookahead, comparison, layer, module, space",
    r"alike|nobody|somebody": "the same way, no caller, a caller",
    r"(?:is|are) said|to be had|it costs|what .{1,20} costs?": "is reported, available, cost",
}
MARKERS = re.compile("|".join(rf"\b(?:{words})\b" for words in DIALECT), re.IGNORECASE)
# Comment blocks with such a word that each folder may have. A limit only falls: one above the count is a finding, too.
DIALECT_LIMITS = {"gnn": 2, "tests": 1}
# String literals with such a word, by folder: only these folders are checked. The limits fall in the same way.
LITERAL_LIMITS = {d: 0 for d in ("tools", "storage", "index", "cache", "gnn", "cuda")}
COMMENT = re.compile(r"^\s*///?<?\s?(.*)$|[;{},)]\s+///?<?\s?(.*)$")
LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/|'(?:[^'\\\n]|\\.)+'|\#\s*include[^\n]*"""  # no literals, but may have quotes
    r"""|R"(?P<end>[^()\\ ]*)\((?P<raw>.*?)\)(?P=end)\""""
    r"""|(?P<text>(?:"(?:[^"\\\n]|\\.)*"\s*)+)""", re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
DEFINITION = re.compile(r"^(?:struct|class|enum class) (?:RHIZOME_\w+ )?(\w+)(?: final)?(?: :[^{]*)? ?\{")

# The layers whose messages name options by fields in backticks, and the table of fields (storage/options).
MESSAGE_LAYERS = ("storage", "index", "cache", "gnn", "cuda")
FIELD_TABLE = "storage/options/spell_fields.cc"
FLAG = re.compile(r"(?<![\w-])--[a-z{]")
# Comments, literals of characters, raw and other literals of strings, blanks, and all else.
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|\'(?:[^\'\\\n]|\\.)+\'|R"(\w*)\((?P<raw>.*?)\)\1"'
                   r'|"(?P<text>(?:[^"\\\n]|\\.)*)"|(?P<blank>\s+)|\w+|.', re.DOTALL)

Finding = collections.namedtuple("Finding", "file line message")
Include = collections.namedtuple("Include", "file line name quoted")
Layer = collections.namedtuple("Layer", "name modules uses")


class Tree:
    """The sources below `root`, each read once, and the order of modules, from the files modules.cmake."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.lines = {file: (self.root / file).read_text().split("\n") for file in sorted(self.sources())}
        self.includes = {file: list(includes_of(file, lines)) for file, lines in self.lines.items()}
        cmake = "\n".join(file.read_text() for file in sorted(self.root.glob("*/modules.cmake")))
        self.commands = re.sub(r"(?m)^\s*#.*$|\s#.*$", "", cmake)
        self.layers = {layer.name: layer for layer in self.read_layers()}
        self.tool_modules = self.read_tool_modules()

    def sources(self):
        for folder, folders, files in os.walk(self.root):
            top = pathlib.Path(folder) == self.root
            folders[:] = [f for f in folders if not f.startswith(".") and not (top and f == "build")]
            for file in files:
                if file.endswith(SOURCES):
                    yield os.path.relpath(os.path.join(folder, file), self.root)

    def read_layers(self):
        values = {name: words.split() for name, words in re.findall(r"\bset\((\w+)\s+([^()]*)\)", self.commands)}
        for call in re.findall(r"\brhizome_layer\(([^()]*)\)", self.commands):
            lists = collections.defaultdict(list)
            key = "name"
            for word in call.split():
                if re.fullmatch("[A-Z_]+", word):  # MODULES, USES, ...
                    key = word
                else:
                    variable = re.fullmatch(r"\$\{(\w+)\}", word)
                    lists[key] += values.get(variable[1], []) if variable else [word]
            yield Layer(lists["name"][0], ["api", *(lists["MODULES"] or ["."])], lists["USES"])

    def read_tool_modules(self):
        loops = re.findall(r"\bforeach\(module ([^()$]*)\)\s*rhizome_tools_module\((\S*)\$\{module\}", self.commands)
        return [prefix + module for modules, prefix in loops for module in modules.split()]

    def public(self, layer):
        """The public headers of a layer."""
        return [file for file in self.lines if os.path.dirname(file) == f"{layer.name}/api/rhizome"]

    def sees(self, layer):
        """The names of the layers that a layer uses, and of those that they use."""
        seen = set()
        for name in layer.uses:
            if name in self.layers:
                seen |= {name} | self.sees(self.layers[name])
        return seen

    def place(self, file):
        """Layer and module of a file; None for what is in neither (tests, fuzz targets)."""
        layer = self.layers.get(file.split("/")[0])
        module = os.path.dirname(file).partition("/")[2] or "."
        module = "api" if module == "api/rhizome" else module
        return (layer, module) if layer and module in layer.modules else None

    def tool_module(self, file):
        module = os.path.dirname(file).partition("/")[2]
        return module if file.startswith("tools/") and module in self.tool_modules else None

    def target(self, include):
        """The file that an include names; None if it is not one of the layers or of the tools' modules."""
        folder = include.name.split("/")[0]
        if folder == "rhizome":
            files = (f"{layer}/api/{include.name}" for layer in self.layers)
            return next((file for file in files if file in self.lines), None)
        return include.name if include.name in self.lines and folder in (*self.layers, "tools") else None


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
    """A file is in a module; an include names a module before its own, or a layer that its own one uses."""
    if not tree.layers or not tree.tool_modules:
        yield Finding("CMakeLists.txt", 1, "no call of rhizome_layer, or of rhizome_tools_module, is found in */modules.cmake")
    for file, includes in tree.includes.items():
        if file.split("/")[0] in tree.layers and not tree.place(file):
            yield Finding(file, 1, "is in no module of its layer")
        for include in includes:
            target = tree.target(include)
            message = target and upward(tree, file, target)
            if message:
                yield Finding(file, include.line, f"{message}: {include.name} is in {os.path.dirname(target)}/")


def upward(tree, file, target):
    """Why `file` may not include `target`; None if it may."""
    here, there = tree.place(file), tree.place(target)
    if here and there:
        (layer, module), (other, other_module) = here, there
        if layer.name == other.name:
            return "goes up" if layer.modules.index(other_module) > layer.modules.index(module) else None
        return None if other.name in tree.sees(layer) else f"{layer.name} does not use {other.name}"
    here, there = tree.tool_module(file), tree.tool_module(target)
    if here and there and not file.endswith("/main.cc"):
        return "goes up" if tree.tool_modules.index(there) > tree.tool_modules.index(here) else None
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
    """A public header includes public headers, those of IN_PUBLIC and standard ones alone; two layers share no name."""
    layers = {}
    for layer in tree.layers.values():
        for file in tree.public(layer):
            name = os.path.basename(file)
            if layers.setdefault(name, layer) != layer:
                yield Finding(file, 1, f"{layers[name].name} has a public header of this name, too")
            for include in tree.includes[file]:
                if not may_be_public(tree, include):
                    yield Finding(include.file, include.line, f"public, but includes {include.name}, which is not")


def may_be_public(tree, include):
    if not include.quoted:
        return include.name in IN_PUBLIC or re.fullmatch(r"[a-z_]+", include.name)
    target = tree.target(include)
    return target and "/api/rhizome/" in target


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
    pattern = r"rhizome_(\w+)_api_verify_interface_header_sets\.dir/\S*/rhizome/(\w+\.h)\.cxx\.\w+: "
    compiled = {f"{layer}/api/rhizome/{header}" for layer, header in re.findall(pattern, rules)}
    for layer in tree.layers.values():
        if f"rhizome_{layer.name}" not in rules and layer.name in ("gnn", "cuda"):
            continue  # configured without libtorch
        for file in tree.public(layer):
            if file not in compiled:
                yield Finding(file, 1, "is compiled alone by no target")


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


def comment_blocks(lines):
    """The number of the first line and the text of each block of // comments; one after code is a block of its own."""
    first, text = 0, []
    for number, line in enumerate(lines + [""], 1):
        found = COMMENT.search(line)
        whole = found and found[1] is not None
        if text and not whole:
            yield first, " ".join(text)
            text = []
        if whole:
            first = first if text else number
            text.append(found[1])
        elif found:
            yield number, found[2]


def literals(lines):
    """The line and the text of each string literal; adjacent literals are one."""
    text = "\n".join(lines)
    for found in LITERAL.finditer(text):
        if found["raw"] is not None or found["text"]:
            joined = found["raw"] or re.sub(r'"\s*"|^"|"\s*$', "", found["text"] or "")
            yield text.count("\n", 0, found.start()) + 1, re.sub(r"\\n|\s+", " ", joined)


def check_dialect(tree):
    """No folder has more comment blocks, or string literals, with a word of DIALECT than its limit, or fewer."""
    yield from check_words(tree, comment_blocks, "comments", "DIALECT_LIMITS", tree.dialect_limits)
    files = {file: lines for file, lines in tree.lines.items() if file.split("/")[0] in tree.literal_limits}
    yield from check_words(tree, literals, "string literals", "LITERAL_LIMITS", tree.literal_limits, files)


def check_words(tree, texts, kind, name, limits, files=None):
    """Compares the number of `texts` with a word of DIALECT with the limit of each folder. `files`: None for all."""
    found = collections.defaultdict(list)
    for file, lines in (tree.lines if files is None else files).items():
        for number, text in texts(lines):
            marker = MARKERS.search(text)
            if marker:
                found[file.split("/")[0]].append((file, number, marker[0]))
    for folder in sorted(found.keys() | limits.keys()):
        marked, limit = found[folder], limits.get(folder, 0)
        if len(marked) > limit:
            for file, number, word in marked:
                yield Finding(file, number, f'"{word}" is unclear: {advice(word)} '
                                            f"({len(marked)} such {kind} in {folder}/, at most {limit})")
        elif len(marked) < limit:
            yield Finding("tests/tidy_test.py", 1, f"{name} of {folder} is {limit}: lower it to {len(marked)}")


def advice(word):
    words = next(words for words in DIALECT if re.fullmatch(words, word, re.IGNORECASE))
    return DIALECT[words]


def string_literals(lines):
    """The number of the first line and the text of each literal; adjacent ones, also across comments, are one."""
    text = "\n".join(lines)
    first, literal = 0, None
    for found in TOKEN.finditer(text):
        part = found["text"] if found["text"] is not None else found["raw"]
        if part is not None:
            if literal is None:
                first, literal = text.count("\n", 0, found.start()) + 1, ""
            literal += part
        elif found["blank"] is None and not found[0].startswith(("//", "/*")) and literal is not None:
            yield first, literal
            literal = None


def check_messages(tree):
    """A message of the library names no flag of the command line, and in backticks only fields that front ends spell."""
    table = re.search(r"kFields = [^;]*;", "\n".join(tree.lines.get(FIELD_TABLE, [])))
    fields = set(re.findall(r'\{"([\w-]+)"', table[0])) if table else set()
    if not fields:
        yield Finding(FIELD_TABLE, 1, "has no table kFields of the fields that messages name")
    for file, lines in tree.lines.items():
        if file.split("/")[0] not in MESSAGE_LAYERS:
            continue
        for number, literal in string_literals(lines):
            flag = FLAG.search(literal)
            if flag:
                yield Finding(file, number, f'a message names the flag "{literal[flag.start():][:20]}": '
                                            "write the field of the option in backticks")
            for quoted in re.findall(r"`([^`]*)`?", literal):
                if quoted != "{}" and quoted.partition("=")[0] not in fields:
                    yield Finding(file, number, f"`{quoted}` is no field in {FIELD_TABLE}")


def findings(root, build=None, limits=DIALECT_LIMITS, literal_limits=LITERAL_LIMITS):
    tree = Tree(root)
    tree.dialect_limits, tree.literal_limits = limits, literal_limits
    checks = (check_format, check_order, check_rings, check_public, check_names, check_openings, check_dialect,
              check_messages)
    return [f for check in checks for f in check(tree)] + list(check_alone(tree, build))


# --- The test of the test -------------------------------------------------------------------------

BROKEN = {
    "lower/modules.cmake": """\
# rhizome_layer(commented MODULES out)
rhizome_layer(lower
  MODULES base middle
  PRIVATE_LIBS x)
""",
    "tools/modules.cmake": """\
foreach(module cli verbs)
  rhizome_tools_module(${module} "${before}")
endforeach()
""",
    "upper/modules.cmake": "set(upper_modules top)\nrhizome_layer(upper MODULES ${upper_modules} USES lower)\n",
    ".clang-format": "BasedOnStyle: Google\n",
    "tools/test.sh": "# step all_verify_interface_header_sets\n",
    "lower/api/rhizome/good.h": "#pragma once\n\n#include <sys/types.h>\n\n#include <tl/expected.hpp>\n"
                                "#include <vector>\n",
    "lower/api/rhizome/twice.h": "#pragma once\n",
    "upper/api/rhizome/twice.h": "#pragma once\n",
    "lower/api/rhizome/leaks.h": "#pragma once\n#include <fmt/format.h>\n\n"
                                 '#include "lower/middle/hidden.h"\n#include "rhizome/good.h"\n',
    "lower/middle/hidden.h": "#pragma once\nstruct Same {};\n",
    "lower/base/up.cc": '#include "lower/middle/hidden.h"\n#include "rhizome/good.h"\n',
    "lower/base/far.cc": '#include "upper/top/roof.h"\n',
    "upper/top/roof.h": '#pragma once\n#include "lower/middle/hidden.h"\n\nstruct Same {};\n',
    "upper/lost/unbuilt.cc": "int c;\n",
    "upper/top/crooked.cc": "int a;\nint  b;\n",
    # A ring of five units, one of whose steps is in a .cc file; and one of four, which may be.
    **{f"upper/top/r{i}.h": f'#pragma once\n#include "upper/top/r{i + 1}.h"\n' for i in range(4)},
    "upper/top/r4.h": "#pragma once\n",
    "upper/top/r4.cc": '\n#include "upper/top/r0.h"\n',
    **{f"upper/top/q{i}.h": f'#pragma once\n#include "upper/top/q{(i + 1) % 4}.h"\n' for i in range(4)},
    "tools/cli/early.cc": '#include "tools/verbs/late.h"\n',
    "tools/verbs/late.h": "#pragma once\n",
    "tools/verbs/main.cc": '#include "tools/verbs/late.h"\n',
    "upper/top/words.cc": "int a;  // what a row costs\n\n// Rows are sorted, those\n// of a vertex by type.\nint b;\n// Plain.\n",
    "tools/cli/texts.cc": '// "so many" in a comment\n#include <meanwhile>\n\nconst char a = \'"\';\n'
                          'const char* b =\n    "of so"\n    " many";\nconst char* c = "plain";\n'
                          'const char* d = R"(stands\nin)";\n',
    "upper/top/texts.cc": 'const char* unchecked = "meanwhile";\n',
    "storage/options/spell_fields.cc": 'constexpr auto kFields = {{"memory_bytes"}, {"undirected", kBoolean}};\n',
    "storage/messages.cc": 'const char* a = "give more `memory_bytes`, or `undirected=x`";\n'
                           'const char* b = "give more --memory";\n'
                           'const char* c =\n    "two pieces "  // of one message\n    "make `mem"\n    "ory=4G`";\n'
                           "// \"--memory\" and \"`memory`\" in a comment, '\"' and a--b are none.\n"
                           "const char d = '\"';\n"
                           'const char* e = "a--b `memory_bytes={}`";\nint f = --e[0];\n'
                           'const char* g = R"(x --undirected)";\n',
    "tools/cli/messages.cc": 'const char* a = "give --memory";\n',
    "tests/prose.cc": "// Says something. What follows\n// Of a block, this is its second line.\n\n"
                      "// Whatever it is, it is fine.\n\n/// Of a thing\nint x;\n  // One more thing\n",
}
EXPECTED = {
    ("upper/api/rhizome/twice.h", 1, "lower has a public header of this name, too"),
    ("lower/api/rhizome/leaks.h", 4, "goes up: lower/middle/hidden.h is in lower/middle/"),
    ("lower/api/rhizome/leaks.h", 4, "public, but includes lower/middle/hidden.h, which is not"),
    ("lower/api/rhizome/leaks.h", 2, "public, but includes fmt/format.h, which is not"),
    ("lower/base/up.cc", 1, "goes up: lower/middle/hidden.h is in lower/middle/"),
    ("lower/base/far.cc", 1, "lower does not use upper: upper/top/roof.h is in upper/top/"),
    ("upper/lost/unbuilt.cc", 1, "is in no module of its layer"),
    ("tools/cli/early.cc", 1, "goes up: tools/verbs/late.h is in tools/verbs/"),
    ("upper/top/r0.h", 2, "5 units include each other"),
    ("upper/top/roof.h", 4, "Same is defined in lower/middle/hidden.h, too"),
    ("upper/top/words.cc", 1, '"what a row costs" is unclear: is reported, available, cost (2 such comments in upper/, at most 1)'),
    ("upper/top/words.cc", 3, '"those of" is unclear: name the thing again'),
    ("tests/tidy_test.py", 1, "DIALECT_LIMITS of lower is 1: lower it to 0"),
    ("tools/cli/texts.cc", 6, '"so many" is unclear: the number (2 such string literals in tools/, at most 1)'),
    ("tools/cli/texts.cc", 9, '"stands in" is unclear'),
    ("tests/tidy_test.py", 1, "LITERAL_LIMITS of lower is 1: lower it to 0"),
    ("tests/prose.cc", 6, 'a comment begins with a bare "Of"'),
    ("tests/prose.cc", 8, 'a comment begins with a bare "One more"'),
    ("storage/messages.cc", 2, 'a message names the flag "--memory"'),
    ("storage/messages.cc", 4, "`memory=4G` is no field in storage/options/spell_fields.cc"),
    ("storage/messages.cc", 11, 'a message names the flag "--undirected"'),
    ("tools/test.sh", 1, "compiles no public header alone"),
    ("lower/api/rhizome/leaks.h", 1, "is compiled alone by no target"),
    ("lower/api/rhizome/twice.h", 1, "is compiled alone by no target"),
    ("upper/api/rhizome/twice.h", 1, "is compiled alone by no target"),
}
NINJA = "build CMakeFiles/rhizome_lower_api_verify_interface_header_sets.dir/a/rhizome/{}.cxx.o: CXX\n"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for file, text in BROKEN.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text(text)
        build = root / "build"
        build.mkdir()
        (build / "build.ninja").write_text("".join(map(NINJA.format, ("good.h", "absent.h"))))
        (build / "ignored.cc").write_text("int  crooked;\n")
        found = findings(root, build, {"upper": 1, "lower": 1, "tests": 1, "tools": 1}, {"tools": 1, "lower": 1})
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
