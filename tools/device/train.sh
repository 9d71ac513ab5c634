#!/usr/bin/env bash
# Runs trainings and inferences on a machine with a GPU, both on its processor and on the device, and prints the times.
# usage: RHIZOME=PROGRAM tools/device/train.sh OUT; writes OUT/runs.json (one line per run), OUT/compared.json and logs.
# Needs a rhizome whose libtorch includes CUDA, python3 with numpy, and 4 GB of disk. Takes up to 8 minutes.
# Exit code: 1 if a run failed, or if results of the device and the processor differ too much.
set -uo pipefail
rhizome=${RHIZOME:?RHIZOME names the program rhizome}
out=$(mkdir -p "${1:?usage: tools/device/train.sh OUT}" && cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scale=${RHIZOME_DEVICE_SCALE:-20}
: >"$out/runs.json"
: >"$out/runs.log"
failed=0

# store NAME ARGUMENTS OF generate: a store in $work/NAME.rz.
store() {
  local name=$1
  shift
  "$rhizome" generate "$@" --seed 7 --out "$work/$name" >>"$out/runs.log" 2>&1 || return 1
  local labels=(--nodes "$work/$name/nodes.tsv" --node-columns id,label,split)
  if [ "$1" = rmat ]; then  # which has no classes: any will do to time a network
    python3 - "$work/$name" <<'PYTHON' || return 1
import sys
import numpy as np
rows = np.load(f"{sys.argv[1]}/features.npy", mmap_mode="r").shape[0]
draw = np.random.default_rng(7)
np.save(f"{sys.argv[1]}/label.npy", draw.integers(0, 8, (rows, 1), dtype=np.int32))
np.save(f"{sys.argv[1]}/split.npy", draw.choice(np.array([0, 1, 2], np.uint8), (rows, 1), p=[.5, .05, .45]))
PYTHON
    labels=(--array "label=$work/$name/label.npy" --array "split=$work/$name/split.npy")
  fi
  "$rhizome" ingest "$work/$name.rz" --edges "$work/$name/edges.npy" --array "feat=$work/$name/features.npy" \
    "${labels[@]}" >>"$out/runs.log" 2>&1 && rm -rf "${work:?}/$name"
}

# run NAME VERB ARGUMENTS: a line {"run": NAME, "answer": what VERB --json says} in runs.json.
run() {
  local name=$1 code
  shift
  timeout 100 "$rhizome" "$@" --json --progress none >"$work/answer.json" 2>>"$out/runs.log"
  code=$?
  [ $code -eq 0 ] || { failed=1; echo "$name: exit $code" | tee -a "$out/runs.log" >&2; return; }
  printf '{"run": "%s", "answer": %s}\n' "$name" "$(<"$work/answer.json")" >>"$out/runs.json"
}

# both NAME ARGUMENTS: a training on the processor and one on the device, whose losses should be near.
both() {
  local name=$1
  shift
  run "$name/cpu" train "$@" --device cpu
  run "$name/cuda" train "$@" --device cuda --device-memory 64M
}

store planted planted --scale $((scale - 4)) --edge-factor 8 --dim 256 || failed=1
store rmat rmat --scale "$scale" --edge-factor 8 --dim 256 || failed=1

deep=("$work/planted.rz" --layers 3 --fanout 15,10,5 --hidden 256 --epochs 5 --steps 10 --no-test --eval-every 5)
for model in gat gatv2 sage; do
  both "planted/$model" "${deep[@]}" --model $model
done

# The first epochs read the rows, and a superbatch may be as long as several: what counts is the mean of the later ones.
wide=("$work/rmat.rz" --layers 3 --fanout 10,10,10 --hidden 256 --epochs 9 --steps 40 --no-test --eval-every 9)
fifth=$((256 * 4 * (1 << scale) / 5))
run rmat/cpu train "${wide[@]}" --device cpu
for overlap in auto changeset; do
  run rmat/none/$overlap train "${wide[@]}" --device cuda --device-cache none --overlap $overlap
done
for superbatch in 20 100 auto; do
  run rmat/belady/$superbatch train "${wide[@]}" --device cuda --device-cache belady --device-memory $fifth \
    --superbatch $superbatch
done
run rmat/static/20 train "${wide[@]}" --device cuda --device-cache static --device-memory $fifth --superbatch 20

# Classes that were drawn teach nothing: all rows would come out alike, whatever computes them.
run infer/model train "$work/planted.rz" --layers 2 --hidden 256 --epochs 2 --steps 20 --lr 0.001 --no-test --eval-every 2 \
  --out "$work/model.safetensors"
for device in cpu cuda; do
  run infer/$device infer "$work/rmat.rz" --model-file "$work/model.safetensors" --out on_$device --device $device
  "$rhizome" export "$work/rmat.rz" --array on_$device --out "$work/on_$device.npy" --ids "$work/ids.txt" \
    >>"$out/runs.log" 2>&1 || failed=1
done

python3 "$here/compare_runs.py" "$out/runs.json" "$work" | tee "$out/compared.json" || failed=1
exit $failed
