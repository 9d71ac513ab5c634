#!/usr/bin/env bash
# ingest --hold-out: its files, its output, options that are refused, and that a killed ingestion
# leaves no file. tests/index/ingest/hold_out_test.cc tests which edges are held out.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
test_seed

python3 - "$seed" <<'PY'
import random, sys
random.seed(int(sys.argv[1]))
with open("edges.csv", "w") as file:
    file.write("head,relation,tail,time\n")
    for i in range(3000):
        a, b = random.randrange(400), random.randrange(400)
        file.write(f"#e{a},{random.choice(['cites', 'likes'])},#e{b},2024-01-{1 + i // 100:02d}\n")
        if random.random() < .3:
            file.write(f"#e{b},cited by,#e{a},2024-01-{1 + i // 100:02d}\n")
PY
lines=$(($(wc -l <edges.csv) - 1))

# --- Files, and the output
expect_exit 0 rhizome ingest kg.rz edges.csv --hold-out valid=.05,test=.1 --json
expect_json out "j['edges'] + sum(s['edges'] for s in j['held_out']) == $lines" \
  '[s["set"] for s in j["held_out"]] == ["valid", "test"]' \
  'all(sum(s["by_relation"].values()) == s["edges"] > 0 for s in j["held_out"])' \
  'set(j["held_out"][1]["by_relation"]) == {"cites", "likes", "cited by"}' \
  'j["held_out"][0]["path"].endswith("/kg.rz.valid.tsv.zst")'
for set in valid test; do
  zstd -dqc "kg.rz.$set.tsv.zst" >"$set.tsv" || fail "$set is not zstd"
  [ "$(head -n 1 "$set.tsv")" = $'src\tdst\ttype\ttime' ] || fail "header of $set: $(head -n 1 "$set.tsv")"
done
python3 - out <<'PY' || fail "lines of the files"
import json, sys
sets = {s["set"]: s["edges"] for s in json.load(open(sys.argv[1]))["held_out"]}
for name, edges in sets.items():
    assert sum(1 for _ in open(name + ".tsv")) == edges + 1, name
PY

# --- The files are input as they are
if has_gnn; then
  expect_exit 0 rhizome train kg.rz --task link --model table --dim 8 --negatives 16 --epochs 1 --out-array ent \
    --out d.safetensors
  expect_exit 0 rhizome evaluate kg.rz --array ent --decoder d.safetensors --test kg.rz.test.tsv.zst \
    --valid kg.rz.valid.tsv.zst --json
  expect_json out "j['edges'] == $(($(wc -l <test.tsv) - 1)) and j['leaked_edges'] == 0"
fi
expect_exit 0 rhizome ingest again.rz kg.rz.test.tsv.zst --json
expect_json out "j['edges'] == $(($(wc -l <test.tsv) - 1)) and j['held_out'] == []"

# --- Relations, their inverses, and time
expect_exit 0 rhizome ingest r.rz edges.csv --hold-out test=.1:cites --inverse "cites=cited by" --json
expect_json out 'set(j["held_out"][0]["by_relation"]) == {"cites", "cited by"}'
[ ! -e r.rz.valid.tsv.zst ] || fail "a file of a set without a share"
expect_exit 0 rhizome ingest t.rz edges.csv --hold-out test=.1 --hold-out-by time --memory 64M
grep -q "held out, " out || fail "the output has no held-out edges"
zstd -dqc t.rz.test.tsv.zst | tail -n +2 | cut -f 4 | sort >times
[ "$(tail -n 1 times)" = 2024-01-30 ] || fail "the latest edge is not held out"
# Earlier edges of the same pairs are held out, too.
median=$(sed -n "$(($(wc -l <times) / 2))p" times)
[[ $median > 2024-01-25 ]] || fail "early edges are held out: half of them until $median"

# --- Refused
expect_exit 1 rhizome ingest bad.rz edges.csv --hold-out train=.5
expect_says "'train' is no set"
expect_exit 1 rhizome ingest bad.rz edges.csv --hold-out test
expect_says "test=.05"
expect_exit 1 rhizome ingest bad.rz edges.csv --hold-out test=.1,test=.1
expect_says "given twice"
expect_exit 1 rhizome ingest bad.rz edges.csv --hold-out test=.5,valid=.5
expect_says "--hold-out"
expect_exit 1 rhizome ingest bad.rz edges.csv --hold-out test=.1:hates
expect_says "'hates'"
expect_exit 1 rhizome ingest bad.rz edges.csv --hold-out test=.1 --inverse cites
expect_says "RELATION=INVERSE"
cut -d, -f1-3 edges.csv >untimed.csv
expect_exit 1 rhizome ingest bad.rz untimed.csv --hold-out test=.1 --hold-out-by time
expect_says "--hold-out-by time"
touch bad.rz.test.tsv.zst
expect_exit 1 rhizome ingest bad.rz edges.csv --hold-out test=.1
expect_says "exists already"
[ ! -s bad.rz.test.tsv.zst ] || fail "a file was overwritten"
rm bad.rz.test.tsv.zst
compgen -G 'bad.rz*' >/dev/null && fail "refused, but there is $(compgen -G 'bad.rz*')"

# --- Killed at any call that writes: there is no store without its file, and before the commit no file
killed=(ingest killed.rz edges.csv --hold-out test=.1 --hold-out-by time)
count_calls rhizome "${killed[@]}"
rm -rf killed.rz killed.rz.test.tsv.zst
for _ in {1..12}; do
  kill_at $((1 + RANDOM % calls)) KILL "$RHIZOME" "${killed[@]}"
  if [ -e killed.rz ] && "$RHIZOME" info killed.rz >/dev/null 2>&1; then
    [ -s killed.rz.test.tsv.zst ] || fail "a store without its file"
    rm -r killed.rz killed.rz.test.tsv.zst
  fi
  rm -f killed.rz.test.tsv.zst
done
kill_at $((calls / 2)) KILL "$RHIZOME" "${killed[@]}"
compgen -G '*killed.rz*tsv*' >/dev/null && fail "killed half-way, but there is $(compgen -G '*killed.rz*tsv*')"
expect_exit 0 rhizome "${killed[@]}"

finish
