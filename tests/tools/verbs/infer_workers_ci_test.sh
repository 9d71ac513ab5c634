#!/usr/bin/env bash
# infer --workers: the bytes are those of a single process, for any number of workers, and if any
# process is killed.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

has_gnn || skip "this build has no librhizome_gnn"
test_seed

rhizome generate planted --out demo --scale 13 --edge-factor 6 --dim 32 --seed 5 >/dev/null || fail "generate"
rhizome ingest g.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy --partitions 4 --chunk-rows 256 >/dev/null || fail "ingest"
rhizome train g.rz --epochs 1 --fanout 5,5 --hidden 32 --threads 1 --out m.safetensors >/dev/null || fail "train"
infer=("$RHIZOME" infer g.rz --model-file m.safetensors --chunk-rows 256 --threads 2)

same_bytes() { # what
  rhizome export g.rz --array emb --out got.npy >/dev/null || fail "$1: export"
  cmp -s wanted.npy got.npy || fail "$1: other bytes than those of one process"
  rhizome array drop g.rz emb >/dev/null || fail "$1: drop"
}
one_process() { # flags...
  expect_exit 0 "${infer[@]}" --out emb "$@" --json
  cp out whole.json
  rhizome export g.rz --array emb --out wanted.npy >/dev/null || fail "export"
  rhizome array drop g.rz emb >/dev/null || fail "drop"
}

for flags in "--scores" "--fanout 4,3 --layout bfs --inner-rows 64" "--topology direct"; do
  # shellcheck disable=SC2086
  one_process $flags
  for workers in 1 3 6; do
    # shellcheck disable=SC2086
    expect_exit 0 "${infer[@]}" --out emb $flags --workers $workers --memory 2G --json
    expect_json out 'all(l["vertices"] == 8192 and l["chunk_requests"] > 0 for l in j["layers"])'
    python3 -c 'import json; a, b = json.load(open("whole.json")), json.load(open("out")); assert a["test_accuracy"] == b["test_accuracy"]' \
      || fail "another accuracy with $workers workers"
    same_bytes "$workers workers $flags"
  done
done

# --- Ranges: learned on another graph, for this one; the bytes are the same, and so after a kill.
rhizome generate rmat --out other --scale 13 --edge-factor 8 --dim 32 --seed $((RANDOM + 1)) >/dev/null || fail "generate"
rhizome ingest o.rz --edges other/edges.npy --vertices 8192 --array feat=other/features.npy >/dev/null || fail "ingest"
one_process
for turn in 1 2; do
  expect_exit 0 "$RHIZOME" infer o.rz --model-file m.safetensors --out emb --chunk-rows 256 --threads 2 --workers 3 \
    --block-rows 256 --costs costs.json --new-version --json
  expect_json out 'all(len(l["ranges"]["cuts"]) == 4 and l["ranges"]["weights"] for l in j["layers"])'
  [ $turn -eq 1 ] || expect_json out 'all(l["ranges"]["error"] is not None for l in j["layers"])'
done
expect_json out 'j["layers"][0]["ranges"]["model"] == "sage/32x32/in"'
cp costs.json of-other.json
expect_exit 0 "${infer[@]}" --out emb --workers 3 --block-rows 256 --costs costs.json --json
expect_json out 'all(l["ranges"]["predicted"] and l["ranges"]["r2"] is not None for l in j["layers"])'
same_bytes "ranges by costs of another graph"
cmp -s costs.json of-other.json && fail "nothing was learned"
"${infer[@]}" --out emb --workers 3 --block-rows 128 --costs costs.json >out 2>err </dev/null &
job=$!
sleep 0.$((RANDOM % 5))
kill -9 $job 2>/dev/null
{ wait $job; } 2>/dev/null
if ! rhizome get g.rz 0 --array emb >/dev/null 2>&1; then
  expect_exit 0 "${infer[@]}" --out emb --workers 2 --resume --costs of-other.json
fi
same_bytes "killed, and resumed with other weights"
echo "{}" >costs.json
expect_exit 0 "${infer[@]}" --out emb --workers 2 --costs costs.json
expect_says "costs.json"
same_bytes "a damaged file of costs"
expect_exit 1 "${infer[@]}" --out emb --costs costs.json
expect_exit 1 "${infer[@]}" --out emb --workers 2 --costs g.rz/costs.json

# --- Killed: a worker, all of them, the job
one_process
start() { # flags...: the job in the background, its children in $children
  "${infer[@]}" --out emb --block-rows 128 "$@" >out 2>err </dev/null &
  job=$!
  children=""
  while [ -z "$children" ] && kill -0 $job 2>/dev/null; do children=$(pgrep -P $job | tr '\n' ' '); done
  sleep 0.$((RANDOM % 5))
}
hit=0
for round in 1 2 3 4 5 6; do
  start --workers 3
  # shellcheck disable=SC2086
  set -- $children
  case $((round % 3)) in
    1) [ $# -gt 0 ] && kill -9 "$1" 2>/dev/null && hit=$((hit + 1)) ;;
    2) [ $# -gt 0 ] && kill -9 "$@" 2>/dev/null && hit=$((hit + 1)) ;;
    0) kill -9 $job 2>/dev/null && hit=$((hit + 1)) ;;
  esac
  code=0
  { wait $job || code=$?; } 2>/dev/null
  wait_for 10 gone "$@" || fail "round $round: of the workers $* some are left"
  if [ $code -ne 0 ]; then
    [ $((round % 3)) -ne 1 ] || fail "round $round: one worker was killed and the job exits $code: $(cat err)"
    [ $((round % 3)) -ne 2 ] || expect_says "workers have died" "--resume"
    # A job that is killed after it has published leaves the whole array; before that, nothing that is seen.
    if [ $((round % 3)) -ne 0 ] || ! rhizome get g.rz 0 --array emb >/dev/null 2>&1; then
      expect_exit 2 rhizome get g.rz 0 --array emb
      expect_exit 0 "${infer[@]}" --out emb --workers 2 --resume
    fi
  fi
  same_bytes "round $round"
  expect_exit 0 rhizome verify g.rz
done
echo "$hit of 6 kills hit a process that was there"

# --- Stopped: one worker, whose range the others take up; all of them, which ends the job. It is noticed after 30 s, at
# once for both jobs, each on a store of its own.
cp -r g.rz all.rz
# stop_workers STORE COUNT: a job over three workers, of which so many are stopped as soon as they are there. A job that is
# done before is begun again.
stop_workers() {
  local store=$1 count=$2 job children code
  for _ in 1 2 3 4 5; do
    "$RHIZOME" infer "$store" --model-file m.safetensors --out emb --chunk-rows 256 --threads 2 --block-rows 128 \
      --workers 3 >"$store.out" 2>"$store.err" </dev/null &
    job=$!
    children=
    while [ "$(wc -w <<<"$children")" -lt 3 ] && kill -0 $job 2>/dev/null; do children=$(pgrep -P $job | tr '\n' ' '); done
    # shellcheck disable=SC2046
    kill -STOP $(cut -d ' ' -f "1-$count" <<<"$children") 2>/dev/null
    code=0
    wait $job || code=$?
    echo $code >"$store.code"
    grep -q "did not respond for 30 s" "$store.err" && break
    rhizome array drop "$store" emb >/dev/null
  done
  for child in $children; do
    kill -0 "$child" 2>/dev/null && echo "$child" >>"$store.left"
  done
  return 0
}
stop_workers g.rz 1 &
one=$!
stop_workers all.rz 3
wait $one
for store in g.rz all.rz; do [ -e $store.left ] && fail "$store: stopped workers are left: $(cat $store.left)"; done
[ "$(cat g.rz.code)" = 0 ] || fail "one stopped worker ends the job with $(cat g.rz.code): $(cat g.rz.err)"
grep -qE "worker [123] \(process [0-9]+\) did not respond for 30 s and was killed; other workers compute its part" g.rz.err ||
  fail "a stopped worker is not named: $(cat g.rz.err)"
same_bytes "a stopped worker"
[ "$(cat all.rz.code)" = 2 ] || fail "stopped workers end the job with $(cat all.rz.code): $(cat all.rz.err)"
cp all.rz.err err
expect_says "all 3 workers have died" "worker 2 (process " "did not respond for 30 s" "--resume"
expect_exit 0 "$RHIZOME" infer all.rz --model-file m.safetensors --out emb --chunk-rows 256 --threads 2 --resume
rhizome export all.rz --array emb --out got.npy >/dev/null || fail "export"
cmp -s wanted.npy got.npy || fail "other bytes after a job whose workers were stopped"

most=$(($(nproc --all) > 64 ? $(nproc --all) : 64))
expect_exit 1 "${infer[@]}" --out emb --workers $((most + 1))
expect_says "$((most + 1)) workers are too many"
expect_exit 1 "${infer[@]}" --out emb --workers 2 --mode samplewise
expect_exit 1 "${infer[@]}" --out emb --workers 2 --incremental
expect_exit 5 "${infer[@]}" --out emb --workers 2 --memory 20M
expect_says "workers"
finish
