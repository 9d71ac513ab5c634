"""Pages of the C++ reference, one for each public header.

Doxygen finds the declarations and their comments; the text of a declaration is copied from its header, as clang-format
left it. Pages consist of Markdown headings, for the table of contents and the search, and of HTML.
"""
import collections
import html
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ElementTree

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CppLexer

LAYERS = {
    "index": "graph, partitions, sampling, ingestion, updates",
    "cache": "caches, minibatches, plans of full-graph training, ranks",
    "gnn": "training and inference",
    "storage": "bytes, files, commits",
}
LIBRARY = {"gnn": "librhizome_gnn"}  # the others: librhizome
SETTINGS = """
INPUT = {headers}
FILE_PATTERNS = *.h
OUTPUT_DIRECTORY = {output}
STRIP_FROM_PATH = {headers}
PREDEFINED = RHIZOME_API= RHIZOME_THREAD_ATTRIBUTE(x)= RHIZOME_GUARDED_BY(x)= RHIZOME_REQUIRES(x)= RHIZOME_EXCLUDES(x)=
ENABLE_PREPROCESSING = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
EXCLUDE_SYMBOLS = std::hash
EXTRACT_ALL = YES
AUTOLINK_SUPPORT = NO
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
HAVE_DOT = NO
CLASS_GRAPH = NO
COLLABORATION_GRAPH = NO
INCLUDE_GRAPH = NO
INCLUDED_BY_GRAPH = NO
QUIET = YES
WARN_IF_UNDOCUMENTED = NO
"""
# Parts of a comment that begin a paragraph, also inside of one.
LABELS = "Consistency|Errors|Ids|Memory|Names|Ownership|Retention|Shapes|Source|Threads"
LABEL = re.compile(rf"(?:^|(?<=[.;:)>]) )({LABELS}): ")
WORD = re.compile(r"\b(?:\w+/)*\w+\.(?:h|md)\b|(?:\b\w+::)*~?\b\w+")
COMMENT = ("briefdescription", "detaileddescription")  # the elements that contain it
NO_SEMICOLON = ("class", "struct", "enum", "define")
SHOWN_IN_HEADING = 3  # names


class Item:
    """A declaration: `node` is its element, `name` is without `rhizome::`, `members` are those of a class."""

    def __init__(self, node, name, kind):
        self.node = node
        self.name = name
        self.kind = kind
        place = node.find("location")
        self.header = pathlib.PurePath(place.get("file")).name
        self.line = int(place.get("line"))
        self.members = []

    def documented(self):
        return any("".join(self.node.find(tag).itertext()).strip() for tag in COMMENT)

    def shown(self):
        """Whether it is public. Copies, destructors and protected functions are shown only with a comment."""
        if self.node.get("prot") == "private" or self.kind == "friend" or self.name.startswith("internal::"):
            return False
        if self.documented():
            return True
        own = re.search(r"=\s*(delete|default)$", self.node.findtext("argsstring") or "") or "~" in self.name
        return not own and self.node.get("prot") != "protected" and self.kind != "define"


def escape_comments(text):
    """Escapes what Doxygen would read as a command or as a tag, outside of backticks."""

    def escaped(line):
        code, mark, comment = line.partition("///")
        parts = re.split(r"(`[^`]*`)", comment)
        parts[::2] = [re.sub(r"[@<>\\#%]", r"\\\g<0>", part.removeprefix("<")) for part in parts[::2]]
        return code + mark + "<" * comment.startswith("<") + "".join(parts) if mark else line

    return "\n".join(map(escaped, text.split("\n")))


def run_doxygen(headers, folder):
    """Returns the elements of all classes, files and namespaces."""
    copies = folder / "headers"
    copies.mkdir()
    for header in headers:
        (copies / header.name).write_text(escape_comments(header.read_text()))
    settings = SETTINGS.format(headers=copies, output=folder)
    run = subprocess.run(["doxygen", "-"], input=settings, capture_output=True, text=True, check=True)
    # Of classes that it does not know, such as std::hash, it reports specialisations as inconsistent.
    faults = [line for line in run.stderr.splitlines() if "Internal inconsistency" not in line]
    if faults:
        raise SystemExit("\n".join(["doxygen:", *faults]))
    for file in sorted((folder / "xml").glob("*.xml")):
        if file.name.startswith(("class", "struct", "namespace")) or file.name.endswith("_8h.xml"):
            yield from ElementTree.parse(file).getroot().findall("compounddef")


def read_items(compounds):
    """Returns the items of every header, in the order of their lines; members are in the items of their classes."""
    items = {}
    for compound in compounds:
        kind = compound.get("kind")
        scope = compound.findtext("compoundname").removeprefix("rhizome").removeprefix("::")
        if kind in ("class", "struct"):
            items[scope] = Item(compound, scope, kind)
        elif kind == "namespace" and "internal" in scope:
            continue
        for member in compound.findall("sectiondef/memberdef"):
            if kind == "file" and member.get("kind") != "define":
                continue  # it is in its namespace, too
            if "::internal::" in (member.findtext("definition") or ""):
                continue  # an inline namespace
            name = member.findtext("name")
            item = Item(member, f"{scope}::{name}" if scope and kind != "file" else name, member.get("kind"))
            items[member.get("id")] = item
            if kind in ("class", "struct"):
                items[scope].members.append(item)
    top = collections.defaultdict(list)
    for key, item in items.items():
        if not item.shown():
            continue
        if item.kind in ("class", "struct"):
            outer = items.get(key.rpartition("::")[0])
            (outer.members if outer else top[item.header]).append(item)
        elif item.kind == "define" or "::" not in item.name:
            top[item.header].append(item)
    for item in [*items.values()]:
        item.members = sorted((member for member in item.members if member.shown()), key=lambda member: member.line)
    return {header: sorted(found, key=lambda item: item.line) for header, found in top.items()}


def anchor_of(name):
    return re.sub(r"[^\w.~-]", "-", name.replace("::", "."))


class Page:
    """The page of a header."""

    def __init__(self, header, lines, links):
        self.header = header
        self.lines = lines
        self.links = links  # address by name
        self.out = []
        self.anchors = collections.Counter()

    # --- Text ---

    def link(self, name, scope):
        """Returns the address of what `name` means in the class `scope`; None if it is nothing public."""
        scopes = scope.split("::") if scope else []
        for depth in range(len(scopes), -1, -1):
            full = "::".join([*scopes[:depth], name.removeprefix("rhizome::")])
            if full in self.links:
                return None if full == scope else self.links[full]
        return None

    def word(self, word, scope, code):
        """A word of a comment: a link if it names a declaration, and in the type of code if it looks like code."""
        if word.endswith((".h", ".md")):
            target = self.links.get(word if word.endswith(".md") else word.rpartition("/")[2])
            return f'<a href="{target}">{word}</a>' if target else word
        constant = re.fullmatch(r"k[A-Z]\w+", word)
        if not code and not constant and "::" not in word and not re.match(r"[A-Z][a-z]+[A-Z]", word):
            return word
        target = self.link(word, scope) or (self.link(f"StatusCode::{word}", scope) if constant else None)
        if code:
            return f'<a href="{target}">{word}</a>' if target else word
        if not target:
            return f"<code>{word}</code>" if constant or "::" in word else word
        return f'<a href="{target}"><code>{word}</code></a>'

    def text(self, text, scope, code=False):
        pieces, end = [], 0
        for found in WORD.finditer(text or ""):
            pieces += [html.escape(text[end:found.start()]), self.word(found[0], scope, code)]
            end = found.end()
        return "".join(pieces) + html.escape((text or "")[end:])

    def inline(self, node, scope, code=False):
        tag = {"computeroutput": "code", "emphasis": "em", "bold": "strong", "verbatim": "pre"}.get(node.tag)
        inner = self.text(node.text, scope, code or tag == "code")
        for child in node:
            inner += {"ndash": "–", "mdash": "—", "nonbreakablespace": " "}.get(child.tag) or self.inline(
                child, scope, code or tag == "code")
            inner += self.text(child.tail, scope, code or tag == "code")
        if not tag and node.tag not in ("para", "ref", "ulink"):
            raise SystemExit(f"{self.header}: an element <{node.tag}> of a comment, which cpp_reference.py cannot show")
        return f"<{tag}>{inner}</{tag}>" if tag else inner

    def blocks(self, node, scope):
        """Returns the paragraphs and lists of an element as HTML."""
        found = []
        for para in node.findall("para"):
            pieces = ElementTree.Element("para")
            pieces.text = para.text
            for child in [*para, None]:
                if child is not None and child.tag not in ("itemizedlist", "orderedlist"):
                    pieces.append(child)
                    continue
                found += self.paragraphs(self.inline(pieces, scope))
                if child is not None:
                    tag = "ul" if child.tag == "itemizedlist" else "ol"
                    rows = ("".join(self.blocks(row, scope)) for row in child.findall("listitem"))
                    found.append(f"<{tag}>{''.join(f'<li>{row}</li>' for row in rows)}</{tag}>")
                    pieces = ElementTree.Element("para")
                    pieces.text = child.tail
        return found

    @staticmethod
    def paragraphs(text):
        first, *labelled = LABEL.split(text.strip())
        found = [f"<p>{first.strip()}</p>"] if first.strip() else []
        for label, rest in zip(labelled[::2], labelled[1::2]):
            found.append(f"<p><strong>{label}:</strong> {rest.strip()}</p>")
        return found

    def comment(self, item, scope):
        parts = map(item.node.find, COMMENT)
        return "\n".join(block for part in parts for block in self.blocks(part, scope))

    # --- Declarations ---

    def begin_of(self, line):
        """The first line, from 0, of the declaration with this line, which may begin with its type or template."""
        while line > 0:
            before = self.lines[line - 1].partition("//")[0].strip()
            if not before or before.endswith((";", "{", "}", ":")) or before.startswith("#"):
                break
            line -= 1
        return line

    def declaration(self, item):
        """The text of a declaration in its header, without body and comments."""
        if item.kind == "define":
            parameters = [parameter.findtext("defname") for parameter in item.node.findall("param")]
            return f"#define {item.name}" + (f"({', '.join(parameters)})" if parameters else "")
        begin = self.begin_of(item.line - 1)
        indent = len(self.lines[begin]) - len(self.lines[begin].lstrip())
        code = "\n".join(line.partition("//")[0][indent:].rstrip() for line in self.lines[begin:begin + 40])
        depth = 0
        for position, letter in enumerate(code):
            body = letter == "{" and item.kind not in ("variable", "typedef")
            initialisers = item.kind == "function" and code[position:position + 3] == " : "
            if depth == 0 and (letter == ";" or body or initialisers):
                code = code[:position]
                break
            depth += (letter in "({[") - (letter in ")}]")
        code = re.sub(r" RHIZOME_\w+\((?:[^()]|\([^()]*\))*\)", "", re.sub(r"\n\n+", "\n", code)).strip()
        if item.name.rpartition("::")[2] not in code or "#" in code:
            raise SystemExit(f"{self.header}:{item.line}: cpp_reference.py does not find {item.name} here")
        return code

    def code(self, items, scope):
        text = "\n".join(self.declaration(item) + ("" if item.kind in NO_SEMICOLON else ";") for item in items)
        own = {item.name.rpartition("::")[2] for item in items}

        def linked(found):
            target = self.link(found[2], scope) if found[2][0].isupper() and found[2] not in own else None
            return f'{found[1]}<a href="{target}">{found[2]}</a></span>' if target else found[0]

        shown = re.sub(r'(<span class="\w+">)([A-Za-z_]\w*)</span>', linked,
                       highlight(text, CppLexer(), HtmlFormatter(nowrap=True)).rstrip("\n"))
        return f'<div class="highlight"><pre><code>{shown}</code></pre></div>'

    # --- Sections ---

    def heading(self, level, names, scope, kind=""):
        self.anchors[names[0]] += 1
        count = self.anchors[names[0]]
        anchor = anchor_of(names[0]) + (f"-{count}" if count > 1 else "")
        more = "".join(f'<span id="{anchor_of(name)}"></span>' for name in names[1:] if not self.anchors[name])
        self.anchors.update(names[1:])
        if more:
            self.out.append(f"<div>{more}</div>")
        label = ", ".join(name.rpartition("::")[2] if scope else name for name in names[:SHOWN_IN_HEADING])
        title = ", ".join(f"`{name}`" for name in names[:SHOWN_IN_HEADING])
        rest = ", …" if len(names) > SHOWN_IN_HEADING else ""
        self.out.append(f'{"#" * level} {kind} {title}{rest} {{ #{anchor} data-toc-label="{label}{rest}" }}')

    def adjoins(self, before, item):
        """Whether no empty line, comment or other declaration separates two functions: one comment is for both."""
        between = self.lines[before.line - 1:self.begin_of(item.line - 1)]
        return all(line.strip() and not line.strip().startswith("///") for line in between)

    def groups(self, items):
        """Functions in groups: overloads, and functions that share a comment."""
        groups = []
        for item in items:
            last = groups[-1] if groups else []
            if (item.kind == "function" and last and last[-1].kind == "function" and
                    (last[-1].name == item.name or not item.documented() and self.adjoins(last[-1], item))):
                last.append(item)
            else:
                groups.append([item])
        return groups

    def function_group(self, level, group, scope):
        self.heading(level, list(dict.fromkeys(item.name for item in group)), scope)
        pending = []
        for position, item in enumerate(group):
            pending.append(item)
            following = group[position + 1:position + 2]
            if not following or following[0].documented():
                self.out.append(self.code(pending, scope))
                self.out.append("\n".join(self.comment(shown, scope) for shown in pending))
                pending = []

    def table(self, heads, rows):
        columns = 2 if any(second for _, second in rows) else 1
        head = "".join(f"<th>{cell}</th>" for cell in heads[:columns])
        cells = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row[:columns]) + "</tr>" for row in rows)
        self.out.append(f'<div class="cpp"><table><thead><tr>{head}</tr></thead>\n'
                        f"<tbody>\n{cells}\n</tbody></table></div>")

    def field(self, item, scope):
        declaration = " ".join(self.declaration(item).split())
        name = item.name.rpartition("::")[2]
        kind, _, initial = re.split(rf"(\b{name}\b)", declaration, maxsplit=1)
        kind, initial = (self.text(text.strip(), scope, code=True) for text in (kind, initial))
        return (f'<code id="{anchor_of(item.name)}"><strong>{name}</strong></code>'
                f'<br><code class="type">{kind}{" " + initial if initial else ""}</code>')

    def class_section(self, level, item, scope):
        self.heading(level, [item.name], scope, item.kind)
        plain = self.declaration(item) == f"{item.kind} {item.name.rpartition('::')[2]}"
        self.out += ["" if plain else self.code([item], item.name), self.comment(item, item.name)]
        fields = [member for member in item.members if member.kind == "variable"]
        if fields:
            self.table(("Field", "Meaning"), [(self.field(member, item.name), self.comment(member, item.name))
                                              for member in fields])
        self.sections(min(level + 1, 4), [member for member in item.members if member.kind != "variable"], item.name)

    def enum_section(self, level, item, scope):
        self.heading(level, [item.name], scope, "enum")
        self.out.append(self.comment(item, scope))
        self.table(("Value", "Meaning"), [
            (f'<code id="{anchor_of(item.name + "::" + value.findtext("name"))}">{value.findtext("name")}'
             f'{html.escape(" " + value.findtext("initializer", "")).rstrip()}</code>',
             self.comment(Value(value), scope)) for value in item.node.findall("enumvalue")])

    def sections(self, level, items, scope):
        for group in self.groups(items):
            item = group[0]
            if item.kind in ("class", "struct"):
                self.class_section(level, item, scope)
            elif item.kind == "enum":
                self.enum_section(level, item, scope)
            else:
                self.function_group(level, group, scope)


class Value:
    """A value of an enumeration: only its comment is needed."""

    def __init__(self, node):
        self.node = node


def links_of(items):
    """The addresses of headers, declarations, fields and values, by name."""
    links = {}

    def add(page, item):
        links.setdefault(item.name, f"{page}#{anchor_of(item.name)}")
        for value in item.node.findall("enumvalue"):
            name = f"{item.name}::{value.findtext('name')}"
            links[name] = f"{page}#{anchor_of(name)}"
        for member in item.members:
            add(page, member)

    for header, found in items.items():
        page = header.removesuffix(".h") + ".html"
        links[header] = page
        for item in found:
            add(page, item)
    return links


def index_page(layers, items, links):
    out = ["# C++ reference", "",
           "The public headers, by layer. `<rhizome/rhizome.h>` includes what a first program needs; "
           "[the guide](../../docs/LIBRARY.md) has examples. All names are in the namespace `rhizome`.", ""]
    for layer, headers in layers.items():
        out += [f"## {layer}: {LAYERS[layer]}", "", "| header | declares |", "|---|---|"]
        for header in sorted(headers, key=lambda header: (header.stem != "rhizome", header.stem)):
            found = items.get(header.name, [])
            names = [f"[`{name}`]({links[name].replace('.html', '.md')})" for name in
                     dict.fromkeys(item.name for item in found)]
            shown = ", ".join(names) or "other headers"
            out.append(f"| [`{header.name}`]({header.stem}.md) | {shown} |")
        out.append("")
    return "\n".join(out)


def write(root, folder, pages, documents):
    """Writes the pages into `pages`, and returns their names by layer. `documents`: address by path of the source."""
    layers = {layer: sorted(root.glob(f"{layer}/api/rhizome/*.h")) for layer in LAYERS}
    headers = [header for found in layers.values() for header in found]
    items = read_items(run_doxygen(headers, folder))
    links = {header.name: f"{header.stem}.html" for header in headers} | documents | links_of(items)
    pages.mkdir(parents=True)
    (pages / "index.md").write_text(index_page(layers, items, links))
    for layer, found in layers.items():
        for header in found:
            page = Page(header.name, header.read_text().split("\n"), links)
            page.out += [f"# {header.name}", f"`#include <rhizome/{header.name}>` · library "
                         f"`{LIBRARY.get(layer, 'librhizome')}` · layer `{layer}`"]
            if header.name not in items:
                included = re.findall(r'#include "rhizome/(\w+)\.h"', header.read_text())
                page.out += ["It includes:", "\n".join(f"- [{name}.h]({name}.md)" for name in included)]
            page.sections(2, items.get(header.name, []), "")
            (pages / f"{header.stem}.md").write_text("\n\n".join(filter(None, page.out)) + "\n")
    return {layer: [f"{header.stem}.md" for header in found] for layer, found in layers.items()}
