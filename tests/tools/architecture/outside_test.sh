#!/usr/bin/env bash
# No output of a verb can be written into a store or a folder of backups, through any link: it would
# count as damage of the store, and a repair would move it away.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

printf '0\t1\n1\t2\n2\t0\n' >e.tsv
printf '0\t2\n' >one.tsv
printf '0\n' >seeds.tsv
expect_exit 0 rhizome generate planted --out demo --scale 4 --dim 2
expect_exit 0 rhizome ingest s.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy
expect_exit 0 rhizome backup s.rz bak
expect_exit 0 rhizome ingest other.rz --edges e.tsv
ln -s s.rz road
ln -s s.rz/FORMAT file
mkdir s.rz/scratch
cp -a s.rz halved.rz && rm halved.rz/FORMAT # damaged, and still one
state() { find s.rz bak halved.rz demo | sort | cksum; }
before=$(state)

# refuse VERB...: exit code 1, a message that names the place, and nothing was made.
refuse() {
  expect_exit 1 rhizome "$@"
  expect_says 'where only its own files are allowed'
  [ "$(state)" = "$before" ] || fail "something was made: $*"
}
for place in s.rz/b bak/b; do
  refuse backup s.rz "$place"
  refuse backup other.rz "$place"
  refuse restore bak "$place"
  refuse ingest "$place" --edges e.tsv
  refuse import wordnet "$place"
  refuse export s.rz --array feat --out "$place.npy"
  refuse export s.rz --edges --out "$place.csv"
  refuse changes s.rz --out "$place"
  refuse sample s.rz --seeds seeds.tsv --fanout 2 --out "$place"
  refuse put other.rz one.tsv --metrics "$place"
  refuse compact other.rz --metrics "$place"
  refuse partition --edges e.tsv --out "$place.npy"
  refuse generate rmat --scale 2 --out "$place"
  refuse compact other.rz --scratch "$place"
  refuse ingest new.rz --edges e.tsv --scratch "$place"
  refuse array add other.rz feat=demo/features.npy --scratch "$place"
  if has_gnn; then
    refuse score s.rz --array feat --all-edges --out "$place.npy"
    refuse train s.rz --epochs 1 --hidden 4 --out "$place"
    refuse train s.rz --epochs 1 --hidden 4 --scratch "$place" --out model
  fi
done
# Whatever links and dots lead there, and where the store is damaged.
for place in s.rz/scratch/b road/deep/b ./bak/../s.rz/b halved.rz/b; do
  refuse backup other.rz "$place"
  refuse export s.rz --edges --out "$place"
done
for place in s.rz bak road; do
  refuse compact other.rz --scratch "$place"
  refuse generate rmat --scale 2 --out "$place"
  refuse partition --edges e.tsv --dir "$place"
done
refuse export s.rz --edges --out file
# What a refused put was to write is not written either.
expect_exit 0 rhizome changes other.rz --out -
[ -s out ] && fail "a put whose metrics were refused was applied: $(cat out)"
expect_exit 0 rhizome verify s.rz
grep -q ok out || fail "verify: $(cat out)"

# Scratch files go into folders, and leave nothing there.
for place in /dev/null e.tsv; do
  for verb in "compact other.rz" "ingest new.rz --edges e.tsv"; do
    # shellcheck disable=SC2086
    expect_exit 1 rhizome $verb --scratch $place
    expect_says 'is not a folder'
  done
done
mkdir tmp && ln -s tmp way
for place in tmp way made; do
  expect_exit 0 rhizome array add s.rz "in-$place=demo/features.npy" --scratch "$place"
  [ -z "$(ls "$place")" ] || fail "left in $place: $(ls -R "$place")"
done

# Outside is as it was: beside a store, in a folder that holds one, through links.
mkdir in && ln -s in link
expect_exit 0 rhizome backup s.rz in/bak
expect_exit 0 rhizome restore in/bak in/s.rz
expect_exit 0 rhizome ingest link/new.rz --edges e.tsv
expect_exit 0 rhizome export in/s.rz --edges --out in/e.tsv
finish
