#!/usr/bin/env bash
# train and infer with an array for each vertex type (--features TYPE=NAME,...): the model file, layerwise and
# samplewise inference with workers and within a memory limit, and what is refused.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
has_gnn || skip "this build has no librhizome_gnn"
cd "$work"

rhizome generate planted --out demo --scale 9 --dim 6 --classes 3 >/dev/null || fail "generate"
"$RHIZOME_SOURCE/build/venv/bin/python" - <<'PY' || fail "arrays"
import numpy as np
x = np.load("demo/features.npy")
kinds = np.array(["paper", "author", "venue"])[np.arange(len(x)) % 3]
lines = open("demo/nodes.tsv").read().splitlines()
assert len(lines) in (len(x), len(x) + 1), len(lines)
first = len(lines) - len(x)
with open("nodes.tsv", "w") as out:
    print("id\tlabel\tsplit\ttype", file=out)
    for line, kind in zip(lines[first:], kinds):
        print(line + "\t" + kind, file=out)
papers = np.where((kinds == "paper")[:, None], x, np.nan).astype(np.float32)
authors = np.where((kinds == "author")[:, None], x[:, :4], np.nan).astype(np.float32)
np.save("papers.npy", papers)
np.save("authors.npy", authors)
PY
rhizome ingest g.rz --edges demo/edges.npy --nodes nodes.tsv --array feat=papers.npy --array other=authors.npy \
  --partitions 3 >/dev/null 2>err || fail "ingest: $(cat err)"

train() {
  rhizome train g.rz --epochs 2 --hidden 8 --fanout 5,5 --seed 4 --threads 1 "$@" >out 2>err
}
train --features paper=feat,author=other,venue=none --out m.safetensors || fail "train: $(cat err)"
"$RHIZOME_SOURCE/build/venv/bin/python" - <<'PY' || fail "the model file"
import json, struct
file = open("m.safetensors", "rb")
header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
shapes = {name: tensor["shape"] for name, tensor in header.items() if name.startswith("inputs.")}
assert shapes == {"inputs.paper.weight": [8, 6], "inputs.paper.bias": [8], "inputs.author.weight": [8, 4],
                  "inputs.author.bias": [8], "inputs.venue.bias": [8]}, shapes
model = json.loads(header["__metadata__"]["rhizome"])
assert model["format"] == 3 and model["options"]["input-activation"] == "tanh"
by_type = dict(zip(model["vertex_types"], model["typed_inputs"]))
assert by_type["author"] == {"array": "other", "dim": 4} and by_type["venue"] == {"array": "", "dim": 0}, by_type
PY
train --features author=other,venue=none,paper=feat --out again.safetensors ||
  fail "train: $(cat err)"
cmp m.safetensors again.safetensors || fail "the same training gives another model"

# --- inference reads the arrays that the model names, with the same bytes in each way of computing
rhizome infer g.rz --model-file m.safetensors --out emb --json >infer.json 2>err || fail "infer: $(cat err)"
python3 - <<'PY' || fail "the report: $(cat infer.json)"
import json
report = json.load(open("infer.json"))
assert report["inputs"]["vertices"] == report["vertices"] and report["inputs"]["chunk_reads"] >= 2
assert report["non_finite"] == []
PY
rhizome infer g.rz --model-file m.safetensors --out two --workers 2 --threads 2 --memory 400M >/dev/null 2>err ||
  fail "infer --workers: $(cat err)"
rhizome infer g.rz --model-file m.safetensors --features author=other --out three --threads 3 >/dev/null 2>err ||
  fail "infer --features: $(cat err)"
rhizome infer g.rz --model-file m.safetensors --mode samplewise --out four >/dev/null 2>err ||
  fail "infer --mode samplewise: $(cat err)"
for name in emb two three four; do
  rhizome export g.rz --array "$name" --out "$name.npy" >/dev/null 2>err || fail "export: $(cat err)"
done
cmp emb.npy two.npy || fail "workers compute other rows"
cmp emb.npy three.npy || fail "three threads compute other rows"
"$RHIZOME_SOURCE/build/venv/bin/python" - <<'PY' || fail "the rows differ"
import numpy as np
layerwise, samplewise = np.load("emb.npy"), np.load("four.npy")
assert np.isfinite(layerwise).all() and np.abs(layerwise - samplewise).max() < 1e-4
PY
rhizome plan infer g.rz --model-file m.safetensors --json >plan.json 2>err || fail "plan infer: $(cat err)"
grep -q hidden-0 plan.json || fail "the plan: $(cat plan.json)"

# --- what is refused
for wrong in paper= =feat paper=feat,author; do
  expect_exit 1 rhizome train g.rz --features "$wrong"
  expect_says "--features" "paper=feat"
done
expect_exit 1 rhizome train g.rz --features journal=feat && expect_says "journal" "paper"
expect_exit 1 rhizome infer g.rz --model-file m.safetensors --features author=feat --out x && expect_says "author" "4"
expect_exit 6 rhizome train g.rz --full-graph --features paper=feat && expect_says "--full-graph"
expect_exit 6 rhizome plan train g.rz --full-graph --features paper=feat && expect_says "--full-graph"
finish
