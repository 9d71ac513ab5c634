#!/usr/bin/env bash
# Kills (-9) an inference before 50 of its calls that change files, chosen at random, with varying
# layouts, shards, caches, lists on disk and incremental runs. --resume, with other threads and
# another cache, produces the same bytes.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

has_gnn || skip "this build has no librhizome_gnn"
test_seed

rhizome generate planted --out demo --scale 11 --edge-factor 6 --dim 16 --seed 5 >/dev/null || fail "generate"
rhizome ingest g.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy --partitions 4 --chunk-rows 128 >/dev/null || fail "ingest"
rhizome train g.rz --epochs 1 --fanout 5,5 --hidden 16 --threads 1 --out m.safetensors >/dev/null || fail "train"
base=("$RHIZOME" infer s.rz --model-file m.safetensors --out emb --block-rows 128 --chunk-rows 256)
"$RHIZOME" infer g.rz --model-file m.safetensors --out emb --incremental >/dev/null || fail "first version"
printf '3\t9\n17\t1000\n' >edges.tsv
rhizome put g.rz edges.tsv >/dev/null || fail "put"

# What a resumed run must say again, and what it need not: that one says `other`.
variants=("--new-version" "--new-version" "--new-version --inner-rows 64" "--new-version --codec zstd:1" "--incremental")
only_first=("--threads 2" "--threads 1 --layout blocks --cache fifo --cache-bytes 64K"
  "--threads 2 --layout bfs --cache cached-first --cache-bytes 64K"
  "--threads 2 --layout references --topology direct" "--threads 2 --memory 640M --cache-bytes 0")
read -ra other <<<"--threads 3 --cache lru --cache-bytes 32K"
killed=0 resumed=0
for v in "${!variants[@]}"; do
  read -ra again <<<"${variants[$v]}"
  read -ra flags <<<"${variants[$v]} ${only_first[$v]}"
  rm -rf s.rz && cp -r g.rz s.rz
  count_calls "${base[@]}" "${flags[@]}"
  rhizome export s.rz --array emb@2 --out wanted.npy >/dev/null || fail "export"
  moments=$(python3 -c 'import random, sys; s, v, n = map(int, sys.argv[1:])
print(*random.Random(s * 8 + v).sample(range(1, n + 1), min(10, n)))' "$seed" "$v" "$calls")
  for moment in $moments; do
    rm -rf s.rz && cp -r g.rz s.rz
    kill_at "$moment" KILL "${base[@]}" "${flags[@]}"
    # Another thread may have ended with one call less than was counted.
    [ $code -eq 137 ] || [ "$moment" -ge $((calls - 8)) ] || fail "variant $v, call $moment: exits $code: $(cat err)"
    rhizome verify s.rz >/dev/null || fail "variant $v, killed before call $moment: the store is damaged"
    if ! rhizome get s.rz 0 --array emb@2 >/dev/null 2>&1; then
      killed=$((killed + 1))
      expect_exit 0 "${base[@]}" "${again[@]}" "${other[@]}" --resume --json
      python3 -c 'import json,sys; sys.exit(json.load(open("out"))["resumed_chunks"] == 0)' && resumed=$((resumed + 1))
    fi
    rhizome export s.rz --array emb@2 --out got.npy >/dev/null || fail "variant $v, call $moment: export"
    cmp -s wanted.npy got.npy || fail "variant $v, killed before call $moment: other bytes"
  done
done
echo "killed $killed times before it was published, $resumed times there were chunks to go on from"
[ $killed -gt 0 ] || fail "no kill hit the inference while it worked"
[ $resumed -gt 0 ] || fail "no resumed run had chunks to go on from"
finish
