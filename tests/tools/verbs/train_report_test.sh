#!/usr/bin/env bash
# The files that a training writes beside its model (page, curves and plot), complete or after
# Ctrl-C; splits chosen by column, and fanouts for evaluation.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
has_gnn || skip "this build has no librhizome_gnn"
cd "$work"

rhizome generate planted --out demo --scale 8 --dim 6 >/dev/null || fail "generate"
# Letters of three splits: the first is that of the generator.
awk 'BEGIN { l["train"] = "t"; l["valid"] = "v"; l["test"] = "e"; l["none"] = "n" }
  { print $0 "\t" l[$3] (NR % 2 ? "t" : "v") "n" }' demo/nodes.tsv >nodes.tsv
rhizome ingest demo.rz --edges demo/edges.npy --nodes nodes.tsv --node-columns id,label,split,splits \
  --array feat=demo/features.npy >/dev/null || fail "ingest"
train() { "$RHIZOME" train demo.rz --hidden 8 --seed 5 "$@"; }

# --- one line a seed and epoch; the figures are those of --json
train --epochs 3 --seeds 2 --eval-fanout all --report r.html --curves c.csv --plot p.svg --json >o.json || fail "train"
expect_json o.json 'j["described_in"] == ["r.html", "c.csv", "p.svg"]'
python3 - <<'PY' || fail "the curves"
import csv, json, xml.etree.ElementTree
j = json.load(open("o.json"))
rows = list(csv.DictReader(open("c.csv")))
assert [(r["seed"], r["epoch"]) for r in rows] == [(s, e) for s in "56" for e in "123"]
assert sum(int(r["best"]) for r in rows) == 2
of_best = [r for r in rows if int(r["seed"]) == j["best_seed"]]
for row, epoch in zip(of_best, j["epochs"], strict=True):
    for name in ("loss", "valid_loss", "learning_rate", "rows_read", "bytes_read", "hit_rate", "resident_bytes"):
        assert float(row[name]) == epoch[name], name
    for part in ("train", "valid"):
        assert set(epoch["metrics"][part]) == {"accuracy", "f1_micro", "f1_macro"}
        for name, value in epoch["metrics"][part].items():
            assert float(row[f"{part}_{name}"]) == value, name
kept = of_best[j["best_epoch"] - 1]
# The validation set was measured with all neighbours, as at the end.
assert abs(float(kept["valid_accuracy"]) - j["valid_accuracy"]) < 0.02
plot = xml.etree.ElementTree.parse("p.svg").getroot()
assert sum(1 for e in plot.iter() if e.tag.endswith("}path")) == 18  # 2 lines of 4 charts, 1 of one; 2 seeds
PY

# --- sets by column
train --epochs 1 --no-test --split-column splits:0 --json >a.json || fail "column 0"
train --epochs 1 --no-test --json >b.json || fail "the split itself"
python3 -c 'import json
a, b = (json.load(open(f))["epochs"][0] for f in ("a.json", "b.json"))
assert a["loss"] == b["loss"] and a["valid_loss"] == b["valid_loss"]' || fail "column 0 is the split"
train --epochs 1 --split-column splits:1 --json >a.json || fail "column 1"
expect_json a.json 'j["metrics"]["test"] is None and j["metrics"]["train"]["vertices"] == 128'
expect_exit 1 train --split-column splits:3 && expect_says "array splits has no column 3; it has columns 0 to 2"
expect_exit 1 train --split-column splits:2 && expect_says "array splits:2 puts no vertex into the training set"
expect_exit 1 train --split splits && expect_says "--split splits:K"
expect_exit 1 train --split-column splits && expect_says "'splits' is not NAME:K"
expect_exit 2 train --split-column none:1 && expect_says "no array 'none'"

# --- what cannot be written is refused before anything is learnt
refused() {
  local code=$1
  shift
  expect_exit "$code" train --epochs 1000000 "$@"
}
refused 2 --report nowhere/r.html && expect_says "--report: the folder 'nowhere' does not exist"
refused 2 --curves nowhere/c.csv && expect_says "--curves: the folder 'nowhere' does not exist"
refused 2 --plot nowhere/p.svg && expect_says "--plot: the folder 'nowhere' does not exist"
refused 2 --out nowhere/m.st && expect_says "--out: the folder 'nowhere' does not exist"
refused 1 --plot p.png && expect_says "p.png" ".svg"
refused 1 --report same --curves same && expect_says "--report and --curves name the same file"
refused 1 --report demo.rz/r.html && expect_says "demo.rz"
refused 1 --clip-norm -1 && expect_says "--clip-norm: '-1'"
refused 1 --lr -1 && expect_says "--lr: '-1'"
refused 1 --eval-fanout 3,3,3 && expect_says "--set eval-fanout=VALUE has 3 hops for 2 layers"
refused 1 --eval-fanout some && expect_says "--eval-fanout: 'some'"

# --- Ctrl-C: what there is, in whole files; before the first epoch there is nothing
# The binary itself, not a function of the shell, gets the signal.
"$RHIZOME" train demo.rz --epochs 1000000 --hidden 8 --report i.html --curves i.csv --out i.st --progress json >out 2>err &
pid=$!
until grep -qE 'epoch ([3-9]|[0-9]{2,})/' err 2>/dev/null; do
  kill -0 $pid 2>/dev/null || { fail "training ended by itself: $(cat err)"; break; }
  sleep 0.05
done
kill -INT $pid
code=0
wait $pid || code=$?
[ $code -eq 130 ] || fail "an interrupted training exits with $code"
grep -q "the results so far are in i.html, i.csv" err || fail "nothing is said of what is left: $(tail -n 3 err)"
[ "$(wc -l <i.csv)" -ge 3 ] || fail "the curves of complete epochs are missing"
grep -q 'class="stopped"' i.html || fail "the page does not say that training was interrupted"
grep -q '</html>' i.html || fail "the page is cut off"
[ -z "$(find . -maxdepth 1 -name '.*tmp')" ] || fail "a temporary file was left"
finish
