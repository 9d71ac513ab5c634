#!/usr/bin/env bash
# Files without a row, an edge or an id are valid: every verb that writes an empty file writes one
# that the verbs that read it accept.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

# --- A batch whose vertices have no in-edge, and one of no vertex that has one in any hop
printf '1\t0\n' >e.tsv
printf '1\n' >seeds
printf '0\t0\t1\n1\t0\t2\n' >f.txt
expect_exit 0 rhizome ingest s.rz --edges e.tsv --array f=f.txt:1
for flags in "" "--disjoint" "--frontier again" "--topology direct"; do
  # shellcheck disable=SC2086
  expect_exit 0 rhizome sample s.rz --seeds seeds --fanout 5,5 --out o.npz $flags
  python3 - "$flags" <<'PY' || fail "npz of a batch without edges: $flags"
import sys, zipfile
archive = zipfile.ZipFile("o.npz")
assert archive.testzip() is None, f"bad CRC: {archive.testzip()}"
edges = archive.read("b0_edges.npy")
assert b"'shape': (2, 0)" in edges and len(edges) % 64 == 0, edges
PY
done

# --- No vertex is left: rows, ids and edges are files without one
printf '0\n1\n' >all.tsv
expect_exit 0 rhizome delete s.rz all.tsv --vertices
for state in deleted compacted; do
  expect_exit 0 rhizome export s.rz --array f --out f.npy --json
  expect_json out '[f["rows"] for f in j["files"]] == [0, 0]'
  [ -e f.ids.tsv ] && [ ! -s f.ids.tsv ] || fail "$state: ids of no row: $(cat f.ids.tsv)"
  python3 - <<'PY' || fail "$state: rows of no vertex"
data = open("f.npy", "rb").read()
assert b"'shape': (0, 1)" in data and len(data) % 64 == 0, data
PY
  expect_exit 0 rhizome export s.rz --array f --out f.fbin
  [ "$(od -An -tu4 f.fbin | tr -s ' ')" = " 0 1" ] || fail "$state: fbin of no row: $(od -An -tu4 f.fbin)"
  for file in x.tsv x.csv; do
    expect_exit 0 rhizome export s.rz --edges --no-header --out $file
    [ -e $file ] && [ ! -s $file ] || fail "$state: $file of no edge"
  done
  expect_exit 0 rhizome export s.rz --edges --no-header --out -
  [ ! -s out ] || fail "$state: standard output of no edge"
  expect_exit 0 rhizome verify s.rz
  expect_exit 0 rhizome compact s.rz
done
expect_exit 0 rhizome changes s.rz --out c.jsonl
[ -e c.jsonl ] && [ ! -s c.jsonl ] || fail "changes of none: $(cat c.jsonl)"
expect_exit 0 rhizome put s.rz c.jsonl
finish
