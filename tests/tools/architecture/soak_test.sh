#!/usr/bin/env bash
# tools/soak.sh, tested in a separate tree: it finds the failing seeds and the flaky case, reruns
# only tests that draw random numbers, appends to the ledger, and ends all processes that it
# started.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

mkdir -p tools tests build/release bin
cp "$RHIZOME_SOURCE"/tools/soak.{sh,py} tools
echo "int x;" >x.cc
cat >build/release/compile_commands.json <<EOF
[{"directory": "$work", "command": "c++ -c x.cc -o x.o", "file": "x.cc"}]
EOF
# Draws in two of its cases: one fails for an odd seed, the other once.
cat >bin/suite <<'EOF'
#!/usr/bin/env bash
cases=(A.odd A.once A.fixed) code=0
case $1 in
  --gtest_list_tests) printf 'A.\n  odd\n  once\n  fixed  # of no parameter\n  DISABLED_one\n' && exit ;;
  --gtest_filter=*) IFS=: read -ra cases <<<"${1#*=}" ;;
esac
for case in "${cases[@]}"; do
  echo "$case" >>ran
  echo "[ RUN      ] $case"
  [ "$case" = A.fixed ] || echo "RHIZOME_TEST_SEED=$RHIZOME_TEST_SEED"
  failed=0
  [ "$case" != A.odd ] || failed=$((RHIZOME_TEST_SEED % 2))
  [ "$case" != A.once ] || ! mkdir failed_once 2>/dev/null || failed=1
  [ $failed -eq 0 ] && echo "[       OK ] $case (0 ms)" || { echo "[  FAILED  ] $case (0 ms)" && code=1; }
done
exit $code
EOF
cat >bin/script <<'EOF'
#!/bin/sh
[ "$MALLOC_PERTURB_" = 165 ] || exit 3
echo "RHIZOME_TEST_SEED=$RHIZOME_TEST_SEED"
[ ! -e hang ] || { sleep 1000 & echo $! >pid; mv pid hangs; wait; }
EOF
printf '#!/bin/sh\ntouch never\n' >bin/constant
chmod +x bin/*
cat >build/release/CTestTestfile.cmake <<EOF
add_test(suite.0 $work/bin/suite --gtest_output=xml:none)
set_tests_properties(suite.0 PROPERTIES LABELS quick ENVIRONMENT "GTEST_TOTAL_SHARDS=1;GTEST_SHARD_INDEX=0")
add_test(script $work/bin/script)
add_test(constant $work/bin/constant)
set_tests_properties(script constant PROPERTIES LABELS ci)
EOF

expect_exit 1 tools/soak.sh --seeds 40
[ "$(grep -c '^FLAKY .*A.once' out)" = 1 ] || fail "A.once is not flaky once: $(cat out)"
seed=$(sed -n "s/^FAILED .* RHIZOME_TEST_SEED=\([0-9]*\) build.release.bin.suite --gtest_filter='A.odd'$/\1/p" out |
  head -n 1)
[ $((${seed:-0} % 2)) -eq 1 ] || fail "no odd seed failed: $(cat out)"
[ "$(grep -c A.fixed build/release/ran)" -lt 40 ] || fail "a case that does not draw is run with each seed"
[ ! -e build/release/never ] || fail "a script that does not draw is run"
awk -F'\t' '{ seeds[$1] += $3 } $1 == "A.once" { flaky += $6 } $1 == "A.odd" { failed += $5 }
  END { exit !(seeds["suite"] == 40 && seeds["script"] == 40 && flaky == 1 && failed > 0) }' tests/SOAK.tsv ||
  fail "the ledger: $(cat tests/SOAK.tsv)"
expect_exit 0 tools/soak.sh --seeds 5 --only script
expect_exit 0 tools/soak.sh --seeds 5 --only 'suite A.once'
expect_exit 1 tools/soak.sh --seeds 5 --only nothing
expect_exit 1 tools/soak.sh --seeds 5 --build other && expect_says build/other
cp -r build/release build/other
expect_exit 0 tools/soak.sh --seeds 5 --build other --only script
tail -n 1 tests/SOAK.tsv | grep -qP '^other/script\t[^\t]*\t5\t' || fail "the ledger: $(cat tests/SOAK.tsv)"

touch build/release/hang
tools/soak.sh --only script >out 2>&1 &
soak=$!
wait_for 60 test -e build/release/hangs || fail "the script was not run"
kill -TERM $soak
wait $soak
gone "$(cat build/release/hangs)" || fail "a test goes on after the soak was ended"
grep -q interrupted out || fail "$(cat out)"
finish
