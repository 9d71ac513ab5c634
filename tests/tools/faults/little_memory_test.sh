#!/usr/bin/env bash
# Training and inference, and everything that loads libtorch for them, with little memory, few
# threads and few descriptors: the exit code is the one for shortages, and the message says what is
# short. No process aborts.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
has_gnn || skip "this build has no librhizome_gnn"
test_seed

rhizome generate planted --out g --scale 8 --dim 8 >/dev/null || fail "generate"
rhizome ingest s.rz --edges g/edges.npy --nodes g/nodes.tsv --node-columns id,label,split --array feat=g/features.npy \
  --partitions 2 >/dev/null || fail "ingest"
rhizome train s.rz --epochs 1 --hidden 8 --threads 1 --out m.safetensors >/dev/null || fail "train"

# short LIMIT COMMAND...: done, or a shortage of memory or threads.
short() {
  local limit=$1 code=0
  shift
  (ulimit -v "$limit" && exec "$@") >out 2>err </dev/null || code=$?
  [ "$code" -eq 0 ] || [ "$code" -eq 5 ] || fail "exit code $code with $limit KiB: $(head -c 300 err): $*"
  [ "$code" -eq 0 ] || grep -q 'memory\|thread' err || fail "does not say what is short: $(head -c 300 err)"
}
train=("$RHIZOME" train s.rz --epochs 1 --hidden 8 --out n.safetensors)
infer=("$RHIZOME" infer s.rz --model-file m.safetensors --out emb)
# Too little to map libtorch, to start it, and to work with.
for limit in 200000 400000 440000 $((450000 + RANDOM * 8)) $((450000 + RANDOM * 12)); do
  short "$limit" "${train[@]}"
  short "$limit" "${infer[@]}"
  rhizome array drop s.rz emb >/dev/null 2>&1
done
(ulimit -n 12 && exec "${train[@]}") >out 2>err || true
! grep -q unsupported err || fail "too few descriptors are taken for a missing library: $(head -c 300 err)"
expect_exit 0 rhizome verify s.rz
finish
