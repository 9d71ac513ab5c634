#!/usr/bin/env python3
"""Writes the sources of the documentation site into a folder, for tools/docs.sh.

usage: tools/docs/stage.py FOLDER     writes FOLDER/mkdocs.yml and FOLDER/pages

The pages are those that docs/mkdocs.yml names, those below docs/, and those that they link to, at the same paths as in
the repository, so that their links remain valid. A tutorial or an example becomes a page, and so does another file that a
page links to, such as LICENSE. The API reference is generated from python/rhizome and from the public headers.
"""
import ast
import pathlib
import re
import shutil
import sys

import cpp_reference
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^()\s#:]+)((?:#[^()\s]*)?)\)")
FENCE = re.compile(r"(?m)^(```\w+) .+")  # words for tests behind the language
PICTURES = (".svg", ".png")
# The pages of the Python reference: title, and the modules whose public names they show.
PYTHON = {
    "graph": ("Graphs", ("_graph", "_array", "_batch", "_masked", "_sampler")),
    "stores": ("Stores", ("_ingest", "_schema", "_sniff", "_stores")),
    "training": ("Training and inference", ("_loader", "_verbs")),
    "links": ("Links", ("_links",)),
    "results": ("Results", ("_types",)),
    "errors": ("Errors", ("errors",)),
}
PACKAGES = {"pyg": "PyTorch Geometric", "graphbolt": "GraphBolt"}
QUOTES = '"' * 3  # around a docstring
ALONE = "---\nhide: [navigation]\n---\n\n"
HIDDEN = ("__version__", "errors")
CPP = "reference/cpp"


def named_in(tree):
    """The paths that the navigation names."""
    for entry in tree if isinstance(tree, list) else tree.values():
        if isinstance(entry, str):
            yield entry
        else:
            yield from named_in(entry)


def replaced(tree, headers):
    """The navigation with the pages of the headers in the place of their folder."""
    if isinstance(tree, list):
        return [replaced(entry, headers) for entry in tree]
    if isinstance(tree, dict):
        return {name: replaced(entry, headers) for name, entry in tree.items()}
    return headers if tree == CPP else tree


def script(text):
    """A script as Markdown, in cells if it has any, "# %%"."""
    docstring = ast.get_docstring(ast.parse(text))
    first, _, rest = docstring.partition("\n")
    out = [f"# {first.rstrip('.')}", rest]
    if "\n# %%" not in text:
        out.append(f"```python\n{text.split(QUOTES, 2)[2].strip()}\n```")
    for cell in re.split(r"(?m)^# %%", text)[1:]:
        head, _, body = cell.partition("\n")
        if head.strip() == "[markdown]":
            out.append(re.sub(r"(?m)^(#.*)\n", r"\1\n\n", re.sub(r"(?m)^# ?", "", body)))
        else:
            out.append(f"```python\n{body.strip()}\n```")
            out += [f"![{name}]({name})" for name in re.findall(r'"(\w+\.svg)"', body)]
    return "\n\n".join(out) + "\n"


class Site:
    def __init__(self, folder, alone):
        self.pages = folder / "pages"
        self.alone = alone  # pages that are a whole part of the navigation
        self.done = set()

    def add(self, path):
        """Adds a file of the repository, and what it links to. Links to files that are missing are left as they are."""
        if path in self.done or not (ROOT / path).is_file():
            return
        self.done.add(path)
        target = self.pages / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(PICTURES):
            shutil.copy(ROOT / path, target)
            return
        text = (ROOT / path).read_text()
        if not path.endswith(".md"):
            language = "cpp" if path.endswith(".cc") else "text"
            text = script(text) if path.endswith(".py") else f"# {target.name}\n\n```{language}\n{text.rstrip()}\n```\n"
            target = target.with_name(target.name + ".md")

        def linked(found):
            linked_path = (ROOT / path).parent.joinpath(found[1]).resolve()
            if not linked_path.is_relative_to(ROOT) or not linked_path.is_file():
                return found[0]
            self.add(str(linked_path.relative_to(ROOT)))
            page = "" if found[1].endswith((".md", *PICTURES)) else ".md"
            return f"]({found[1]}{page}{found[2]})"

        text = FENCE.sub(r"\1", LINK.sub(linked, text))
        target.write_text((ALONE if path in self.alone else "") + text)

    def documents(self):
        """Addresses of the pages, seen from reference/cpp, by their paths in the repository."""
        return {path: "../../" + re.sub(r"(README)?\.md$", lambda end: "index.html" if end[1] else ".html", path)
                for path in self.done if path.endswith(".md")}


def public_names(file):
    """The names of __all__, by the module that each is imported from."""
    tree = ast.parse(file.read_text())
    exported = next(ast.literal_eval(node.value) for node in tree.body
                    if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    modules = {name.asname or name.name: node.module for node in tree.body if isinstance(node, ast.ImportFrom)
               for name in node.names}
    return {name: modules[name] for name in exported if name not in HIDDEN}


def python_reference(pages):
    pages.mkdir(parents=True)
    names = public_names(ROOT / "python/rhizome/__init__.py")
    shown = [module for _, modules in PYTHON.values() for module in modules]
    unknown = sorted({module for module in names.values() if module not in shown})
    if unknown:
        sys.exit(f"tools/docs/stage.py: PYTHON has no page for the modules {', '.join(unknown)}")
    tables = ["# Python reference", "", "All names are imported with `import rhizome`; "
              "[the guide](../../docs/PYTHON.md) has examples.", ""]

    def page(stem, title, package, listed):
        text = "\n\n".join([f"# {title}", *(f"::: {package}.{name}" for name in listed)])
        (pages / f"{stem}.md").write_text(text + "\n")
        links = (f"[`{name}`]({stem}.md#{package}.{name})" for name in listed)
        tables.extend([f"## {title}", "", f"`{package}`: " + ", ".join(links), ""])

    for stem, (title, modules) in PYTHON.items():
        page(stem, title, "rhizome", [name for module in modules for name in sorted(names, key=str.swapcase)
                                      if names[name] == module])
    for name, title in PACKAGES.items():
        listed = public_names(ROOT / f"python/rhizome/{name}/__init__.py")
        page(name, title, f"rhizome.{name}", sorted(listed, key=str.swapcase))
    (pages / "index.md").write_text("\n".join(tables))


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    settings, mark, navigation = (ROOT / "docs/mkdocs.yml").read_text().partition("\nnav:\n")
    navigation = yaml.safe_load(navigation)
    site = Site(folder, [path for part in navigation for path in part.values() if isinstance(path, str)])
    documents = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))
    for path in [*named_in(navigation), *documents]:
        site.add(path if (ROOT / path).is_file() else path.removesuffix(".md"))
    shutil.copy(ROOT / "tools/docs/site.css", site.pages / "site.css")
    python_reference(site.pages / "reference/python")
    layers = cpp_reference.write(ROOT, folder, site.pages / CPP, site.documents())
    headers = [f"{CPP}/index.md", *({layer: [f"{CPP}/{page}" for page in found]} for layer, found in layers.items())]
    (folder / "mkdocs.yml").write_text(settings + mark + yaml.safe_dump(replaced(navigation, headers), sort_keys=False))


if __name__ == "__main__":
    main()
