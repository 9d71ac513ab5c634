#!/usr/bin/env bash
# tools/test.sh runs failed tests a second time. Tested in a separate tree, whose tests fail as
# often as a file says.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

mkdir -p tools tests build/release bin
cp "$RHIZOME_SOURCE"/tools/{test.sh,report_tests.py} tools
cp "$RHIZOME_SOURCE/CMakePresets.json" .
printf '#!/bin/sh\n' >tools/install_deps.sh
printf '#!/bin/sh\necho "$@" >>"%s/built"\n' "$work" >bin/cmake
printf 'import os, sys\nsys.exit(os.path.exists("untidy"))\n' >tests/tidy_test.py
# Behaves as a binary of GoogleTest: a case fails as often as left.CASE says, the process dies as often as left.die.NAME.
cat >bin/suite <<'EOF'
#!/usr/bin/env bash
name=$1 filter= xml= code=0 cases=
[ "$KEPT" = "yes;no" ] && [ "$RHIZOME_TEST_SEED$MALLOC_PERTURB_" = 7165 ] || exit 3
for word in "$@"; do
  case $word in
    --gtest_filter=*) filter=${word#*=} ;;
    --gtest_output=xml:*) xml=${word#*:} ;;
  esac
done
# One case of many shards is most often in none of this shard.
[ -z "$filter" ] || [ -z "${GTEST_TOTAL_SHARDS:-}" ] || exit 0
fails() { # WHAT: may it fail once more?
  local left
  left=$(cat "left.$1" 2>/dev/null || echo 0)
  [ "$left" -gt 0 ] && echo $((left - 1)) >"left.$1"
}
for case in one two/0; do
  [ -z "$filter" ] || [ "$filter" = "$name.$case" ] || continue
  echo "[ RUN      ] $name.$case"
  fails "die.$name" && kill -9 $$
  if fails "$name.${case%/*}"; then
    echo "[  FAILED  ] $name.$case"
    failure='<failure message="no"/>' code=1
  else
    echo "[       OK ] $name.$case"
    failure=
  fi
  cases+="<testcase name='$case' classname='$name' status='run' result='completed'>$failure</testcase>"
done
[ -z "$xml" ] || echo "<testsuites><testsuite name='$name'>$cases</testsuite></testsuites>" >"$xml"
exit $code
EOF
cat >bin/script <<'EOF'
#!/usr/bin/env bash
left=$(cat left.script 2>/dev/null || echo 0)
[ "$left" -gt 0 ] || exit 0
echo $((left - 1)) >left.script
exit 1
EOF
chmod +x bin/* tools/*
for suite in A B; do
  cat <<EOF
add_test(suite.$suite $work/bin/suite $suite --gtest_output=xml:$work/build/release/reports/suite.$suite.xml)
set_tests_properties(suite.$suite PROPERTIES LABELS quick
  ENVIRONMENT "KEPT=yes\\\\;no;GTEST_TOTAL_SHARDS=2;GTEST_SHARD_INDEX=1")
EOF
done >build/release/CTestTestfile.cmake
cat >>build/release/CTestTestfile.cmake <<EOF
add_test(script $work/bin/script)
set_tests_properties(script PROPERTIES LABELS quick SKIP_RETURN_CODE 77)
EOF

# run CODE LAST_LINE [FLAKY...] [-- WHAT=TIMES...]: what is to be printed where these fail so many times.
run() {
  local code=$1 last=$2 flaky=() about
  shift 2
  while [ $# -gt 0 ] && [ "$1" != -- ]; do flaky+=("flaky: $1") && shift; done
  [ $# -eq 0 ] || shift
  about="of $*"
  rm -f build/release/left.*
  while [ $# -gt 0 ]; do echo "${1#*=}" >"build/release/left.${1%=*}" && shift; done
  PATH=$work/bin:$PATH RHIZOME_TEST_SEED=7 expect_exit "$code" tools/test.sh tidy release || { fail "$about"; return; }
  [ "$(tail -n 1 out)" = "$last" ] || fail "$about: wanted '$last', got: $(tail -n 20 out)"
  [ "$(grep '^flaky: ' out)" = "$(printf '%s\n' "${flaky[@]}")" ] ||
    fail "$about: wanted ${flaky[*]}, got: $(tail -n 20 out)"
}

run 0 "7 passed, 0 failed, 0 skipped"
run 0 "7 passed, 0 failed, 0 skipped" A.one -- A.one=1
run 1 "6 passed, 1 failed, 0 skipped" -- A.one=2
run 1 "6 passed, 1 failed, 0 skipped" B.two/0 -- A.one=2 B.two=1
run 0 "7 passed, 0 failed, 0 skipped" script -- script=1
run 1 "6 passed, 1 failed, 0 skipped" -- script=2
run 0 "7 passed, 0 failed, 0 skipped" "suite.A, which ended in A.one" -- die.A=1
run 1 "5 passed, 1 failed, 0 skipped" -- die.A=2
run 0 "7 passed, 0 failed, 0 skipped" A.one A.two/0 script -- A.one=1 A.two=1 script=1
run 1 "3 passed, 4 failed, 0 skipped" A.one A.two/0 B.one B.two/0 -- A.one=1 A.two=1 B.one=1 B.two=1

touch untidy
rm -f built
run 1 "0 passed, 1 failed, 0 skipped"
[ ! -e built ] || fail "something was built though the sources are not tidy"
finish
