#!/usr/bin/env bash
# Training and inference sample neighbours by direction, weight, edge type, meta-path and time,
# report what they do not use, and refuse what a store or a mode cannot do.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
has_gnn || skip "this build has no librhizome_gnn"

rhizome generate planted --out demo --scale 9 --edge-factor 4 --dim 8 --seed 5 >/dev/null || fail "generate"
rhizome ingest plain.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy >/dev/null || fail "ingest"
expect_exit 0 rhizome export plain.rz --edges --no-header --out edges.tsv
# Edges run from the smaller id to the larger, so that many vertices have no in-edge.
awk -F'\t' -v OFS='\t' '$1 < $2 { print $1, $2, (NR % 2 ? "likes" : "cites"), NR % 7 + 1, NR % 9 }' edges.tsv >rich.tsv
python3 - <<'PY' || fail "times of vertices"
import array
head = b"{'descr': '<i8', 'fortran_order': False, 'shape': (512, 1), }"
head += b" " * (-(len(head) + 11) % 64) + b"\n"
with open("born.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + array.array("q", [v % 11 for v in range(512)]).tobytes())
PY
# Prints the largest difference between two exported arrays of floats.
furthest() {
  python3 - "$@" <<'PY'
import array, sys
def read(path):
    data = open(path, "rb").read()
    return array.array("f", data[10 + int.from_bytes(data[8:10], "little"):])
a, b = map(read, sys.argv[1:])
print(max(abs(x - y) for x, y in zip(a, b, strict=True)))
PY
}
nodes=(--nodes demo/nodes.tsv --node-columns id,label,split --array feat=demo/features.npy --array born=born.npy --partitions 2)
rhizome ingest rich.rz --edges rich.tsv --columns src,dst,type,weight,time "${nodes[@]}" >/dev/null || fail "ingest of a rich graph"
rhizome ingest in.rz --edges rich.tsv --columns src,dst,type,weight,time --directions in "${nodes[@]}" >/dev/null || fail "ingest of in-edges"
train=(--epochs 1 --hidden 8 --threads 1)

# --- Directions, and what is said of them
expect_exit 0 rhizome train rich.rz "${train[@]}" --fanout 4,4 --out in.safetensors --json
expect_json out 'j["direction"] == "in" and j["edge_weights"] is True'
without=$(python3 -c '
import collections
into = {l.split("\t")[1] for l in open("rich.tsv")}
nodes = [l.rstrip("\n").split("\t") for l in open("demo/nodes.tsv")]
train = [n[0] for n in nodes if n[2] == "train"]
print(f"{sum(n not in into for n in train)} of {len(train)} training vertices have no in-edge")')
expect_says "not used" "out-edges ($without: use --set direction=both to follow both)"
expect_exit 0 rhizome train rich.rz "${train[@]}" --fanout 4,4 --direction both --out both.safetensors
grep -q 'walked edges of both directions, each with its weight' out || fail "train --direction both: $(cat out)"
grep -q 'out-edges' err && fail "both directions are walked, and one is said to be ignored"
for mode in layerwise samplewise; do
  expect_exit 0 rhizome infer rich.rz --model-file both.safetensors --direction both --mode $mode --out $mode --json
  expect_json out 'j["direction"] == "both"'
  expect_exit 0 rhizome export rich.rz --array $mode --out $mode.npy
done
python3 -c "assert $(furthest layerwise.npy samplewise.npy) < 1e-4" || fail "layerwise and samplewise differ over both directions"
expect_exit 0 rhizome infer rich.rz --model-file both.safetensors --out as_trained --json
expect_json out 'j["direction"] == "both"'
expect_exit 0 rhizome infer rich.rz --model-file both.safetensors --direction in --out only_in
expect_exit 0 rhizome export rich.rz --array only_in --out only_in.npy
python3 -c "assert $(furthest only_in.npy layerwise.npy) > 1e-3" || fail "--direction changes nothing"
expect_exit 0 rhizome infer rich.rz --model-file both.safetensors --direction both --topology direct --neighbor-cache 1M --out disk
expect_exit 0 rhizome export rich.rz --array disk --out disk.npy
cmp -s disk.npy layerwise.npy || fail "lists on disk give other rows"
expect_exit 0 rhizome train rich.rz "${train[@]}" --fanout 4,4 --direction both --topology direct --out disk.safetensors
cmp -s disk.safetensors both.safetensors || fail "lists on disk give another model"
expect_exit 0 rhizome plan infer rich.rz --model-file both.safetensors --direction both --json

# --- What was computed over other edges is computed again
infer=(rhizome infer rich.rz --model-file both.safetensors)
expect_exit 0 "${infer[@]}" --out v --direction in --new-version
expect_exit 0 "${infer[@]}" --out v --direction both --incremental --json
expect_json out '"direction" in j["full_because"] and j["kept"] == 0'
expect_exit 0 "${infer[@]}" --out out --direction out --new-version
printf '17\t5\tlikes\t2\t1\n' >put.tsv
expect_exit 0 rhizome put rich.rz put.tsv --columns src,dst,type,weight,time
for array in v:both:3 out:out:2; do
  IFS=: read -r name direction version <<<"$array"
  expect_exit 0 "${infer[@]}" --out "$name" --direction "$direction" --incremental --json
  expect_json out 'j["kept"] > 0 and "full_because" not in j'
  expect_exit 0 "${infer[@]}" --out "whole_$direction" --direction "$direction"
  expect_exit 0 rhizome export rich.rz --array "$name@$version" --out v.npy
  expect_exit 0 rhizome export rich.rz --array "whole_$direction" --out whole.npy
  cmp -s v.npy whole.npy || fail "an incremental run over $direction gives other rows"
done

# --- Weights, types, meta-paths, times
expect_exit 0 rhizome train rich.rz "${train[@]}" --fanout 4,4 --weighted --out w.safetensors
expect_exit 0 rhizome train rich.rz "${train[@]}" --typed-fanout 'likes:4,4;default:2,2' --out t.safetensors --json
expect_json out 'not any(i.startswith("edge types") for i in j["ignored"])'
expect_exit 0 rhizome infer rich.rz --model-file t.safetensors --typed-fanout likes:all,all --out likes
expect_exit 1 rhizome train rich.rz "${train[@]}" --meta-path likes,cites
expect_says "--no-test" "samplewise"
expect_exit 0 rhizome train rich.rz "${train[@]}" --meta-path likes,cites --no-test --out p.safetensors
expect_exit 1 rhizome infer rich.rz --model-file p.safetensors --meta-path likes,cites --out path
expect_says "layer by layer" "--mode samplewise"
expect_exit 0 rhizome infer rich.rz --model-file p.safetensors --meta-path likes,cites --mode samplewise --out path
expect_exit 1 rhizome train rich.rz "${train[@]}" --time-attribute time --no-test
expect_says "--set seed-times=VALUE"
expect_exit 0 rhizome train rich.rz "${train[@]}" --fanout 4,4 --time-attribute time --seed-times born --no-test --out s.safetensors --json
expect_json out 'not any("time" in i for i in j["ignored"])'
expect_exit 1 rhizome infer rich.rz --model-file s.safetensors --time-attribute time --seed-times born --out timed
expect_says "--mode samplewise"
expect_exit 0 rhizome infer rich.rz --model-file s.safetensors --time-attribute time --seed-times born --mode samplewise --out timed

# --- What cannot be
expect_exit 1 rhizome train in.rz "${train[@]}" --direction both
expect_says "no out-edges" "--directions both" "--undirected"
expect_exit 1 rhizome train in.rz "${train[@]}" --direction out
expect_says "no out-edges" "--directions out"
expect_exit 1 rhizome train plain.rz "${train[@]}" --edge-weights use
expect_says "weight column"
expect_exit 1 rhizome train plain.rz "${train[@]}" --weighted
expect_says "weight column"
expect_exit 2 rhizome train rich.rz "${train[@]}" --typed-fanout loves:3,3
expect_says "cites, likes"
expect_exit 1 rhizome train rich.rz "${train[@]}" --typed-fanout likes:3,3 --fanout 3,3
expect_exit 1 rhizome train rich.rz "${train[@]}" --typed-fanout likes:3,3 --layers 3
expect_exit 1 rhizome train rich.rz "${train[@]}" --typed-fanout likes=3
expect_exit 1 rhizome infer rich.rz --model-file t.safetensors --typed-fanout likes:3,3 --fanout 3,3 --out short
expect_exit 1 rhizome infer rich.rz --model-file t.safetensors --typed-fanout likes:3 --out short
expect_says "2 layers"
finish
