#!/usr/bin/env bash
# Inference under bad conditions: a full disk, damaged chunks, a model that does not fit, a name
# that is in use. No partial result is published, the message says what is wrong, and finished work
# can be resumed.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
has_gnn || skip "this build has no librhizome_gnn"

rhizome generate planted --out data --scale 12 --dim 32 --classes 4 --seed 5 >/dev/null || fail "generate"
ingest=(rhizome ingest --edges data/edges.npy --nodes data/nodes.tsv --node-columns id,label,split --undirected --partitions 2)
"${ingest[@]}" good.rz --array feat=data/features.npy >/dev/null 2>err || fail "ingest: $(head -c 300 err)"
rhizome train good.rz --epochs 1 --fanout 5,5 --hidden 64 --threads 1 --out m.safetensors >/dev/null || fail "train"
infer=(--model-file m.safetensors --out emb --block-rows 128 --chunk-rows 128 --threads 2)
cp -r good.rz g.rz
expect_exit 0 rhizome infer g.rz "${infer[@]}"
rhizome export g.rz --array emb --out wanted.npy >/dev/null || fail "export"

not_published() { # store
  expect_exit 0 rhizome verify "$1"
  expect_exit 2 rhizome get "$1" 0 --array emb
}

resumes() { # store
  expect_exit 0 rhizome infer "$1" "${infer[@]}" --resume --json
  rhizome export "$1" --array emb --out got.npy >/dev/null || fail "export after resuming"
  cmp -s wanted.npy got.npy || fail "the embeddings differ from those of a run with room"
}

# --- No space
rm -rf g.rz && cp -r good.rz g.rz
code=0
(ulimit -f 16 && trap '' XFSZ && exec "$RHIZOME" infer g.rz "${infer[@]}") >out 2>err </dev/null || code=$?
[ $code -eq 5 ] || fail "beyond ulimit -f: exit code $code, $(head -c 300 err)"
not_published g.rz
resumes g.rz
mkdir small
rm -rf g.rz && cp -r good.rz g.rz  # which has no reserve
size=$(($(du -sk g.rz | cut -f1) + 1100))
if mount -t tmpfs -o size=${size}k tmpfs small 2>/dev/null; then
  cp -r good.rz small/g.rz
  expect_exit 5 rhizome infer small/g.rz "${infer[@]}"
  not_published small/g.rz
  mount -o remount,size=$((size + 20000))k small
  resumes small/g.rz
  expect_json out 'j["resumed_chunks"] > 0'
  umount small
else
  echo "skipped: a full file system, mounting is not allowed here (ulimit -f was tried)"
fi

# --- A damaged chunk of the features, in either layout, is named; an earlier array is let be
"${ingest[@]}" chunk.rz --array feat=data/features.npy --layout chunk --chunk-rows 256 >/dev/null || fail "ingest chunk"
for store in good chunk; do
  rm -rf g.rz && cp -r $store.rz g.rz
  chunk=$(cd g.rz/generations/000001 && find arrays/feat -type f -name 'c*' | sort | head -n 1)
  python3 - "g.rz/generations/000001/$chunk" <<'PY'
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(1000)
    byte = f.read(1)[0]
    f.seek(1000)
    f.write(bytes([byte ^ 16]))
PY
  for mode in layerwise samplewise; do
    [ "$store-$mode" = chunk-samplewise ] && continue  # takes single rows, which such a layout has not
    expect_exit 3 rhizome infer g.rz "${infer[@]}" --mode $mode
    grep -qE "$chunk|array feat|feat.*row" err || fail "$store, $mode: the message names no chunk: $(head -c 300 err)"
    expect_exit 2 rhizome get g.rz 0 --array emb
  done
done

# --- A model that does not fit, a file that is none, a name that is taken
rm -rf g.rz && cp -r good.rz g.rz
rhizome generate planted --out wide --scale 12 --dim 48 --classes 4 --seed 5 >/dev/null
expect_exit 0 rhizome array add g.rz wide=wide/features.npy
expect_exit 1 rhizome infer g.rz "${infer[@]}" --features wide
expect_says wide "48 columns" 32
expect_exit 1 rhizome infer g.rz "${infer[@]}" --features label
expect_exit 1 rhizome infer g.rz --model-file g.rz/FORMAT --out emb  # wrong input, no damage
expect_exit 1 rhizome infer g.rz --model-file m.safetensors --out feat
expect_says feat --new-version
not_published g.rz

# --- Of versions that are made again and again, those that are not kept leave nothing on disk
for _ in 1 2 3; do expect_exit 0 rhizome infer g.rz "${infer[@]/emb/kept}" --new-version --keep 1; done
[ "$(find g.rz/generations -type d -name 'kept.v*' | wc -l)" -eq 1 ] || fail "dropped versions are still there"
rhizome array drop g.rz kept --all-versions >/dev/null || fail "drop"

# --- Two jobs of one name: the second is busy, and harms nothing
mkdir -p g.rz/scratch/infer-emb
if command -v flock >/dev/null; then
  (
    failures=0
    flock -x 9
    expect_exit 4 rhizome infer g.rz "${infer[@]}"
    expect_says infer-emb
    exit $failures
  ) 9>g.rz/scratch/infer-emb/LOCK || fail "a second job of the same name"
fi
resumes g.rz

# --- Scores of links
printf '0\t1\n5\t9\n4095\t4095\n' >pairs.tsv
expect_exit 0 rhizome score g.rz --array emb --pairs pairs.tsv --out s.tsv --json
expect_json out 'j["pairs"] == 3 and j["bytes_read"] > 0 and j["out"] == "s.tsv"'
expect_exit 0 rhizome score g.rz --array emb --pairs pairs.tsv --out s.npy
expect_exit 0 rhizome score g.rz --array emb --all-edges --out e.tsv --threads 2 --memory 64M
expect_exit 0 rhizome score g.rz --array emb --all-edges --out e.npy
expect_exit 0 rhizome export g.rz --edges --no-header --out edges.tsv
python3 - <<'PY' || fail "scores are not the dot products of the exported rows"
import array, re
def npy(path):
    data = open(path, "rb").read()
    head = 10 + int.from_bytes(data[8:10], "little")
    values = array.array("f"); values.frombytes(data[head:])
    shape = [int(n) for n in re.findall(r"\d+", data[10:head].decode().split("shape")[1])]
    return shape, values
(rows, dim), emb = npy("wanted.npy")
def dot(a, b): return sum(emb[a * dim + d] * emb[b * dim + d] for d in range(dim))
def lines(path): return [l.rstrip("\n").split("\t") for l in open(path)]
for name in ("s", "e"):
    pairs = lines(name + ".tsv")
    shape, scores = npy(name + ".npy")
    assert shape == [len(pairs)], (shape, len(pairs))
    for (a, b, text), score in zip(pairs, scores):
        assert abs(float(text) - score) <= 1e-6 * (1 + abs(score)), (a, b, text, score)
        assert abs(score - dot(int(a), int(b))) <= 1e-3 * (1 + abs(score)), (a, b, score)
assert [p[:2] for p in lines("e.tsv")] == [e[:2] for e in lines("edges.tsv")]
PY

expect_exit 1 rhizome score g.rz --array emb --out x.tsv
expect_exit 1 rhizome score g.rz --array emb --pairs pairs.tsv --all-edges --out x.tsv
expect_exit 1 rhizome score g.rz --array emb --pairs pairs.tsv --scorer mlp --out x.tsv
expect_says --decoder
expect_exit 1 rhizome score g.rz --array emb --pairs - --out x.npy
expect_exit 2 rhizome score g.rz --array none --pairs pairs.tsv --out x.tsv
printf '0\t1\n0\t99999\n' >bad.tsv
expect_exit 2 rhizome score g.rz --array emb --pairs bad.tsv --out x.tsv
expect_says bad.tsv:2 99999
printf '0\n' >bad.tsv
expect_exit 1 rhizome score g.rz --array emb --pairs bad.tsv --out x.tsv
expect_says bad.tsv:1
expect_exit 5 rhizome score g.rz --array emb --pairs pairs.tsv --out x.tsv --memory 1M
[ ! -e x.tsv ] || fail "a failed scoring left a file"
finish
