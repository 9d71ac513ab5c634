"""An extension of griffe: docstrings of python/rhizome as Markdown.

Lines of a docstring that begin with ``name``: become a list, and those that begin with Errors: and the like become
paragraphs. Comments that begin with #: document attributes; the fields of a named tuple become a table. Special methods
without a docstring are left out. The code of an exception is a line of its docstring.
"""
import re

import griffe

LABELS = "Errors|Ids|Memory|Ownership|Processes|Returns|Source|Threads"
LABEL = re.compile(rf"(?:^|(?<=[.;:)]) +|(?<=\n))({LABELS}): ")
NAMES = r"``\w+``(?:(?:, | and )``\w+``)*"
SECOND = re.compile(rf"(?<=\.) (?={NAMES}: )")  # a parameter behind another in the same line
PARAMETER = re.compile(rf"^(?={NAMES}(?:, [\w ]+)?: )", re.MULTILINE)


def as_markdown(text):
    """Returns a docstring with lists of parameters and paragraphs of labels. Indented code is left as it is."""
    blocks = []
    for block in re.split(r"\n\n+", text):
        if block.startswith("    "):
            blocks.append(block)
            continue
        block = SECOND.sub("\n", block)
        for part in LABEL.sub(r"\n\n**\1:** ", block).strip().split("\n\n"):
            listed = PARAMETER.sub("- ", part)
            blocks.append(listed if listed.startswith("- ") else listed.replace("\n- ", "\n\n- ", 1))
    return "\n\n".join(blocks)


def linked(text, names):
    """Returns Markdown in which the exceptions in paragraphs of errors are links."""
    word = re.compile(rf"(?<![\w`.])({'|'.join(names)})(?![\w`])")
    return re.sub(r"(?m)^\*\*Errors:.*(?:\n.+)*", lambda part: word.sub(r"[\1][rhizome.\1]", part[0]), text)


def comment_of(attribute):
    """The text of the comment #: behind an attribute, or in the lines above it."""
    lines = attribute.lines_collection[attribute.filepath]
    behind = re.search(r"#: (.*)", " ".join(lines[attribute.lineno - 1:attribute.endlineno]))
    if behind:
        return behind[1]
    above = []
    for line in reversed(lines[:attribute.lineno - 1]):
        found = re.match(r"\s*#: (.*)", line)
        if not found:
            break
        above.insert(0, found[1])
    return " ".join(above)


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


class Docstrings(griffe.Extension):
    def on_package(self, *, pkg, **_):
        self.errors = [name for name in pkg.exports if name in pkg["errors"].members]
        self.visit(pkg)

    def visit(self, thing):
        if thing.docstring:
            thing.docstring.value = linked(as_markdown(thing.docstring.value), self.errors)
        for member in [*thing.members.values()]:
            if member.is_alias:
                continue
            if member.is_attribute and not member.docstring and (comment := comment_of(member)):
                member.docstring = griffe.Docstring(comment, parent=member)
            if member.name.startswith("__") and not member.docstring:
                thing.del_member(member.name)
                continue
            self.visit(member)
        if thing.is_class and "NamedTuple" in map(str, thing.bases):
            self.tabulate(thing)
        if thing.is_class and thing.parent.name == "errors":
            self.shorten(thing)

    @staticmethod
    def shorten(thing):
        """Leaves out the members of an exception, which the docstring names, except for the value of its code."""
        if "code" in thing.members:
            thing.docstring.value += f"\n\n``code``: `{thing['code'].value}`"
        for name in [*thing.members]:
            if not thing[name].docstring:
                thing.del_member(name)

    @staticmethod
    def tabulate(thing):
        """Moves the fields of a named tuple into a table of its docstring."""
        rows = ["| field | type | meaning |", "|---|---|---|"]
        for name, field in [*thing.members.items()]:
            if field.is_attribute and not name.startswith("_") and "property" not in field.labels:
                initial = f" = {field.value}" if field.value is not None else ""
                meaning = field.docstring.value if field.docstring else ""
                rows.append(f"| `{name}` | `{cell(str(field.annotation) + initial)}` | {cell(meaning)} |")
                thing.del_member(name)
        text = thing.docstring.value if thing.docstring else ""
        thing.docstring = griffe.Docstring("\n\n".join([text, "\n".join(rows)]), parent=thing)
