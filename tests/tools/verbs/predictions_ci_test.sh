#!/usr/bin/env bash
# export --predictions: for each task it exports, by external id, what the scores that infer
# --scores stores imply.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
has_gnn || skip "this build has no librhizome_gnn"
cd "$work"

rhizome generate planted --out demo --scale 8 --dim 6 --classes 4 >/dev/null || fail "generate"
"$RHIZOME_SOURCE/build/venv/bin/python" - <<'PY' || fail "arrays"
import numpy as np
x = np.load("demo/features.npy")
np.save("flags.npy", (x[:, :3] > 0).astype(np.uint8))
np.save("numbers.npy", x[:, :2].astype(np.float32))
np.save("number.npy", x[:, :1].astype(np.float32))
np.save("binary.npy", (x[:, :1] > 0).astype(np.int64))
PY
# Ids that CSV has to quote; rows in another order than ids.
sed 's/^/v, /' demo/nodes.tsv >nodes.tsv
rhizome ingest plain.rz --edges demo/edges.npy >/dev/null || fail "ingest plain"
rhizome export plain.rz --edges --no-header --out - | awk -F'\t' '{ print "v, " $1 "\tv, " $2 }' >edges.tsv
rhizome ingest demo.rz --edges edges.tsv --nodes nodes.tsv --node-columns id,label,split --partitions 3 \
  --array feat=demo/features.npy --array flags=flags.npy --array numbers=numbers.npy --array number=number.npy \
  --array binary=binary.npy >/dev/null || fail "ingest"
echo 'v, 7' | rhizome delete demo.rz --vertices - >/dev/null || fail "delete"

for labels in label binary flags numbers number; do
  task=()
  [ $labels = binary ] && task=(--task binary)
  rhizome train demo.rz --hidden 8 --epochs 2 --labels $labels "${task[@]}" --out $labels.st >/dev/null 2>&1 ||
    fail "train $labels"
  rhizome infer demo.rz --model-file $labels.st --scores --out s-$labels >/dev/null 2>&1 || fail "infer $labels"
  rhizome export demo.rz --array s-$labels --out s-$labels.npy >/dev/null || fail "export scores of $labels"
  before=$(rhizome array list demo.rz)
  forms=(csv npy)
  [ $labels = label ] && forms+=(tsv)
  for form in "${forms[@]}"; do
    rhizome export demo.rz --predictions $labels.st --out $labels.$form --memory 200M --json >$labels.$form.json \
      2>err || fail "predictions of $labels as $form: $(cat err)"
    expect_json $labels.$form.json 'all(f["rows"] == 255 for f in j["files"])'
  done
  [ "$before" = "$(rhizome array list demo.rz)" ] || fail "predictions of $labels changed the store"
done
[ -z "$(ls -A demo.rz/scratch 2>/dev/null)" ] || fail "something was left in scratch"
# One vertex whose features have NaN: it and those that it reaches have no class, and that is said.
python() { "$RHIZOME_SOURCE/build/venv/bin/python" "$@"; }
python - <<'PY' || fail "a NaN"
import numpy as np
x = np.load("demo/features.npy")
np.save("in-flags.npy", (x[:, :3] > 0).astype(np.uint8))  # the exports above had the other names
np.save("in-numbers.npy", x[:, :2].astype(np.float32))
np.save("in-binary.npy", (x[:, :1] > 0).astype(np.int64))
x[70, 2] = np.nan
np.save("nan.npy", x)
PY
rhizome ingest nan.rz --edges edges.tsv --nodes nodes.tsv --node-columns id,label,split \
  --array feat=nan.npy --array flags=in-flags.npy --array numbers=in-numbers.npy \
  --array binary=in-binary.npy >/dev/null || fail "ingest nan"
for labels in label binary flags numbers; do
  for form in csv npy; do
    rhizome export nan.rz --predictions $labels.st --out nan-$labels.$form --json >nan-$labels.json 2>err ||
      fail "predictions of $labels with NaN"
    grep -q "rows of predictions have NaN or an infinite value, the first is of vertex v, [0-9]*; array feat" err ||
      fail "nothing was said of NaN in $form: $(cat err)"
  done
done
rhizome similar nan.rz 'v, 3' --array feat >/dev/null 2>err || fail "similar: $(cat err)"
grep -q "1 row of feat has NaN or an infinite value and is ignored" err || fail "similar says nothing of NaN: $(cat err)"
rhizome export nan.rz --predictions label.st --out nan.csv >out 2>/dev/null || fail "predictions"
grep -q "rows without a prediction: the scores are NaN or infinite" out || fail "the report says nothing of NaN"
python - <<'PY' || fail "rows without finite scores are not what the files say"
import csv, json
import numpy as np
for labels in ("label", "binary", "flags", "numbers"):
    rows = np.load(f"nan-{labels}.npy")
    bad = ~np.isfinite(rows).all(axis=1)
    assert 1 < bad.sum() < len(rows) == 256
    assert json.load(open(f"nan-{labels}.json"))["non_finite_rows"] == bad.sum(), labels
    table = list(csv.DictReader(open(f"nan-{labels}.csv", newline="")))
    for row, is_bad in zip(table, bad, strict=True):
        values = [row[name] for name in row if name not in ("id", "class", "labels")]
        assert is_bad == ("nan" in values), row
        if "class" in row:
            assert is_bad == (row["class"] == ""), row
        if "labels" in row:
            assert is_bad == (row["labels"] == "nan"), row
PY

rhizome export demo.rz --predictions label.st --mode samplewise --out samplewise.csv >/dev/null 2>err ||
  fail "samplewise: $(cat err)"

"$RHIZOME_SOURCE/build/venv/bin/python" - <<'PY' || fail "what is said is not what the scores say"
import csv, json
import numpy as np

def sigmoid(x):
    return 1 / (1 + np.exp(-x))

tasks = dict(label="multiclass", binary="binary", flags="multilabel", numbers="regression", number="regression")
for labels, task in tasks.items():
    scores = np.load(f"s-{labels}.npy").astype(np.float64)
    ids = open(f"s-{labels}.ids.tsv").read().splitlines()
    assert len(ids) == len(scores) == 255 and "v, 7" not in ids
    assert json.load(open(f"{labels}.csv.json"))["task"] == task
    if task == "multiclass":
        e = np.exp(scores - scores.max(1, keepdims=True))
        answers = e / e.sum(1, keepdims=True)
    else:
        answers = scores if task == "regression" else sigmoid(scores)
    rows = np.load(f"{labels}.npy")
    assert rows.dtype == np.float32 and np.allclose(rows, answers, atol=1e-6), labels
    assert open(f"{labels}.ids.tsv").read().splitlines() == ids
    table = list(csv.DictReader(open(f"{labels}.csv", newline="")))
    assert labels != "label" or table == list(csv.DictReader(open("label.tsv", newline=""), delimiter="\t"))
    assert [row["id"] for row in table] == ids
    for row, score, answer in zip(table, scores, answers, strict=True):
        if task == "multiclass":
            assert list(row) == ["id", "class", "probability"]
            assert int(row["class"]) == score.argmax() and abs(float(row["probability"]) - answer.max()) < 1e-6
        elif task == "binary":
            assert int(row["class"]) == (score[0] > 0) and abs(float(row["probability"]) - answer[0]) < 1e-6
        elif task == "multilabel":
            assert [int(x) for x in row["labels"].split()] == list(np.flatnonzero(score > 0))
            assert np.allclose([float(row[f"probability_{c}"]) for c in range(3)], answer, atol=1e-6)
        else:
            names = ["value"] if len(score) == 1 else ["value_0", "value_1"]
            assert list(row)[1:] == names and [np.float32(row[n]) for n in names] == list(score.astype(np.float32))
samplewise = list(csv.DictReader(open("samplewise.csv", newline="")))
layerwise = list(csv.DictReader(open("label.csv", newline="")))
assert all(a["id"] == b["id"] and abs(float(a["probability"]) - float(b["probability"])) < 1e-4
           for a, b in zip(samplewise, layerwise, strict=True))
PY

# --- what is wrong is said before anything is computed, and leaves nothing
expect_exit 1 rhizome export demo.rz --predictions label.st --out p.txt && expect_says p.txt .csv
expect_exit 1 rhizome export demo.rz --predictions label.st --edges --out p.csv && expect_says "one of --array"
expect_exit 1 rhizome export demo.rz --predictions label.st --ids i.tsv --out p.csv && expect_says "--ids"
expect_exit 2 rhizome export demo.rz --predictions label.st --out nowhere/p.csv && expect_says "the folder 'nowhere' does not exist"
expect_exit 2 rhizome export demo.rz --predictions none.st --out p.csv && expect_says none.st
expect_exit 1 rhizome export demo.rz --predictions label.st --features numbers --out p.csv && expect_says numbers
[ ! -e p.csv ] || fail "a file was left"
finish
