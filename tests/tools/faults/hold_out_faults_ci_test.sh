#!/usr/bin/env bash
# System calls that fail during ingest --hold-out: either there are the store and all files, or
# neither.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
test_seed
library=$RHIZOME_BUILD/lib/librhizome_fail_at.so

for i in {1..2000}; do echo "$((RANDOM % 200)),$((RANDOM % 200)),$i"; done >edges.csv
mkdir place && cd place || exit 1
faults=0 refused=0
for way in "--spill never" "--spill always" "--hold-out-by time"; do
  # shellcheck disable=SC2206
  ingest=(ingest g.rz ../edges.csv --columns src,dst,time --hold-out valid=.1,test=.1 $way)
  LD_PRELOAD=$library RHIZOME_FAIL_COUNT=$work/calls "$RHIZOME" "${ingest[@]}" >../out 2>../err || fail "ingest: $(cat ../err)"
  calls=$(cat "$work/calls")
  zstd -dqc g.rz.test.tsv.zst >../wanted
  for how in EIO ENOSPC EACCES; do
    for _ in {1..12}; do
      rm -rf g.rz g.rz.*
      at=$((1 + RANDOM % calls)) code=0
      LD_PRELOAD=$library RHIZOME_FAIL_AT=$at RHIZOME_FAIL_HOW=$how RHIZOME_FAIL_STICKY=0 \
        timeout $((60 * patience)) "$RHIZOME" "${ingest[@]}" >../out 2>../err </dev/null || code=$?
      faults=$((faults + 1))
      repeat="$way: RHIZOME_FAIL_AT=$at RHIZOME_FAIL_HOW=$how"
      [ $code -ge 124 ] && fail "$repeat: exit code $code: $(head -c 300 ../err)"
      if rhizome info g.rz >/dev/null 2>&1; then
        zstd -dqc g.rz.test.tsv.zst | cmp -s - ../wanted || fail "$repeat: another file beside the store"
        [ -s g.rz.valid.tsv.zst ] || fail "$repeat: no validation file beside the store"
      else
        refused=$((refused + 1))
        left=$(find . -name '*.tsv.zst*')
        [ -z "$left" ] || fail "$repeat: no store, but $left"
      fi
    done
  done
  rm -rf g.rz g.rz.*
done
[ $refused -gt 10 ] || fail "only $refused of $faults faults hit"
echo "COUNT hold-out-faults $faults"
echo "COUNT hold-out-faults-refused $refused"
finish
