#!/usr/bin/env bash
# train --model table: rows that learn a planted structure, the same rows with little memory, on
# several threads and after kills, and what is refused.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
has_gnn || skip "this build has no librhizome_gnn"
test_seed

# Users buy things of their own kind, and rate some of them; a tenth of the edges is held out.
python3 - "$seed" <<'PY'
import random, sys
rng = random.Random(int(sys.argv[1]))
users, things, kinds = 1500, 6000, 20
with open("nodes.tsv", "w") as f:
    f.write("id\tntype\n")
    f.writelines(f"u{i}\tuser\n" for i in range(users))
    f.writelines(f"t{i}\tthing\n" for i in range(things))
train, test = open("edges.tsv", "w"), open("test.tsv", "w")
for f in (train, test):
    f.write("src\ttype\tdst\n")
seen = set()
while len(seen) < 24000:
    user = rng.randrange(users)
    edge = (user, rng.choice(("buys", "rates")), rng.randrange(things // kinds // 4) * kinds + user % kinds)
    if edge in seen:
        continue
    seen.add(edge)
    (test if len(seen) % 10 == 0 else train).write("u%d\t%s\tt%d\n" % edge)
PY
expect_exit 0 rhizome ingest g.rz --edges edges.tsv --nodes nodes.tsv --partitions 6

flags=(--task link --model table --dim 32 --decoder complex --reciprocal --negatives 64 --batch-size 256 --epochs 4
  --optimizer adagrad --lr 0.3 --n3 0.005 --seed 3)
# trained NAME FLAGS...: trains, and exports the rows as NAME.npy and the decoder as NAME.st.
trained() {
  local name=$1
  shift
  expect_exit 0 rhizome train g.rz "${flags[@]}" --job "$name" --out-array "$name" --out "$name.st" --json "$@" || return
  cp out "$name.json"
  expect_exit 0 rhizome export g.rz --array "$name" --out "$name.npy"
}
# same NAME: its rows and decoder are those of the first training.
same() { cmp first.npy "$1.npy" && cmp first.st "$1.st" || fail "$1 differs"; }

trained first
expect_json first.json 'len(j["epochs"]) == 4 and j["rows"] == 7500 and j["relations"] == 2 and j["array"] == "first"' \
  'j["epochs"][0]["loss"] > j["epochs"][3]["loss"] > 0 and all(e["edges"] == 21600 for e in j["epochs"])' \
  'j["cached_rows"] == j["rows"] and j["disk_bytes"] > 2 * j["table_bytes"]'
expect_exit 0 rhizome evaluate g.rz --array first --decoder first.st --test test.tsv --json
expect_json out 'j["edges"] == 2400 and j["mrr"] > 0.03 and j["hits"]["10"] > 0.08' # at random: 0.003, 0.004
expect_exit 0 rhizome score g.rz --array first --decoder first.st --top 3 --type buys --all --out top.tsv
expect_exit 0 rhizome verify g.rz

# --- Little memory, threads.
expect_exit 5 rhizome train g.rz "${flags[@]}" --memory 1M
expect_says "--memory" "needs at least"
least=$(sed -n 's/.*needs at least \([0-9]*\).*/\1/p' err)
trained little --memory $((least + (1 << 19))) --threads 2
same little
expect_json little.json 'j["cached_rows"] < j["rows"] / 2 and j["epochs"][1]["rows_read"] > j["rows"] / 4' \
  'j["epochs"][1]["rows_written"] > 0 and j["epochs"][1]["bytes_read"] > 0'

# --- Kills: the training continues from its last checkpoint.
little=(--memory $((least + (1 << 19))) --checkpoint-every 20)
count_calls "$RHIZOME" train g.rz "${flags[@]}" --job count "${little[@]}"
for i in 1 2 3; do
  resume=()
  for part in 1 2; do # somewhere in the first part, then in the next one
    kill_at $((1 + RANDOM % (calls * 2 / 5))) KILL "$RHIZOME" train g.rz "${flags[@]}" --job "kill$i" "${little[@]}" "${resume[@]}"
    [ $code = 137 ] || fail "kill $part of kill$i: exit code $code: $(cat err)"
    resume=(--resume)
  done
  trained "kill$i" "${little[@]}" --resume
  same "kill$i"
done
# A resumed training needs the same options.
kill_at $((calls / 2)) KILL "$RHIZOME" train g.rz "${flags[@]}" --job other "${little[@]}"
expect_exit 1 rhizome train g.rz "${flags[@]}" --job other --resume --loss bce
expect_says "loss differ" "another training"

# --- Every decoder and loss.
for decoder in dot distmult transe rotate; do
  expect_exit 0 rhizome train g.rz --model table --dim 16 --decoder $decoder --negatives 32 --epochs 1 --loss self-adversarial \
    --margin 3 --negative-sources "degree^.75,in-batch:.2" --optimizer adagrad-row --out-array $decoder --out $decoder.st
  expect_exit 0 rhizome score g.rz --array $decoder --decoder $decoder.st --all-edges --out scores.npy
done

# --- What is refused.
refused() {
  local says=$1
  shift
  expect_exit 1 rhizome train g.rz --model table "$@"
  expect_says "$says"
}
refused "even number" --dim 15 --decoder complex
refused "there is no decoder 'circle'" --decoder circle
refused "has none" --decoder dot --reciprocal
refused "--fanout has no effect with --model table" --fanout 5,5
refused "--dropout has no effect with --model table" --dropout 0.1
refused "option heads of networks has no effect with --model table" --heads 2
refused "--task multiclass" --task multiclass
refused "adamw" --optimizer adamw
refused "--negative-sources" --negative-sources "uniform:.5,resident:.6"
refused "omit --full-graph" --full-graph
expect_exit 1 rhizome train g.rz --model table --out-array first
expect_says "--out-array" "first"
expect_exit 6 rhizome train g.rz --model table --decoder mlp
expect_says "mlp"
expect_exit 1 rhizome train g.rz --model sage --dim 5
expect_says "--dim" "--task link"
expect_exit 1 rhizome plan train g.rz --full-graph --model table
expect_says "omit --full-graph"
finish
