#!/usr/bin/env bash
# kill -9 and Ctrl-C at many moments: an ingestion leaves nothing or everything; an inference leaves
# a store that opens, and --resume produces the bytes of a run that was never killed.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

rhizome generate planted --out demo --scale 14 --edge-factor 8 --dim 32 --seed 11 >/dev/null || fail "generate"
ingest=("$RHIZOME" ingest g.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split
  --array feat=demo/features.npy --partitions 4 --chunk-rows 128 --homes edgecut
  --store-id 00112233445566778899aabbccddeeff)

count_calls "${ingest[@]}"
tree_hash() { (cd "$1/generations" && find . -type f | sort | xargs sha256sum | sha256sum); }
wanted=$(tree_hash g.rz)

# --- Ingestion killed: nothing or everything, and the same command works afterwards
nothing=0 everything=0
rounds=6
for i in $(seq $rounds); do
  rm -rf g.rz
  kill_at $((calls * i / rounds)) KILL "${ingest[@]}"
  [ $code -eq 137 ] || fail "the killed ingestion exits $code: $(cat err)"
  code=0
  rhizome verify g.rz >out 2>err || code=$?
  case $code in
    0) everything=$((everything + 1)) ;;
    2)
      nothing=$((nothing + 1))
      "${ingest[@]}" >/dev/null 2>err || fail "ingesting again after kill -9: $(cat err)"
      ;;
    *) fail "verify after kill -9 exits $code: $(cat out err)" ;;
  esac
  [ "$(tree_hash g.rz)" = "$wanted" ] || fail "other bytes than an undisturbed ingestion writes"
done
echo "ingest killed $rounds times: nothing there $nothing times, everything $everything times"
[ $nothing -gt 0 ] || fail "no kill hit the ingestion while it worked"

# --- The same through scratch files
spilling=("${ingest[@]}" --spill always --memory 64M --partitioner hdrf)
rm -rf g.rz
count_calls "${spilling[@]}"
wanted_spilling=$(tree_hash g.rz)
nothing=0
for i in $(seq 4); do
  rm -rf g.rz
  kill_at $((calls * i / 5)) KILL "${spilling[@]}"
  [ $code -eq 137 ] || fail "the killed ingestion exits $code: $(cat err)"
  code=0
  rhizome verify g.rz >out 2>err || code=$?
  if [ $code -eq 2 ]; then
    nothing=$((nothing + 1))
    "${spilling[@]}" >/dev/null 2>err || fail "ingesting again after kill -9: $(cat err)"
  fi
  [ "$(tree_hash g.rz)" = "$wanted_spilling" ] || fail "other bytes than an undisturbed ingestion writes"
  [ ! -e g.rz/scratch ] || fail "scratch files were left"
done
[ $nothing -gt 0 ] || fail "no kill hit the ingestion through scratch files while it worked"

# --- Ctrl-C while ingesting: exit code 130 and no store
rm -rf g.rz
count_calls "${ingest[@]}"
for i in 2 4 6; do
  rm -rf g.rz
  kill_at $((calls * i / 12)) INT "${ingest[@]}"
  [ $code -eq 130 ] || fail "Ctrl-C while ingesting exits $code: $(cat err)"
  expect_exit 2 rhizome info g.rz
done
"${ingest[@]}" >/dev/null || fail "ingesting again after Ctrl-C"

if ! has_gnn; then
  echo "skipped: inference, this build has no librhizome_gnn"
  finish
fi

# --- Inference killed: the store opens, is whole, and --resume ends with the same embeddings
rhizome train g.rz --epochs 1 --fanout 5,5 --hidden 64 --threads 1 --out m.safetensors >/dev/null || fail "train"
infer=("$RHIZOME" infer g.rz --model-file m.safetensors --out embedding --block-rows 128 --chunk-rows 128 --threads 2)
cp -r g.rz fresh.rz
count_calls "${infer[@]}"
rhizome export g.rz --array embedding --out wanted.npy >/dev/null || fail "export"

killed=0 resumed=0
for i in $(seq 4); do
  rm -rf g.rz && cp -r fresh.rz g.rz
  kill_at $((calls * i / 8)) KILL "${infer[@]}"
  [ $code -eq 137 ] || fail "the killed inference exits $code: $(cat err)"
  expect_exit 0 rhizome verify g.rz
  if ! rhizome get g.rz 0 --array embedding >/dev/null 2>&1; then
    killed=$((killed + 1))
    expect_exit 0 "${infer[@]}" --resume --json
    python3 -c 'import json,sys; sys.exit(json.load(open("out"))["resumed_chunks"] == 0)' && resumed=$((resumed + 1))
    expect_exit 0 rhizome verify g.rz
  fi
  rhizome export g.rz --array embedding --out got.npy >/dev/null || fail "export after resuming"
  cmp -s wanted.npy got.npy || fail "the embeddings differ from those of an undisturbed run"
done
echo "infer killed $killed times in the middle, $resumed times it had chunks to go on from"
[ $killed -gt 0 ] || fail "no kill hit the inference while it worked"

# --- Training killed: --resume ends with the model of a run that was never stopped
rm -rf g.rz && cp -r fresh.rz g.rz
train=("$RHIZOME" train g.rz --epochs 4 --batch-size 200 --fanout 5,5 --hidden 16 --threads 1 --checkpoint-every 3 --superbatch 4)
count_calls "${train[@]}" --out wanted.safetensors
killed=0 resumed=0
for i in $(seq 6); do
  kill_at $((calls * i / 7)) KILL "${train[@]}" --out got.safetensors
  [ $code -eq 137 ] || fail "the killed training exits $code: $(cat err)"
  expect_exit 0 rhizome verify g.rz
  expect_exit 0 "${train[@]}" --out got.safetensors --resume --json
  python3 -c 'import json,sys; sys.exit(json.load(open("out"))["resumed_minibatches"] == 0)' && resumed=$((resumed + 1))
  cmp -s wanted.safetensors got.safetensors || fail "the resumed training's model differs from that of an undisturbed run"
done
echo "train killed 6 times, $resumed times it had a checkpoint to go on from"
[ $resumed -gt 0 ] || fail "no killed training left a checkpoint"

# --- Ctrl-C while inferring and training: exit code 130, the store unchanged
rm -rf g.rz && cp -r fresh.rz g.rz
wanted=$(tree_hash g.rz)
kill_at $((calls * 2 / 3)) INT "${infer[@]}"
[ $code -eq 130 ] || fail "Ctrl-C while inferring exits $code: $(cat err)"
[ "$(tree_hash g.rz)" = "$wanted" ] || fail "an interrupted inference changed the store"
rm -rf g.rz && cp -r fresh.rz g.rz
train=("$RHIZOME" train g.rz --fanout 10,10 --hidden 16 --out never.safetensors --epochs)
count_calls "${train[@]}" 2
rm never.safetensors
kill_at "$calls" INT "${train[@]}" 1000
[ $code -eq 130 ] || fail "Ctrl-C while training exits $code: $(cat err)"
[ ! -e never.safetensors ] || fail "an interrupted training wrote a model"
[ "$(tree_hash g.rz)" = "$wanted" ] || fail "an interrupted training changed the store"
expect_exit 0 rhizome verify g.rz
finish
