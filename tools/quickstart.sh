#!/usr/bin/env bash
# Builds Rhizome from scratch and computes embeddings of WordNet 3.0: installs missing dependencies, builds, imports,
# partitions, chooses a layout, trains out of core, embeds every synset, learns which synsets are linked, and prints
# nearest neighbours. All files are written to build/quickstart/. usage: tools/quickstart.sh
set -euo pipefail
cd "$(dirname "$0")/.."
begin=$SECONDS
jobs=${RHIZOME_JOBS:-$(nproc)}
folder=build/quickstart
store=$folder/wordnet.rz
rhizome=build/release/bin/rhizome

step() { printf '\n\033[1m== %s\033[0m  (%d s so far)\n' "$*" $((SECONDS - begin)); }
# Shows a command as the reader could type it, then runs it.
show() {
  printf '\033[2m$ %s\033[0m\n' "$*" >&2
  "$@"
}
field() { sed -n 's/.*"'"$2"'":\([0-9.]*\).*/\1/p' "$1"; }
percent() { awk -v share="$1" 'BEGIN { printf "%5.1f %%", 100 * share }'; }

step "Installing what is missing"
tools/install_deps.sh

step "Building rhizome and librhizome_gnn in build/release"
cmake --preset release >/dev/null
cmake --build --preset release -j "$jobs" --target rhizome_cli rhizome_gnn_shared

built=$SECONDS
step "WordNet 3.0: import, four partitions, rows in PDS order"
mkdir -p $folder
rm -rf $store
show $rhizome import wordnet $store --partitions 4 --chunk-rows 4096
show $rhizome info $store
show $rhizome neighbors $store dog.n.01 --type hypernym

step "Training a 2-layer GraphSAGE: features remain on disk, with a 12 MiB cache that knows the coming reads"
train=(train $store --model sage --layers 2 --hidden 128 --fanout 10,10 --batch-size 1000 --epochs 10 --lr 0.01
  --dropout 0.3 --set cache-bytes=12M --memory 1G)
show $rhizome "${train[@]}" --out $folder/sage.safetensors

step "The same model without edges, for comparison"
show $rhizome "${train[@]}" --set no-edges=true --job no-edges --json >$folder/no-edges.json

step "The embedding of every synset, computed layer by layer"
show $rhizome infer $store --model-file $folder/sage.safetensors --out embedding --set cache-bytes=12M --memory 1G \
  --json >$folder/infer.json
printf '\nWhich of 45 lexicographer files is a synset in? Accuracy on the test set:\n'
printf '  GraphSAGE, all neighbours     %s\n' "$(percent "$(field $folder/infer.json test_accuracy)")"
printf '  the same model without edges  %s\n' "$(percent "$(field $folder/no-edges.json test_accuracy)")"
printf '  always the most common class  %s\n' "$(percent "$(field $folder/no-edges.json majority_accuracy)")"

step "A second model learns which synsets are linked: a row for each, whose products predict the edges"
show $rhizome train $store --task link --model table --dim 128 --decoder dot --negatives 512 --batch-size 1000 \
  --optimizer adagrad --lr 0.1 --epochs 5 --memory 1G --job links --out $folder/links.safetensors --out-array linked

step "Nearest synsets: by the rows that know the links, and by the words of the gloss alone"
for word in dog.n.01 guitar.n.01 run.v.01 democracy.n.01 happy.a.01; do
  $rhizome similar $store $word --array linked --array feat --k 6
  echo
done

step "Every checksum and invariant of the store"
show $rhizome verify $store

cat <<TEXT

Done: $((built - begin)) s to install and build, $((SECONDS - built)) s for all of the above. What to try next:
  export PATH=\$PWD/build/release/bin:\$PATH
  rhizome similar $store piano.n.01 --array embedding --array feat
  rhizome neighbors $store dog.n.01 --direction both
  rhizome train $store --cache lru --set cache-bytes=12M --epochs 1 # more bytes read than with belady
  rhizome export $store --array embedding --out embedding.npy       # NumPy; .fbin for vector search
  cmake --build --preset release --target rhizome_bench && rhizome bench pool   # reads of belady, lru, fifo, static
  rhizome help                                                      # everything else
The arrays are Zarr v3: zarr.open_group("$($rhizome array path "$store")")
TEXT
