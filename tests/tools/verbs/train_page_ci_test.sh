#!/usr/bin/env bash
# The HTML report of a training in a browser: charts and tables are there for each task, foreign
# text remains text, and the page makes no network requests.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
has_gnn || skip "this build has no librhizome_gnn"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  skip "no chromium is installed (tools/install_deps.sh --tests)"
cd "$work"

rhizome generate planted --out demo --scale 8 --dim 6 --classes 4 >/dev/null || fail "generate"
"$RHIZOME_SOURCE/build/venv/bin/python" - <<'PY' || fail "arrays"
import numpy as np
x = np.load("demo/features.npy")
np.save("flags.npy", (x[:, :3] > 0).astype(np.uint8))
np.save("numbers.npy", x[:, :2].astype(np.float32))
np.save("binary.npy", (x[:, :1] > 0).astype(np.int64))
np.save("many.npy", (np.arange(len(x)) % 40).astype(np.int64).reshape(-1, 1))
PY
store='<b id=evil>&"s.rz'
weights='<script>document.title="x"<script>.st'
rhizome ingest "$store" --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy --array flags=flags.npy --array numbers=numbers.npy --array binary=binary.npy \
  --array many=many.npy >/dev/null || fail "ingest"

# browse NAME: leaves the page NAME.html as the browser understood it in NAME.dom, and in NAME.net what was asked
# for. The browser itself would ask its makers for news: no name is resolved, so nothing leaves this machine.
browse() {
  "$browser" --headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run \
    --host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir="$work/profile" --log-net-log="$work/$1.net" --dump-dom \
    "file://$work/$1.html" >"$1.dom" 2>browser.err || fail "the browser: $(tail -n 3 browser.err)"
}

# asked NAME: prints what the page asked for; not the page itself, and not what the browser asks by itself.
asked() {
  python3 - "$1" <<'PY'
import json, sys
log = json.load(open(f"{sys.argv[1]}.net"))
for event in log["events"]:
    facts = event.get("params", {})
    if facts.get("initiator", "not an origin") != "not an origin" and not facts.get("url", "").startswith("data:"):
        print(facts["url"])
PY
}

# A page that asks is noticed.
echo '<img src="http://elsewhere.invalid/x.png">' >asking.html
browse asking
asked asking | grep -q 'http://elsewhere.invalid/x.png' || fail "a request of a page was not noticed"

# page NAME FLAGS...: trains, and leaves the page as the browser understood it in NAME.dom.
page() {
  local name=$1
  shift
  rhizome train "$store" --hidden 8 --epochs 3 --report "$name.html" --out "$weights" "$@" >out 2>err || fail "train $name: $(cat err)"
  browse "$name"
  [ -z "$(asked "$name")" ] || fail "the page $name asks for $(asked "$name")"
  python3 - "$name" "$store" "$weights" <<'PY' || fail "the page $name"
import html.parser, sys
name, store, weights = sys.argv[1:]
wanted = {"classes": (["metrics", "confusion", "classes", "seeds"], 8, 0),
          "binary": (["metrics", "confusion", "classes"], 10, 0),
          "flags": (["metrics", "classes"], 10, 0),
          "numbers": (["metrics", "columns"], 8, 2),
          "many": (["metrics", "classes"], 8, 1),
          "untested": (["seeds"], 8, 0),
          "links": (["links", "seeds"], 5, 0)}[name]

class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.classes, self.text, self.outside = [], [], [], []
    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        facts = dict(attributes)
        self.classes.append((tag, facts.get("class")))
        self.outside += [(tag, a) for a in facts if a in ("src", "href", "srcset", "data", "action", "id")
                         or a.startswith("on") or "url(" in (facts[a] or "")]
    def handle_data(self, data):
        self.text.append(data)

page = Page()
page.feed(open(f"{name}.dom").read())
tables, charts, maps = wanted
for table in tables + ["network", "weights", "memory", "options"]:
    assert ("table", table) in page.classes, table
assert page.classes.count(("svg", "chart")) == charts, page.classes.count(("svg", "chart"))
assert page.classes.count(("svg", "heatmap")) == maps
assert ("table", "confusion") in page.classes or name not in ("classes", "binary")
text = "".join(page.text)
assert store in text and weights in text, "foreign text is not there as it is"
assert "script" not in page.tags and "link" not in page.tags and "b" not in page.tags, "foreign text became markup"
assert not page.outside, page.outside
assert "@import" not in text and "url(" not in text
PY
}

page classes --seeds 2
page binary --labels binary --task binary
page flags --labels flags
page numbers --labels numbers
page many --labels many
page untested --no-test

# The ranks of test edges are those of the JSON report.
store='<b id=evil>&"held.rz'
rhizome ingest "$store" --edges demo/edges.npy --array feat=demo/features.npy --hold-out test=.1 >/dev/null || fail "ingest, held out"
page links --task link --dim 8 --negatives 16 --test "$store.test.tsv.zst" --json
python3 - <<'PY' || fail "the ranks of the page links"
import json
test, page = json.load(open("out"))["test"], open("links.html").read()
row = page[page.index("<table class=\"links\">"):]
row = row[row.index("<td>all</td>"):].split("</tr>")[0]
for figure in (f"{test['ranks']:,}", f"{test['mrr']:.4f}", f"{100 * test['hits']['10']:.1f} %", f"{test['mean_rank']:.1f}"):
    assert f">{figure}<" in row, (figure, row)
PY
finish
