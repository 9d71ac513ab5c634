#!/usr/bin/env bash
# Typed graphs on the command line: the ends of edge types in info, after puts, a compaction, by a
# follower, in a backup and in an exported folder; arrays of one vertex type at ingestion.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

python3 - <<'PY'
import struct
def npy(name, rows):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), len(rows[0]))
    head = head.ljust(117) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(b"".join(struct.pack("<%df" % len(row), *row) for row in rows))
npy("papers.npy", [[1, 2], [3, 4], [5, 6]])
npy("authors.npy", [[7, 8, 9], [10, 11, 12]])
PY
printf 'ann\tp1\twrites\nbob\tp2\twrites\np1\tp2\tcites\np3\tp1\tcites\np1\tv\tin\n' >edges.tsv
printf 'p1\tpaper\nann\tauthor\np2\tpaper\nbob\tauthor\nv\tvenue\np3\tpaper\n' >nodes.tsv
input=(--edges edges.tsv --columns src,dst,type --nodes nodes.tsv --node-columns id,type --partitions 2)

# expect_info STORE EXPRESSION: a Python expression over the fields of info.
expect_info() {
  rhizome info "$1" --json >info.json || fail "info $1"
  python3 - "$2" <<'PY' || fail "info $1: $2: $(cat info.json)"
import json, sys
f = json.load(open("info.json"))
ends = dict(zip(f["edge_type_names"], f["edge_ends"]))
counts = dict(zip(f["vertex_type_names"], f["vertex_counts"]))
sys.exit(0 if eval(sys.argv[1]) else 1)
PY
}

# --- Ends and counts
rhizome ingest g.rz "${input[@]}" --array paper:feat=papers.npy --array author:author_feat=authors.npy >/dev/null ||
  fail "ingest"
before='ends == {"writes": ["author", "paper"], "cites": ["paper", "paper"], "in": ["paper", "venue"]}'
expect_info g.rz "$before and counts == {'paper': 3, 'author': 2, 'venue': 1}"
rhizome info g.rz >text || fail "info"
grep -q 'paper (3), author (2), venue (1)' text || fail "no counts: $(cat text)"
grep -q 'writes (author to paper), cites (paper to paper), in (paper to venue)' text || fail "no ends: $(cat text)"
rhizome backup g.rz backups >/dev/null && rhizome restore backups restored.rz >/dev/null || fail "backup"
expect_info restored.rz "$before"
rhizome export g.rz --store folder >/dev/null && rhizome ingest back.rz folder >/dev/null || fail "export --store"
expect_info back.rz "$before"

printf 'bob\tv\twrites\nv\tann\thosts\n' | rhizome put g.rz - --columns src,dst,type --create-types >/dev/null ||
  fail "put"
rhizome changes g.rz --out changes.jsonl >/dev/null && rhizome put restored.rz changes.jsonl --create-types >/dev/null ||
  fail "changes | put"
after='ends == {"writes": ["author", None], "cites": ["paper", "paper"], "in": ["paper", "venue"], "hosts": ["venue", "author"]}'
for store in g.rz restored.rz; do expect_info $store "$after"; done
rhizome compact g.rz >/dev/null || fail "compact"
expect_info g.rz "$after and f['delta_entries'] == 0"
rhizome info g.rz | grep -q 'writes (author to several)' || fail "info does not say several"
rhizome verify g.rz >/dev/null || fail "verify"

printf 'a\tb\n' >plain.tsv
rhizome ingest plain.rz --edges plain.tsv >/dev/null || fail "ingest"
expect_info plain.rz 'f["edge_ends"] == [] and f["vertex_counts"] == [2]'

# --- Rows of arrays belong to the vertices of their type
for store in g.rz restored.rz back.rz; do
  for check in "p1 feat 1 2" "p2 feat 3 4" "p3 feat 5 6" "ann author_feat 7 8 9" "bob author_feat 10 11 12"; do
    # shellcheck disable=SC2086
    set -- $check
    id=$1 array=$2
    shift 2
    rhizome get "$store" "$id" --array "$array" --json >row.json || fail "get $store $id $array"
    python3 - "$@" <<'PY' || fail "$store, $array of $id: $(cat row.json)"
import json, sys
text = json.dumps(json.load(open("row.json")))
wanted = ", ".join("%.1f" % float(value) for value in sys.argv[1:])
sys.exit(0 if wanted in text else 1)
PY
  done
  expect_exit 1 rhizome get "$store" ann --array feat && expect_says "author" "paper"
done

# --- What shows or exports all arrays knows that each has the vertices of one type
rhizome get back.rz ann --json >o.json || fail "get ann"
expect_json o.json '[a["name"] for a in j["arrays"]] == ["author_feat"]'
expect_exit 0 rhizome get back.rz v
expect_info back.rz '{a["name"]: a["vertex_type"] for a in f["arrays"]}.items() >= {"feat": "paper", "author_feat": "author"}.items()'
rhizome info back.rz | grep -q "author_feat .* author$" || fail "info has no vertex type of author_feat"
expect_exit 0 rhizome export back.rz --array author_feat --out rows.npy
printf 'ann\nbob\n' | cmp - rows.ids.tsv || fail "ids of author_feat: $(cat rows.ids.tsv)"
cmp <(tail -c 24 rows.npy) <(tail -c 24 authors.npy) || fail "rows of author_feat"
expect_exit 0 rhizome export back.rz --vertices --out vertices.csv

# --- What is refused
expect_exit 1 rhizome ingest bad.rz "${input[@]}" --array papers:feat=papers.npy && expect_says "papers" "paper, author, venue"
expect_exit 1 rhizome ingest bad.rz "${input[@]}" --array author:feat=papers.npy && expect_says "3 rows" "2 vertices"
expect_exit 1 rhizome ingest bad.rz "${input[@]}" --array paper:feat=papers.npy --array author:feat=authors.npy &&
  expect_says "author:author_feat"
[ ! -e bad.rz ] || fail "a refused ingestion left a folder"

exit $((failures > 0))
