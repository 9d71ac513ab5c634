#!/usr/bin/env bash
# plan train --model table: its figures are those of the training, and its notes.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
has_gnn || skip "this build has no librhizome_gnn"
test_seed

python3 - "$seed" <<'PY'
import random, sys
rng = random.Random(int(sys.argv[1]))
with open("edges.tsv", "w") as f:
    for i in range(30000):
        a = i if i < 6400 else rng.randrange(6400)  # each vertex has an edge, so that its row is read
        b = a // 800 * 800 + rng.randrange(800)
        f.write(f"{a}\t{b if rng.random() < .9 else rng.randrange(6400)}\n")
PY
expect_exit 0 rhizome ingest g.rz --edges edges.tsv --columns src,dst --vertices 6400 --partitions 8
expect_exit 0 rhizome ingest one.rz --edges edges.tsv --columns src,dst --vertices 6400 --partitions 1
flags=(--task link --model table --dim 64 --decoder distmult --negatives 64 --batch-size 256 --optimizer adagrad --seed 3)

# --- Without a limit all rows remain in memory, and each is read once.
expect_exit 0 rhizome plan train g.rz "${flags[@]}" --json
cp out plan.json
expect_json plan.json 'j["rows"] == j["cached_rows"] == 6400 and j["dim"] == 64 and j["row_bytes"] == 512' \
  'j["table_bytes"] == 6400 * 512 and j["disk_bytes"] > 2 * j["table_bytes"] and j["partitions"] == 8 and j["notes"] == []' \
  'j["epochs"][0]["rows_read"] == 6400 and j["epochs"][1]["rows_read"] == 0'
[ ! -e g.rz/scratch ] || fail "the plan left files"
expect_exit 0 rhizome train g.rz "${flags[@]}" --epochs 2 --json
python3 - plan.json out <<'PY' || fail "other counts than the training without a limit"
import json, sys
plan, trained = (json.load(open(path)) for path in sys.argv[1:])
assert plan["batches"] == trained["batches"] and plan["disk_bytes"] == trained["disk_bytes"]
for p, t in zip(plan["epochs"], trained["epochs"]):
    assert all(p[key] == t[key] for key in ("rows_requested", "rows_read", "rows_written")), (p, t)
PY

# --- Within a limit, the figures differ by what the two processes hold.
least=$(python3 -c 'import json; print(json.load(open("plan.json"))["least_memory_bytes"])')
memory=$((least + (2 << 20)))
expect_exit 0 rhizome plan train g.rz "${flags[@]}" --memory $memory --json
cp out plan.json
expect_exit 0 rhizome train g.rz "${flags[@]}" --epochs 2 --memory $memory --json
python3 - plan.json out <<'PY' || fail "other counts than the training within a limit"
import json, sys
plan, trained = (json.load(open(path)) for path in sys.argv[1:])
assert plan["cached_rows"] < plan["rows"] / 1.5, plan["cached_rows"]
parts = plan["held_bytes"] + plan["fixed_bytes"] + plan["lookahead_bytes"] + plan["cache_bytes"]
assert plan["memory_bytes"] * .99 < parts <= plan["memory_bytes"], (parts, plan["memory_bytes"])
for p, t in zip(plan["epochs"], trained["epochs"]):
    assert p["rows_requested"] == t["rows_requested"]
    assert abs(p["rows_read"] - t["rows_read"]) < .15 * t["rows_read"], (p, t)
    # The training also writes other rows of the blocks: at most all eight of a block.
    assert t["rows_written"] / 8 < p["rows_written"] < 1.15 * t["rows_written"], (p, t)
PY
expect_exit 0 rhizome plan train g.rz "${flags[@]}" --memory $memory
grep -q "rows changed" out || fail "no table of epochs: $(cat out)"
expect_exit 5 rhizome plan train g.rz "${flags[@]}" --memory 1M
expect_says "--memory" "needs at least"
all=$(python3 -c 'import json; print(json.load(open("plan.json"))["all_memory_bytes"])')
expect_exit 0 rhizome plan train g.rz "${flags[@]}" --memory $((all + (1 << 20))) --json
expect_json out 'j["cached_rows"] == j["rows"]'

# --- Advice
expect_exit 0 rhizome plan train one.rz "${flags[@]}" --memory $memory --json
expect_json out '"one partition" in j["notes"][0] and "--partitions" in j["notes"][0]'
expect_exit 0 rhizome plan train g.rz --task link --model table --negatives 6400 --dim 8
expect_says "warning" "--negatives 6400"
expect_exit 1 rhizome plan train g.rz --model table --full-graph
expect_exit 1 rhizome plan train g.rz --model table --fanout 5,5
expect_says "--fanout has no effect"

# --- A disk without room
mkdir small
if mount -t tmpfs -o size=4m tmpfs small 2>/dev/null; then
  expect_exit 5 rhizome plan train g.rz "${flags[@]}" --scratch small
  expect_says "twice its size"
  umount small
else
  echo "skipped: a full disk, mounting is not allowed here"
fi

finish
