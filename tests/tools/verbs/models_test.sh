#!/usr/bin/env bash
# Models on the command line: their list, their flags, and errors for wrong ones.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

rhizome models --json >models.json || fail "models"
expect_json models.json '{"sage", "gcn", "gin", "gat", "gatv2", "commnet"} <= {m["name"] for m in j["models"]}'
expect_json models.json 'all(m["source"] for m in j["models"])' \
  'all(any(o["name"] == "head" for o in m["options"]) == m["network"] for m in j["models"])' \
  '[m["name"] for m in j["models"] if not m["network"]] == ["table"]'
rhizome models >models.txt || fail "models"
grep -q -- '--heads N .*default: 4' models.txt || fail "the table lacks an option"
grep -q "^table: a row of numbers for each vertex" models.txt || fail "tables are not listed: $(cat models.txt)"
grep -A 20 "^all networks:" models.txt | grep -q -- "--head " || fail "options of all networks are not listed"

rhizome generate planted --out demo --scale 8 --dim 6 >/dev/null || fail "generate"
rhizome ingest demo.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy >/dev/null || fail "ingest"

# --- each listed model trains and embeds under its name, with an option of its own if it has one
for model in $(python3 -c 'import json; print(*(m["name"] for m in json.load(open("models.json"))["models"] if m["network"]))'); do
  rhizome train demo.rz --model "$model" --hidden 8 --epochs 1 --no-test --out "$model.st" --json >o.json ||
    fail "train --model $model"
  expect_json o.json 'j["network"]["kind"] and j["network"]["options"]["norm"] == "none"'
  rhizome infer demo.rz --model-file "$model.st" --out "e-$model" --json >o.json || fail "infer $model"
  expect_json o.json 'j["vertices"] == 256 and j["kind"]'
done

# --- what is wrong is named, with what there is instead
rhizome train demo.rz --model none 2>e.txt
[ $? -eq 1 ] || fail "an unknown model is not an error of use"
grep -q "no model 'none'; existing models: sage, gcn" e.txt || fail "the models are not named: $(cat e.txt)"
rhizome train demo.rz --model gcn --heads 2 2>e.txt
[ $? -eq 1 ] || fail "an option of another model"
grep -q "model gcn has no option heads; it has " e.txt || fail "the options are not named: $(cat e.txt)"
rhizome train demo.rz --model gat --heads 3 --hidden 8 2>e.txt
[ $? -eq 1 ] || fail "hidden columns that heads cannot share"
grep -q "8 hidden columns cannot be divided among 3 heads" e.txt || fail "heads: $(cat e.txt)"
rhizome train demo.rz --norm high 2>e.txt
[ $? -eq 1 ] || fail "a choice that there is not"
grep -q "'high' is not one of none, layer, batch" e.txt || fail "choices: $(cat e.txt)"
rhizome train demo.rz --head none --jump max 2>e.txt
[ $? -eq 1 ] || fail "options that exclude each other"
grep -q "needs a head" e.txt || fail "jump without head: $(cat e.txt)"
finish
