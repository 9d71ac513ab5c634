#!/usr/bin/env bash
# Tests the final table of the reliability tests: a count that is missing or too low, and a test
# that was skipped although it may not be, is a failure.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
table=$RHIZOME_SOURCE/tests/reliability/harness/counts_table.sh
export RHIZOME_COUNTS=$work/counts

# Every count that the table asks for, as a run would leave it that has done enough.
fill() {
  rm -rf "$RHIZOME_COUNTS" && mkdir "$RHIZOME_COUNTS"
  local least names name
  while read -r least names; do
    for name in $names; do
      if [ "$least" = "=0" ]; then echo 0; else echo 1000000; fi >"$RHIZOME_COUNTS/$name@ATest.Case"
    done
  done < <(sed -nE -e 's/^row "[^"]*" ("[^"]*"|[^ ]+) (.*)$/\1 \2/p' \
    -e 's/^skippable_row "[^"]*" ([0-9]+) [A-Za-z]+ (.*)$/\1 \2/p' "$table" | sed 's/^"[^"]*"/1/')
  echo 50 >"$RHIZOME_COUNTS/mutants@ATest.Case"
  echo 50 >"$RHIZOME_COUNTS/mutants-caught@ATest.Case"
}

mkdir "$RHIZOME_COUNTS"
expect_exit 1 "$table"
fill
expect_exit 0 "$table"
[ -z "$(ls "$RHIZOME_COUNTS" | grep @)" ] || fail "counts are left for the next run"
# Each count that is missing, too small, or not nothing.
for name in kills mutants mutants-caught crash-failures bit-flips-silent power-cuts; do
  fill
  rm "$RHIZOME_COUNTS/$name@ATest.Case"
  expect_exit 1 "$table" || fail "without $name"
done
fill
echo 49 >"$RHIZOME_COUNTS/mutants-caught@ATest.Case"
expect_exit 1 "$table" || fail "a mistake that is not caught"
fill
echo 1 >"$RHIZOME_COUNTS/injuries-silent@ATest.Case"
expect_exit 1 "$table" || fail "silent damage"
# What may be skipped, and what may not.
fill
rm "$RHIZOME_COUNTS/power-cuts@ATest.Case"
echo "Skipped only root can mount" >"$RHIZOME_COUNTS/skipped@FileSystems-PowerCutTest.Loses-ext4"
expect_exit 0 "$table"
grep -q 'power cuts .*skipped (Skipped only root can mount)' "$work/out" || fail "the reason is not shown"
fill
echo "no reason" >"$RHIZOME_COUNTS/skipped@FaultTest.EndsWithAnError-updates"
expect_exit 1 "$table" || fail "a test that may not skip"
grep -q 'SKIPPED: FaultTest' "$work/out" || fail "the skipped test is not named"

# A test that could not be run has failed; one that skipped says so.
mkdir "$work/build"
cat >"$work/build/ctest.xml" <<'XML'
<testsuite>
<testcase name="a" status="run"/>
<testcase name="b" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
<testcase name="c" status="notrun"><skipped message="Unable to find executable"/></testcase>
<testcase name="d" status="disabled"/>
</testsuite>
XML
echo "add_test(c \"$work/build/none\")" >"$work/build/CTestTestfile.cmake"
"$RHIZOME_SOURCE/tools/report_tests.py" "$work/build" all >"$work/report"
[ "$(tail -n 1 "$work/report")" = "all: 1 passed, 1 failed, 2 skipped" ] || fail "cases: $(cat "$work/report")"
finish
