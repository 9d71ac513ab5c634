#!/usr/bin/env bash
# Updates and compaction in operation: beside readers, killed, interrupted, on a full disk. The
# store answers every query as before or after, and verify reports no damage.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

rhizome generate planted --out demo --scale 13 --edge-factor 8 --dim 32 --seed 7 >/dev/null || fail "generate"
rhizome ingest base.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy --partitions 4 --chunk-rows 128 >/dev/null || fail "ingest"
awk 'BEGIN { srand(3); for (i = 0; i < 3000; ++i) print int(rand() * 8300) "\t" int(rand() * 8300) }' >put.tsv
head -500 put.tsv >delete.tsv
rhizome put base.rz put.tsv --batch 100 >/dev/null || fail "put"
rhizome delete base.rz delete.tsv >/dev/null || fail "delete"

# What a store says: counts, rows of all vertices by external id, and some lists.
answers() {
  rhizome info "$1" --json | python3 -c '
import json, sys
info = json.load(sys.stdin)
print(info["vertices"], info["edges"])' || fail "info $1"
  rhizome export "$1" --array feat --out rows.npy >/dev/null || fail "export $1"
  sha256sum <rows.npy
  sha256sum <rows.ids.tsv
  for id in 0 1 2 3 5 8 13 21 34 8190 8200 8299; do
    rhizome neighbors "$1" $id --direction both --json >one 2>/dev/null && cat one || echo "no $id"
  done
}
wanted=$(answers base.rz)

# --- Compacted: the same answers
cp -r base.rz g.rz
count_calls "$RHIZOME" compact g.rz --json
grep -q '"generation":2' out || fail "compact says: $(cat out)"
[ "$(answers g.rz)" = "$wanted" ] || fail "a compacted store gives other answers"
rhizome verify g.rz >/dev/null || fail "verify after compact"
[ "$(echo $(ls g.rz/generations))" = "000001 000002" ] || fail "one generation is kept: $(ls g.rz/generations)"
rhizome compact g.rz --json >out || fail "compact without updates"
grep -q '"compacted":false' out || fail "nothing to compact, but: $(cat out)"
[ "$(echo $(ls g.rz/generations))" = "000001 000002" ] || fail "one generation is kept: $(ls g.rz/generations)"
rhizome compact g.rz --keep-generations 0 >out || fail "compact without updates, and keep nothing"
[ "$(ls g.rz/generations)" = 000002 ] || fail "the generation before is still there: $(ls g.rz/generations)"
rhizome put g.rz delete.tsv >/dev/null || fail "put"
rhizome compact g.rz >/dev/null || fail "compact"
[ "$(ls g.rz/generations)" = 000003 ] || fail "nothing is kept from then on: $(ls g.rz/generations)"
rhizome info g.rz --json | grep -q '"keep_generations":0' || fail "info does not say how many are kept"

# --- Killed at many moments: the old or the new generation, whole
before=0 after=0
rounds=6
for i in $(seq $rounds); do
  rm -rf g.rz
  cp -r base.rz g.rz
  kill_at $((calls * i / rounds)) KILL "$RHIZOME" compact g.rz
  [ $code -eq 137 ] || fail "the killed compaction exits $code: $(cat err)"
  rhizome verify g.rz >out 2>err || fail "verify after kill -9: $(cat out err)"
  case $(rhizome info g.rz --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["generation"])') in
    1) before=$((before + 1)) ;;
    2) after=$((after + 1)) ;;
    *) fail "info after kill -9 names another generation" ;;
  esac
  [ "$(answers g.rz)" = "$wanted" ] || fail "other answers after kill -9"
  rhizome put g.rz delete.tsv >/dev/null || fail "put after kill -9"
  rhizome delete g.rz delete.tsv >/dev/null || fail "delete after kill -9"
  rhizome compact g.rz >/dev/null || fail "compact after kill -9"
  [ "$(ls g.rz/generations | wc -l)" = 2 ] || fail "rubbish was left: $(ls g.rz/generations)"
done
echo "compact killed $rounds times: the old generation $before times, the new one $after times"
[ $before -gt 0 ] && [ $after -gt 0 ] || fail "the kills hit only one side of the commit"

# --- Ctrl-C: exit code 130, nothing changed
interrupted=0
for i in 1 2 3 4; do
  rm -rf g.rz
  cp -r base.rz g.rz
  kill_at $((calls * i / 8)) INT "$RHIZOME" compact g.rz
  [ $code -eq 0 ] || [ $code -eq 130 ] || fail "Ctrl-C while compacting exits $code: $(cat err)"
  [ $code -ne 130 ] || interrupted=$((interrupted + 1))
  [ "$(answers g.rz)" = "$wanted" ] || fail "other answers after Ctrl-C"
done
echo "compact interrupted $interrupted times of 4"
[ $interrupted -gt 0 ] || fail "no Ctrl-C ended a compaction"

# --- A full disk, as a limit on the size of files: a clear error, and nothing changed
rm -rf g.rz
cp -r base.rz g.rz
code=0
(ulimit -f 8 && trap '' XFSZ && exec "$RHIZOME" compact g.rz) >out 2>err || code=$?
[ $code -eq 5 ] || fail "compact on a full disk exits $code: $(cat out err)"
[ "$(answers g.rz)" = "$wanted" ] || fail "other answers after a full disk"
rhizome verify g.rz >/dev/null || fail "verify after a full disk"

# --- Beside a process that samples: put, delete, compact, again and again
seq 0 200 >seeds.txt
(
  while [ ! -e stop ]; do
    rhizome sample g.rz --seeds seeds.txt --fanout 5,5 --batch-size 50 >/dev/null 2>sample.err || exit 1
  done
) &
sampler=$!
for i in 1 2 3 4 5; do
  rhizome put g.rz put.tsv >/dev/null || fail "put beside a sampler"
  rhizome delete g.rz delete.tsv >/dev/null || fail "delete beside a sampler"
  rhizome compact g.rz >/dev/null || fail "compact beside a sampler"
done
touch stop
wait $sampler || fail "sample beside updates: $(cat sample.err)"
rhizome verify g.rz >/dev/null || fail "verify after updates beside a sampler"

finish
