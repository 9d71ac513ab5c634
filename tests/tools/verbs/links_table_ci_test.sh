#!/usr/bin/env bash
# train --model table: rows that learn a planted structure, the same rows with little memory, on
# several threads and after kills, ranks of a validation and a test set, and what is refused.
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

# --- A validation set after each epoch changes no row; the test at the end is an evaluation.
head -n 1201 test.tsv >judge.tsv
(head -n 1 test.tsv && tail -n 1200 test.tsv) >rest.tsv
sets=(--valid judge.tsv --test rest.tsv)
trained judged "${sets[@]}"
same judged
expect_json judged.json 'all(0.01 < e["mrr_sampled"] < 1 for e in j["epochs"])' 'j["warnings"] == []' \
  'j["epochs"][3]["mrr_sampled"] > 1.2 * j["epochs"][0]["mrr_sampled"]' 'j["test"]["edges"] == 1200 and j["test"]["ranks"] == 2400'
expect_exit 0 rhizome evaluate g.rz --array judged --decoder judged.st --test rest.tsv --valid judge.tsv --json
python3 - <<'PY' || fail "the test at the end differs from an evaluation"
import json
one, two = json.load(open("judged.json"))["test"], json.load(open("out"))
for key in ("mrr", "hits", "mean_rank", "optimistic", "by_side", "by_relation", "without_unseen", "unseen_ends", "definition"):
    assert one[key] == two[key], key
PY
expect_exit 0 rhizome train g.rz "${flags[@]}" --eval-every 3 "${sets[@]}" --job text --out-array text --out text.st
grep -q "valid mrr_sampled" out && grep -q "the last epoch was kept" out && grep -q "^test edges:" out &&
  grep -Eq "^  all +2,400 " out || fail "the text lacks figures: $(cat out)"
trained alone --filter-negatives --valid judge.tsv
cmp -s first.npy alone.npy && fail "the filter of negatives changes nothing"

# --- Little memory, threads.
expect_exit 5 rhizome train g.rz "${flags[@]}" --memory 1M
expect_says "--memory" "needs at least"
least=$(sed -n 's/.*needs at least \([0-9]*\).*/\1/p' err)
trained little --memory $((least + (1 << 19))) --threads 2
same little
expect_exit 5 rhizome train g.rz "${flags[@]}" --memory 1M --threads 2 --filter-negatives --valid judge.tsv
least_judged=$(sed -n 's/.*needs at least \([0-9]*\).*/\1/p' err)
[ "$least_judged" -gt "$least" ] || fail "a validation set needs no memory"
trained quiet --memory $((least_judged + (1 << 19))) --threads 2 --filter-negatives --valid judge.tsv
cmp alone.npy quiet.npy || fail "filtered negatives depend on memory or threads"
python3 -c 'import json; a, b = (json.load(open(n)) for n in ("alone.json", "quiet.json")); assert [e["mrr_sampled"] for e in a["epochs"]] == [e["mrr_sampled"] for e in b["epochs"]]' ||
  fail "ranks of the validation set depend on memory or threads"
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

# --- Stores without in-lists, and a type with one vertex.
expect_exit 0 rhizome ingest out.rz --edges edges.tsv --nodes nodes.tsv --directions out
expect_exit 1 rhizome train out.rz --model table --dim 4 --filter-negatives
expect_says "in-lists" "--directions both"
(cat nodes.tsv && printf 'x\tonly\n') >more_nodes.tsv
(cat edges.tsv && printf 'u1\tbuys\tx\n') >more_edges.tsv
expect_exit 0 rhizome ingest one.rz --edges more_edges.tsv --nodes more_nodes.tsv
expect_exit 1 rhizome train one.rz --model table --dim 4
expect_says "--negatives" "'only' has one vertex"

# --- What is refused.
refused() {
  local says=$1
  shift
  expect_exit 1 rhizome train g.rz --model table "$@"
  expect_says "$says"
}
refused "rhizome: invalid_argument: --dim is 15" --dim 15 --decoder complex
refused "even number" --dim 15 --decoder rotate
refused "there is no decoder 'circle'" --decoder circle
refused "has none" --decoder dot --reciprocal
refused "--fanout has no effect with --model table" --fanout 5,5
refused "--dropout has no effect with --model table" --dropout 0.1
refused "option heads of networks has no effect with --model table" --heads 2
refused "--task multiclass" --task multiclass
refused "adamw" --optimizer adamw
refused "--negative-sources" --negative-sources "uniform:.5,resident:.6"
refused "omit --full-graph" --full-graph
refused "--eval-every has no effect" --eval-every 2
refused "needs --out" --test rest.tsv --out-array x
refused "give --out-array" --test rest.tsv --out x.st
refused "--allow-leaked has no effect without --test" --allow-leaked
refused "is for encoders" --set keep-seed-edges=true
head -n 3 edges.tsv >leaked.tsv
refused "the store has 2 of the 2 edges of --test" --test leaked.tsv --out-array x --out x.st
refused "--allow-leaked" --test leaked.tsv --out-array x --out x.st
printf 'src\ttype\tdst\nu1\tbuys\tnobody\n' >unknown.tsv
expect_exit 2 rhizome train g.rz --model table --valid unknown.tsv
expect_says "unknown.tsv:2" nobody
# A warning for each type with few vertices.
expect_exit 0 rhizome train g.rz --model table --dim 4 --epochs 1 --negatives 2000 --json
expect_says "--negatives 2000" "1500 vertices of the type 'user'" "--filter-negatives"
expect_json out 'len(j["warnings"]) == 1'
expect_exit 0 rhizome train g.rz --model table --dim 4 --epochs 1 --negatives 2000 --filter-negatives --json
expect_json out 'j["warnings"] == []'
expect_exit 1 rhizome train g.rz --model table --out-array first
expect_says "--out-array" "first"
expect_exit 6 rhizome train g.rz --model table --decoder mlp
expect_says "mlp"
expect_exit 1 rhizome train g.rz --model sage --dim 5
expect_says "--dim" "--task link"
expect_exit 1 rhizome plan train g.rz --full-graph --model table
expect_says "omit --full-graph"
finish
