#!/usr/bin/env bash
# `bench models` on a data set that is generated here under a known name: what it ingests, trains
# and prints.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

rhizome bench models --list >out 2>err
grep -q 'needs libtorch' err && exit 77
command -v zstd >/dev/null || exit 77

# Forty vertices in a ring. The feature is the class; in split k the vertices k, k + 10, ... are tested. In
# split 3 the tested vertices have the other class's feature, so that its result is the opposite.
make_data() {
  mkdir -p data/minesweeper
  python3 - data/minesweeper <<'PY'
import json, struct, sys
folder, n = sys.argv[1], 40
classes = [(v // 2) % 2 for v in range(n)]
shown = [1 - c if v % 10 == 3 else c for v, c in enumerate(classes)]
def letter(v, k):
    return "e" if v % 10 == k else "v" if v % 10 == (k + 5) % 10 else "n" if v % 10 == 3 else "t"
with open(folder + "/nodes.tsv", "w") as out:
    for v in range(n):
        out.write(f"{v}\t{classes[v]}\ttrain\t{''.join(letter(v, k) for k in range(10))}\n")
with open(folder + "/edges.tsv", "w") as out:
    for v in range(n):
        out.write(f"{v}\t{v}\n")
header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({n}, 2), }}"
header = header.ljust(117) + "\n"
with open(folder + "/features.npy", "wb") as out:
    out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    for s in shown:
        out.write(struct.pack("<2f", s, 1 - s))
json.dump({"node_columns": ["id", "label", "split", "splits10"], "feature_dim": 2},
          open(folder + "/meta.json", "w"))
PY
  zstd -q --rm data/minesweeper/*.tsv data/minesweeper/*.npy
}
make_data

# --- Each run takes its own split, and the tier's table says what was published
rhizome bench models --tier long --data data --only 'minesweeper sage' --runs 4 --json >m.json 2>err ||
  fail "bench models: $(cat err)"
expect_json m.json 'j["workload"] == "models" and j["tier"] == "long" and len(j["rows"]) == 1' \
  'j["rows"][0]["data"] == "minesweeper" and j["rows"][0]["model"] == "sage"' \
  'j["rows"][0]["metric"] == "roc_auc" and j["rows"][0]["runs_are"] == "splits"' \
  'j["rows"][0]["published"] == .9351 and j["rows"][0]["least"] == .925' \
  '[v > .9 for v in j["rows"][0]["values"]] == [True, True, True, False]' \
  'abs(j["rows"][0]["mean"] - sum(j["rows"][0]["values"]) / 4) < 1e-12' \
  'j["rows"][0]["reached"] is False and j["figure"] == 0'
grep -q 'minesweeper sage: roc_auc' err || fail "a row is not told as soon as it is complete: $(cat err)"
[ -z "$(ls -d ./*/ | grep -v '^./data/$')" ] || fail "it leaves folders behind: $(ls)"

# --- A directed graph with types: the class of a vertex is the type of its only in-edge
make_typed_data() {
  mkdir -p data/wordnet30
  python3 - data/wordnet30 <<'PY'
import json, random, struct, sys
folder, n = sys.argv[1], 4000
random.seed(1)
classes = [random.randrange(2) for _ in range(n)]
with open(folder + "/nodes.tsv", "w") as out:
    for v in range(n):
        out.write(f"{v}\t{classes[v]}\t{('train', 'train', 'valid', 'test')[v % 4]}\t{'nv'[v % 2]}\tname{v}\n")
with open(folder + "/edges.tsv", "w") as out:
    for v in range(n):
        out.write(f"{random.randrange(n)}\t{v}\t{'ab'[classes[v]]}\t1\n")
header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({n}, 2), }}"
header = header.ljust(117) + "\n"
with open(folder + "/features.npy", "wb") as out:
    out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    out.write(struct.pack("<2f", 1, 1) * n)
json.dump({"node_columns": ["id", "label", "split", "ntype", "name"], "directed": True,
           "edge_columns": ["src", "dst", "type", "weight"], "feature_dim": 2}, open(folder + "/meta.json", "w"))
PY
  zstd -q --rm data/wordnet30/*.tsv data/wordnet30/*.npy
}
make_typed_data
rhizome bench models --tier long --data data --only wordnet30 --runs 1 --json >m.json 2>err ||
  fail "bench models of a graph with types: $(cat err)"
expect_json m.json '[row["model"] for row in j["rows"]] == ["sage", "sage both ways", "rgcn", "hgt"]' \
  'all(row["settings"]["fanout"] == [10, 10] for row in j["rows"])' \
  'all(row["mean"] < .6 for row in j["rows"][:2]) and all(row["mean"] > .95 for row in j["rows"][2:])'

# --- What it cannot do
expect_exit 1 rhizome bench models --only nothing
expect_says "--only" "nothing" "--list"
expect_exit 2 rhizome bench models --data nowhere --only 'cora gcn'
expect_says "nowhere/cora/meta.json"
zstd -qd data/minesweeper/nodes.tsv.zst && sed -i '7s/t$/x/' data/minesweeper/nodes.tsv
zstd -qf --rm data/minesweeper/nodes.tsv
expect_exit 1 rhizome bench models --tier long --data data --only 'minesweeper gcn' --runs 1
expect_says "array splits10 is int64" "must be uint8"  # the column has become texts

finish
