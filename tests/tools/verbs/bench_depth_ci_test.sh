#!/usr/bin/env bash
# `bench depth` on a data set that is generated here: the columns of its edges are those that its
# meta.json names.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

rhizome bench depth --list >out 2>err
grep -q 'needs libtorch' err && exit 77
command -v zstd >/dev/null || exit 77

# Two hubs show a class each; every other vertex shows nothing and has an edge to both, of which only the weight tells
# its class. Types alternate, whatever the class is.
python3 - <<'PY'
import json, os, struct
os.makedirs("data/hubs")
n = 82
with open("data/hubs/nodes.tsv", "w") as out:
    for v in range(n):
        split = "none" if v < 2 else ("train", "train", "valid", "test")[v // 2 % 4]
        out.write(f"{v}\t{v % 2 if v >= 2 else -1}\t{split}\tkind{v % 3}\n")
with open("data/hubs/edges.tsv", "w") as out:
    for v in range(2, n):
        for hub in range(2):
            out.write(f"{v}\t{hub}\ttype{v // 2 % 2}\t{8 if hub == v % 2 else 1}\n")
header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({n}, 2), }}".ljust(117) + "\n"
with open("data/hubs/features.npy", "wb") as out:
    out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    for v in range(n):
        out.write(struct.pack("<2f", v == 0, v == 1))
json.dump({"node_columns": ["id", "label", "split", "ntype"], "feature_dim": 2,
           "edge_columns": ["src", "dst", "type", "weight"]}, open("data/hubs/meta.json", "w"))
PY
zstd -q --rm data/hubs/*.tsv data/hubs/*.npy

depth() { rhizome bench depth --data data --sets hubs --layers 1 --hidden 8 --seeds 2 --epochs 120 --patience 120 "$@"; }
depth --minibatch --json >d.json 2>err || fail "bench depth: $(cat err)"
expect_json d.json 'len(j["rows"]) == 4' 'all(r["mean"] == 1 for r in j["rows"])' \
  '[r["full_graph"] for r in j["rows"]] == [True, False, True, False]' \
  'j["largest_lag_of_full_graph_points"] == 0'
[ -z "$(ls -d ./*/ | grep -v '^./data/$')" ] || fail "it leaves folders behind: $(ls)"

# --- Without the weights the vertices are alike.
sed -i 's/"weight"/"-"/' data/hubs/meta.json
depth --json >d.json 2>err || fail "bench depth: $(cat err)"
expect_json d.json 'all(r["mean"] == .5 for r in j["rows"])'

# --- What it cannot read
sed -i 's/\["src", "dst", "type", "-"\]/["src", "dst"]/' data/hubs/meta.json
expect_exit 1 depth
expect_says "edges.tsv.zst:1" "4" "2"
sed -i 's/\["src", "dst"\]/"src dst"/' data/hubs/meta.json
expect_exit 1 depth
expect_says "meta.json" '"edge_columns" must be a list of names'

finish
