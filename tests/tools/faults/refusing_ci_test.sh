#!/usr/bin/env bash
# The quick suite where io_uring is forbidden, openat2 unknown and O_DIRECT refused, as in containers and on some file
# systems: everything goes through pread, with the same results.
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
export RHIZOME_TEST_SEED=${RHIZOME_TEST_SEED:-$RANDOM}
failures=0
for layer in storage index cache; do
  tests=$RHIZOME_BUILD/bin/rhizome_${layer}_quick_tests
  out=$("$refusing" "$tests" --gtest_brief=1 2>&1)
  code=$?
  echo "$layer: $(grep -F '[  PASSED  ]' <<<"$out"), $(grep -F '[  SKIPPED ]' <<<"$out" | head -n 1)"
  # A suite without a case that passed has shown nothing.
  [ $code -eq 0 ] && grep -qE '^\[  PASSED  \] [1-9]' <<<"$out" && continue
  failures=$((failures + 1))
  echo "FAILED: $tests under $refusing, RHIZOME_TEST_SEED=$RHIZOME_TEST_SEED" >&2
  grep -v '^RHIZOME_TEST_SEED=' <<<"$out" | tail -n 40 >&2
done
exit $failures
