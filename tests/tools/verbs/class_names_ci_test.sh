#!/usr/bin/env bash
# Class names and texts, from tables through a model to predictions, compared with the lines of the
# tables in Python; and in look-ups, updates, compaction, backup, repair and exports.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

# 300 papers of three classes whose features tell the class. Names have quotes, commas and UTF-8.
python3 - <<'END'
import csv, random, struct
random.seed(7)
names = ["théorie", 'deep "learning"', "vision, video"]
with open("papers.csv", "w", newline="") as file, open("truth.csv", "w", newline="") as truth:
    out, known = csv.writer(file), csv.writer(truth)
    out.writerow(["id", "label", "split", "title", "x0", "x1"])
    for i in range(300):
        c = i % 3
        label = names[c] if i % 10 else ""          # a tenth has no class
        split = "none" if not label else ("train", "train", "train", "valid", "test")[i // 3 % 5]
        title = f'On "{i}", and é' if i % 7 else ""
        out.writerow([f"p{i}", label, split, title, c - 1 + random.gauss(0, .05), (c == 1) + random.gauss(0, .05)])
        known.writerow([f"p{i}", names[c], title])
with open("cites.csv", "w", newline="") as file:
    out = csv.writer(file)
    out.writerow(["src", "dst", "memo"])
    for i in range(900):
        a = random.randrange(300)
        out.writerow([f"p{a}", f"p{(a + 3 * random.randrange(1, 99)) % 300}", ("see, also", "zitiert", "")[i % 3]])
END
python3 - <<'END' || fail "features"
import csv, struct
with open("papers.csv", newline="") as file:
    rows = [(float(r["x0"]), float(r["x1"])) for r in csv.DictReader(file)]
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 2), }" % len(rows)
head = head.ljust(117) + "\n"
with open("feat.npy", "wb") as out:
    out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
    for row in rows: out.write(struct.pack("<2f", *row))
END

for how in auto always; do
  rhizome ingest "$how.rz" --edges cites.csv --columns src,dst,memo --nodes papers.csv \
    --node-columns id,label,split,title,-,- --header --array feat=feat.npy --partitions 2 --spill "$how" \
    >/dev/null || fail "ingest --spill $how"
  rhizome verify "$how.rz" >/dev/null || fail "verify $how"
done
mv auto.rz s.rz

# --- the same without a word about the columns
rhizome ingest found.rz cites.csv papers.csv >/dev/null || fail "ingest without columns"
rhizome export found.rz --vertices --out found.csv >/dev/null || fail "export --vertices of found.rz"
python3 - <<'END' || fail "columns that were found"
import csv
read = lambda name: {r["id"]: (r["label"], r["title"]) for r in csv.DictReader(open(name, newline=""))}
assert read("papers.csv") == read("found.csv")
END
printf 'id,label\n0,3\n1,4\n2,drama\n' >mixed.csv
printf 'src,dst\n0,1\n1,2\n' >two.csv
rhizome ingest mixed.rz two.csv mixed.csv --json >o.json || fail "integers, then a name"
expect_json o.json 'any("'"'label' has texts, because of 'drama' at mixed.csv:4"'" in note for note in j["notes"])'

# --- look-ups
rhizome info s.rz --json >o.json || fail "info"
expect_json o.json '{a["name"]: a["type"] for a in j["arrays"] if a["type"]} == {"label": "text", "title": "text", "memo.p0000": "text", "memo.p0001": "text"}'
rhizome get s.rz p1 --json >o.json || fail "get"
expect_json o.json 'j["label"] == "deep \"learning\""' \
  '[a["values"] for a in j["arrays"] if a["name"] == "title"] == [["On \"1\", and é"]]'
rhizome get s.rz p0 --json >o.json || fail "get without a class"
expect_json o.json '[a["values"] for a in j["arrays"] if a["name"] == "title"] == [[None]]'
rhizome get s.rz p2 --array label --json >o.json || fail "get --array"
expect_json o.json 'j["values"] == ["vision, video"] and j["dtype"] == "text"'
rhizome neighbors s.rz p3 --json >o.json || fail "neighbors"
expect_json o.json 'all(n["attributes"]["memo"] in ("see, also", "zitiert", None) for n in j["neighbors"])'

# --- updates: texts by name; a class that is new is refused
cat >put.jsonl <<'END'
{"id": "p0", "rows": {"label": "théorie", "title": "On \"1\", and é"}}
{"id": "p10", "rows": {"label": ["vision, video"], "title": null}}
{"src": "p1", "dst": "p2", "memo": "zitiert"}
{"src": "p1", "dst": "p5"}
END
cp -r s.rz put.rz
rhizome put put.rz put.jsonl >/dev/null || fail "put"
rhizome changes put.rz --out changes.jsonl >/dev/null || fail "changes"
cp -r s.rz follow.rz
rhizome put follow.rz changes.jsonl --create-types >/dev/null || fail "put what changes wrote"
for store in put.rz follow.rz; do
  for again in no yes; do
    rhizome get "$store" p0 p10 --json >o.json || fail "get after put"
    expect_json o.json '[v["label"] for v in j["vertices"]] == ["théorie", "vision, video"]' \
      '[[a["values"][0] for a in v["arrays"] if a["name"] == "title"] for v in j["vertices"]] == [["On \"1\", and é"], [None]]'
    rhizome export "$store" --edges --out edges.csv >/dev/null || fail "export --edges"
    grep -qx 'p1,p2,zitiert' edges.csv || fail "$store: the text of an edge that was put"
    grep -qx 'p1,p5,' edges.csv || fail "$store: an edge without a text"
    rhizome verify "$store" >/dev/null || fail "verify $store"
    rhizome compact "$store" --memory 64M >/dev/null || fail "compact $store"
  done
done
echo '{"id": "p0", "rows": {"label": "theory"}}' >bad.jsonl
expect_exit 1 rhizome put put.rz bad.jsonl
expect_says "bad.jsonl:1" "'theory' is not one of the 3 classes of 'label' ('deep \"learning\"', 'théorie', 'vision, video')"
printf 'p0\ttheory\n' >bad.tsv
expect_exit 1 rhizome put put.rz bad.tsv --array label
expect_says "bad.tsv:1" "'theory' is not one of the 3 classes"

# --- arrays: rename, drop; backup; repair
rhizome array rename put.rz title headline >/dev/null || fail "rename"
rhizome get put.rz p0 --array headline --json >o.json || fail "get headline"
expect_json o.json 'j["values"] == ["On \"1\", and é"]'
rhizome array drop put.rz headline >/dev/null || fail "drop"
[ ! -e put.rz/generations/*/texts/headline ] || fail "texts of a dropped array remain"
rhizome backup s.rz b >/dev/null && rhizome restore b copy.rz >/dev/null || fail "backup"
rhizome verify copy.rz >/dev/null || fail "verify the copy"
chunk=$(echo copy.rz/generations/000001/texts/title/c.0)
printf 'xxxx' | dd of="$chunk" bs=1 seek=9 conv=notrunc 2>/dev/null
expect_exit 3 rhizome verify copy.rz
rhizome repair copy.rz >o || fail "repair"
grep -qF "LOST array 'title': texts of its codes lost" o || fail "repair says $(cat o)"
rhizome verify copy.rz >/dev/null || fail "verify after the repair"
rhizome export copy.rz --vertices --out o >/dev/null && ! head -1 o | grep -q title || fail "a lost array remains: $(head -1 o)"
rhizome restore b again.rz >/dev/null && rhizome get again.rz p0 --array title >/dev/null || fail "restore again"

# --- exports: the vertices and edges are those of the tables; a folder is read back whole
rhizome export s.rz --vertices --out vertices.csv >/dev/null || fail "export --vertices"
python3 - <<'END' || fail "exported vertices and edges"
import csv
read = lambda name: list(csv.DictReader(open(name, newline="")))
given, found = {r["id"]: r for r in read("papers.csv")}, {r["id"]: r for r in read("vertices.csv")}
assert given.keys() == found.keys()
for i, row in given.items():
    assert (row["label"], row["title"]) == (found[i]["label"], found[i]["title"]), (row, found[i])
END
rhizome export s.rz --edges --out edges.csv >/dev/null || fail "export --edges"
python3 - <<'END' || fail "exported edges"
import csv
from collections import Counter
read = lambda name: Counter((r["src"], r["dst"], r["memo"]) for r in csv.DictReader(open(name, newline="")))
assert read("cites.csv") == read("edges.csv")
END
rhizome export s.rz --store folder >/dev/null || fail "export --store"

# --- the texts are Zarr arrays of strings
python3 - <<'END'
import sys
try:
    import zarr
except ImportError:
    sys.exit(0)
import glob
texts = zarr.open_array(glob.glob("s.rz/generations/*/texts/label")[0], mode="r")
assert list(texts[:]) == ['deep "learning"', "théorie", "vision, video"], list(texts[:])
END
[ $? = 0 ] || fail "texts as Zarr"

# --- a look-up does not read a large dictionary
python3 - <<'END'
with open("many.csv", "w") as file:
    file.write("id,title\n")
    for i in range(1_000_000): file.write(f"{i},Title {i * 7919 % 1_000_003} of a very long series of titles\n")
END
rhizome ingest many.rz two.csv many.csv >/dev/null || fail "ingest 1e6 texts"
rhizome ingest few.rz --edges two.csv --nodes many.csv --node-columns id,- --header >/dev/null || fail "ingest no texts"
python3 - <<'END' || fail "memory of a look-up"
import json, os, subprocess, sys
def get(store):
    program = "import os, resource, sys; code = os.spawnv(os.P_WAIT, os.environ['RHIZOME'], ['rhizome', 'get', sys.argv[1], '654321', '--json']); print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    out = subprocess.run([sys.executable, "-c", program, store], capture_output=True, text=True, check=True).stdout
    text, _, numbers = out.rstrip().rpartition("\n")
    code, kib = map(int, numbers.split())
    assert code == 0, out
    return json.loads(text), kib
(many, with_texts), (_, without) = get("many.rz"), get("few.rz")
titles = [a["values"] for a in many["arrays"] if a["name"] == "title"]
assert titles == [[f"Title {654321 * 7919 % 1_000_003} of a very long series of titles"]], titles
texts = sum(os.path.getsize(os.path.join(top, f)) for top, _, files in os.walk("many.rz") for f in files if "/texts/" in top)
assert texts > 1 << 19, texts  # compressed
assert with_texts - without < 16 << 10, (with_texts, without)  # KiB; the texts have 44 MiB
END

# --- a model has the names, and so have its predictions, also of another store
has_gnn || finish
rhizome train s.rz --features feat --epochs 40 --batch-size 32 --out m.safetensors --report r.html --json >o.json ||
  fail "train"
expect_json o.json 'j["class_names"] == ["deep \"learning\"", "théorie", "vision, video"]'
grep -q 'deep &quot;learning&quot;' r.html || fail "the page of a training does not name the classes"
for form in csv tsv; do
  rhizome export s.rz --predictions m.safetensors --features feat --out "p.$form" >/dev/null || fail "predictions"
  FORM=$form python3 - <<'END' || fail "predictions as $form"
import csv, os
form = os.environ["FORM"]
options = {} if form == "csv" else {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
rows = list(csv.DictReader(open("p." + form, newline=""), **options))
truth = {r[0]: r[1] for r in csv.reader(open("truth.csv", newline=""))}
assert list(rows[0]) == ["id", "class", "probability"] and len(rows) == 300
assert {r["class"] for r in rows} <= set(truth.values())
right = sum(r["class"] == truth[r["id"]] for r in rows)
assert right > 270, right
END
done
finish
