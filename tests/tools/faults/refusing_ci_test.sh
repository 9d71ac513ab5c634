#!/usr/bin/env bash
# The quick test suites on a system that forbids io_uring, does not know openat2 and refuses
# O_DIRECT, as in containers and on some file systems: reads use pread, with the same results. Of index, which reads
# through storage, a quarter of the cases runs, which the seed selects.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
refusing=$RHIZOME_BUILD/bin/rhizome_refusing
"$refusing" true
if [ $? -eq 77 ]; then
  # The closing table of the reliability tests is told.
  [ -z "${RHIZOME_COUNTS:-}" ] || { mkdir -p "$RHIZOME_COUNTS" && echo "no seccomp" >"$RHIZOME_COUNTS/skipped@refusing_ci_test"; }
  skip "seccomp is not allowed here"
fi
test_seed
export RHIZOME_TEST_SEED=$seed
shards=4

# run LAYER SHARD: that part of the layer's suite, whose output and exit code stay in the working folder.
run() {
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$2 "$refusing" "$RHIZOME_BUILD/bin/rhizome_$1_quick_tests" --gtest_brief=1 \
    >"$work/$1.$2" 2>&1
  echo $? >"$work/$1.$2.code"
}

# They wait for the disk more than they compute: all at once.
parts() { [ "$1" = index ] && echo $((seed % shards)) || seq 0 $((shards - 1)); }
for layer in storage index cache; do
  for shard in $(parts $layer); do run $layer "$shard" & done
done
wait
for layer in storage index cache; do
  passed=0
  for shard in $(parts $layer); do
    out=$work/$layer.$shard
    here=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$out")
    passed=$((passed + ${here:-0}))
    # A part without a case that passed has shown nothing.
    [ "$(cat "$out.code")" = 0 ] && [ "${here:-0}" -gt 0 ] && continue
    failures=$((failures + 1))
    echo "FAILED: $layer, shard $shard of $shards, under $refusing, RHIZOME_TEST_SEED=$RHIZOME_TEST_SEED" >&2
    grep -v '^RHIZOME_TEST_SEED=' "$out" | tail -n 40 >&2
  done
  echo "$layer: $passed passed"
done
exit $failures
