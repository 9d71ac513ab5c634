#!/usr/bin/env bash
# The documentation site is built, a browser displays its pages, the index of the search contains them, and broken links
# are reported with their page.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
if [ ! -x "$RHIZOME_SOURCE/build/docs-venv/bin/mkdocs" ] || ! command -v doxygen >/dev/null; then
  skip "the tools of the documentation site are not installed (tools/install_deps.sh --docs)"
fi
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  skip "no chromium is installed (tools/install_deps.sh --tests)"
cd "$work"

expect_exit 0 "$RHIZOME_SOURCE/tools/docs.sh" "$work/site" || finish
site=$work/site

# page FILE HEADING: the browser, without access to any host, displays the page with this heading.
page() {
  "$browser" --headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run \
    --host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir="$work/profile" --dump-dom "file://$site/$1" \
    >page.dom 2>browser.err || fail "the browser: $(tail -n 3 browser.err)"
  python3 - "$2" <<'PY' || fail "the page $1 does not display the heading $2"
import html.parser, sys

class Headings(html.parser.HTMLParser):
    level, texts, scripts_ran = None, [], False
    def handle_starttag(self, tag, attributes):
        if tag == "html":
            self.scripts_ran = "js" in (dict(attributes).get("class") or "").split()
        if tag in ("h1", "h2", "h3"):
            self.level = tag
            self.texts.append("")
    def handle_endtag(self, tag):
        if tag == self.level:
            self.level = None
    def handle_data(self, data):
        if self.level:
            self.texts[-1] += data

headings = Headings()
headings.feed(open("page.dom").read())
assert headings.scripts_ran, "the scripts of the page did not run"
assert sys.argv[1] in [text.strip().removesuffix("¶").strip() for text in headings.texts], headings.texts
PY
}
page index.html Rhizome
page reference/cpp/graph.html Graph::Open
page reference/python/graph.html rhizome.open

# The comments of a header: paragraphs with labels, links to other declarations, and text that looks like a tag.
contains() { grep -qF -- "$2" "$site/$1" || fail "$1 does not contain: $2"; }
contains reference/cpp/graph.html '<strong>Errors:</strong> as <a href="store.html#Store.Open"><code>Store::Open</code>'
contains reference/cpp/sampler.html '<code id="SamplerOptions.fanouts">'
contains reference/cpp/train_options.html 'scratch/&lt;name&gt;'
contains reference/python/stores.html '<li><code>memory</code>: '
contains reference/python/results.html '<td>vertex ids, int64 [n]</td>'
contains docs/tutorials/pyg.py.html 'src="pyg_loss.svg"'
contains docs/examples/fraud.py.html '<span class="nf">average_precision</span>'

python3 - "$site/search/search_index.json" <<'PY' || fail "the index of the search"
import json, sys
found = {entry["location"]: entry["title"] for entry in json.load(open(sys.argv[1]))["docs"]}
for location in ("index.html", "docs/CLI.html#verbs", "storage/FORMAT.html", "reference/cpp/graph.html#Graph.Open",
                 "reference/python/graph.html#rhizome.open"):
    assert location in found, location
PY

# A page that is missing, and one that loads something from elsewhere.
expect_exit 0 "$RHIZOME_SOURCE/tools/docs.sh" --check "$site"
mv "$site/docs/GLOSSARY.html" .
echo '<img src="http://elsewhere.invalid/x.png">' >>"$site/docs/CLI.html"
expect_exit 1 "$RHIZOME_SOURCE/tools/docs.sh" --check "$site"
expect_says 'index.html: broken link: docs/GLOSSARY.html' \
  'docs/CLI.html: loaded from another host: http://elsewhere.invalid/x.png'

# Only an earlier site is replaced.
mkdir other && touch other/file
expect_exit 1 "$RHIZOME_SOURCE/tools/docs.sh" "$work/other"
expect_says 'is not an earlier site'
[ -e other/file ] || fail "a folder that is no site was replaced"

# Broken links in a copy of the sources: the build fails, and leaves the last site.
mkdir -p copy/build copy/tools
(cd "$RHIZOME_SOURCE" && cp -r --parents docs tools/docs tools/docs.sh python/rhizome ./*/api ./*.md ./*/*.md LICENSE \
  "$work/copy")
ln -s "$RHIZOME_SOURCE/build/docs-venv" copy/build/docs-venv
printf '\n[a page](NOWHERE.md), [a section](CLI.md#nowhere), [a file](../nowhere.txt), [a section](CLI.md#verbs)\n' \
  >>copy/docs/MODELS.md
expect_exit 1 copy/tools/docs.sh
expect_says 'docs/MODELS.html: broken link: NOWHERE.md' 'docs/MODELS.html: broken link: CLI.html#nowhere' \
  'docs/MODELS.html: broken link: ../nowhere.txt'
[ "$(grep -c 'broken link' err)" -eq 3 ] || fail "other links are reported, too: $(cat err)"
[ ! -e copy/build/site ] || fail "a site with broken links was kept"
finish
