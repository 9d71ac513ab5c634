#!/usr/bin/env bash
# Files and folders of a store that are missing: every verb ends as if all were there, or says that the store is
# damaged (exit code 3), never that the user named something wrong (1, 2); verify finds whatever somebody would miss.
# `export` meets each kind of file, of the other verbs some are drawn; where there are more rounds all are tried.
set -uo pipefail
source "$RHIZOME_SOURCE/tests/hostile/common.bash"
damaged=0
undisturbed=0

# String ids, types, weights, arrays of both layouts, shards, versions, an edge attribute, a delta, and a generation
# that is kept.
python3 - <<'PY'
import struct
def npy(path, rows):
    head = repr({"descr": "<f4", "fortran_order": False, "shape": (rows, 4)}).encode()
    head += b" " * ((64 - (11 + len(head)) % 64) % 64) + b"\n"
    data = struct.pack(f"<{4 * rows}f", *range(4 * rows))
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data)
npy("rows.npy", 40)
npy("few.npy", 30)
npy("rest.npy", 10)
with open("edges.tsv", "w") as f:
    for i in range(40):
        for step in (1, 7): f.write(f"v{i}\tv{(i + step) % 40}\tt{step}\t{i / 40}\t{i}\n")
PY
printf 'v1\tv9\tt1\t0.5\t3\n' >one.tsv
printf 'v1\n' >seeds.tsv
printf 'v1\tv2\n' >pairs.tsv
columns="--columns src,dst,type,weight,time"
# shellcheck disable=SC2086
make() {
  "$rhizome" ingest good.rz --edges edges.tsv --columns src,dst,type,weight,time --partitions 2 &&
    "$rhizome" array add good.rz feat=rows.npy && "$rhizome" array add good.rz emb=rows.npy --new-version --live &&
    "$rhizome" array add good.rz emb=rows.npy --new-version &&
    "$rhizome" array add good.rz shard=rows.npy --layout chunk --chunk-rows 16 --inner-rows 4 &&
    "$rhizome" put good.rz one.tsv $columns &&
    "$rhizome" compact good.rz --keep-generations 1 --repartition && "$rhizome" array add good.rz few=few.npy &&
    "$rhizome" array alias good.rz emb@live 2 && "$rhizome" put good.rz one.tsv $columns
}
make >log 2>&1 || { cat log; exit 1; }
generation=generations/$(ls good.rz/generations | tail -n 1)
kept=generations/$(ls good.rz/generations | head -n 1)

# One of each kind, by its path.
places=(FORMAT LOCK catalog generations "$generation" "$generation/topology" "$generation/arrays" "$generation/sums")
kinds() { (cd good.rz && find catalog "$generation" "$kept/PIN" "$kept"/MANIFEST-* -type f | sort); }
while read -r file; do places+=("$file"); done < <(kinds | awk '{
  kind = $0; gsub(/[0-9]+/, "#", kind); if (!seen[kind]++) print }')

verbs=("export s.rz --array feat --out o.npy" "put s.rz one.tsv $columns" "info s.rz" "neighbors s.rz v1" "get s.rz v1 --array feat"
  "similar s.rz v1 --array feat" "delete s.rz one.tsv $columns" "changes s.rz --out -" "compact s.rz"
  "compact s.rz --repartition" "array list s.rz" "array path s.rz feat" "array add s.rz new=rows.npy"
  "array add s.rz emb=rows.npy --new-version" "array append s.rz few rest.npy" "array drop s.rz feat"
  "array rename s.rz shard x" "array rename s.rz emb x" "array alias s.rz emb@live 2" "array keep s.rz emb 1"
  "array rollback s.rz emb@live" "backup s.rz s.bak" "repair s.rz" "repair s.rz --dry-run" "upgrade s.rz"
  "sample s.rz --seeds seeds.tsv --fanout 2 --out o.zip" "export s.rz --edges --out o.tsv"
  "export s.rz --array shard --out o.npy" "export s.rz --array emb@1 --out o.npy" "score s.rz --array feat --all-edges --out o.npy"
  "score s.rz --array emb --pairs pairs.tsv --out o.npy" "info s.rz --metrics" "plan infer s.rz --features feat"
  "train s.rz --epochs 1 --hidden 4 --features feat --labels few --split few --out o.model"
  "infer s.rz --features feat --model-file o.model")

# try PLACE VERB...
try() {
  local place=$1 code=0
  shift
  rm -rf s.rz s.bak s.rz.quarantine-* o.*
  cp -a good.rz s.rz
  rm -rf "s.rz/$place"
  timeout $((60 * patience)) "$rhizome" "$@" >out 2>err </dev/null || code=$?
  if [ $code -eq 0 ]; then
    undisturbed=$((undisturbed + 1))
  elif [ $code -eq 3 ]; then
    damaged=$((damaged + 1))
    grep -qiE 'damage|missing|lost|no such file|changed after' out err || report "'$*' without $place says nothing of it: $(head -c 300 err)"
  else
    report "'$*' without $place: exit code $code: $(head -c 300 err)"
  fi
  last=$code
}

# What a verb says of a sound store is its own affair: a build without training refuses to train.
usable=()
for verb in "${verbs[@]}"; do
  rm -rf s.rz s.bak o.* && cp -a good.rz s.rz
  # shellcheck disable=SC2086
  if timeout $((60 * patience)) "$rhizome" $verb >out 2>err </dev/null; then usable+=("$verb"); else
    case $verb in train* | infer* | plan* | score* | "array append"*) ;; *) report "'$verb' of a sound store: $(head -c 300 err)" ;; esac
  fi
done

for place in "${places[@]}"; do
  try "$place" verify s.rz
  found_by_verify=$last
  for ((i = 0; i < ${#usable[@]}; ++i)); do
    [ $HOSTILE_ROUNDS -gt 1 ] || [ $i -lt 1 ] || [ $((RANDOM % 16)) -eq 0 ] || continue
    # shellcheck disable=SC2086
    try "$place" ${usable[i]}
    [ "$last" -ne 3 ] || [ "$found_by_verify" -eq 3 ] ||
      report "verify calls a store sound without $place, of which '${usable[i]}' says that it is damaged"
  done
done
echo "count verbs that say that a store without one of its files is damaged $damaged"
echo "count verbs that do not need the file that a store lacks $undisturbed"
[ $found -eq 0 ]
