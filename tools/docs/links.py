#!/usr/bin/env python3
"""Checks the links of a site: every page, file and anchor of the site that a page refers to exists, and no page loads
anything from another host.

usage: tools/docs/links.py SITE     Prints page and link for each that is broken, and exits with 1 if there are any.
"""
import html.parser
import pathlib
import sys
import urllib.parse

SOURCES = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src", "iframe": "src"}


class Page(html.parser.HTMLParser):
    """The anchors of a page, and the links in it."""

    def __init__(self, path):
        super().__init__()
        self.anchors = {"", "top"}
        self.links = []
        self.loaded = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        facts = dict(attributes)
        self.anchors |= {facts[name] for name in ("id", "name") if facts.get(name)}
        link = facts.get(SOURCES.get(tag))
        if link is not None:
            self.links.append(link)
            if tag != "a":
                self.loaded.add(link)


def broken(site):
    """Yields the page and what is wrong, for each link whose target is missing."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    if not pages:
        sys.exit(f"{site}: no page")
    for path, page in pages.items():
        for link in sorted(set(page.links)):
            address = urllib.parse.urlsplit(link)
            if address.scheme or address.netloc:
                if link in page.loaded and address.scheme != "data":
                    yield path.relative_to(site), f"loaded from another host: {link}"
                continue
            name = urllib.parse.unquote(address.path)
            folder = site if name.startswith("/") else path.parent  # the page of error 404 has links from the root
            target = (folder / name.lstrip("/")).resolve() if name else path
            if target.is_dir():
                target /= "index.html"
            anchor = urllib.parse.unquote(address.fragment)
            if not target.is_file() or (target in pages and anchor not in pages[target].anchors):
                yield path.relative_to(site), f"broken link: {link}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = [*broken(pathlib.Path(sys.argv[1]).resolve())]
    for page, fault in found:
        print(f"{page}: {fault}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
