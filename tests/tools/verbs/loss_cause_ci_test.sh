#!/usr/bin/env bash
# A loss that is not finite: the message names the array, column and vertex, or the range of the edge
# weights, which cause it, in minibatches and on the full graph.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
has_gnn || skip "this build has no training"

rhizome generate planted --out d --scale 8 --dim 4 >/dev/null || fail "generate"
# npy NAME FORMAT SHAPE: writes little-endian numbers from standard input.
npy() {
  python3 - "$@" <<'PY'
import struct, sys
name, kind, shape = sys.argv[1:4]
values = [float(v) for v in open("values").read().split()]
head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
head = head.ljust(117) + "\n"
open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
                       + struct.pack("<%d%s" % (len(values), kind[1]), *values))
PY
}
# inputs NAME WEIGHT: a store whose edges all have this weight.
inputs="--edges d/edges.npy --nodes d/nodes.tsv --node-columns id,label,split"
edges=$(rhizome plan ingest --edges d/edges.npy --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["edges"])')
for weight in 1e-40 3e38; do
  yes $weight | head -n "$edges" >values
  npy w.npy '<f4' "($edges,)"
  # shellcheck disable=SC2086
  rhizome ingest $weight.rz $inputs --array feat=d/features.npy --edge-array weight=w.npy >/dev/null || fail "ingest $weight"
  for mode in "" --full-graph; do
    # shellcheck disable=SC2086
    if rhizome train $weight.rz $mode --model gcn --epochs 2 --out m.st >out 2>err; then continue; fi
    grep -q "the edge weights are between" err || fail "weights of $weight, '$mode': $(tail -1 err)"
    grep -q -- "--edge-weights=ignore" err || fail "weights of $weight: the remedy: $(tail -1 err)"
  done
  rhizome train $weight.rz --edge-weights ignore --epochs 1 --out m.st >/dev/null 2>err || fail "without weights: $(tail -1 err)"
done
if rhizome train 1e-40.rz --model sage --epochs 1 --out m.st >out 2>err; then fail "weights of 1e-40 train"; fi

awk 'BEGIN { for (i = 0; i < 256 * 4; ++i) print (i == 70 * 4 + 2) ? "3e38" : i % 7 }' >values
npy big.npy '<f4' '(256, 4)'
# shellcheck disable=SC2086
rhizome ingest big.rz $inputs --array feat=big.npy >/dev/null || fail "ingest"
if ! rhizome train big.rz --model gcn --epochs 3 --lr 1 --out m.st >out 2>err; then
  grep -q "array feat has the value 3e+38 in column 2 of vertex 70" err || fail "a huge feature: $(tail -1 err)"
fi

finish
