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
