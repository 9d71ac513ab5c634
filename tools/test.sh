#!/usr/bin/env bash
# Installs what is needed, builds, runs the tests. usage: tools/test.sh [release|asan|tsan|fuzz|long ...]
#   release  everything, tiers quick and ci (the default)
#   asan     storage, index and cache under the address and undefined-behaviour sanitizers
#   tsan     the same under the thread sanitizer
#   fuzz     the Clang build: lock annotations checked, then every fuzz target for a few seconds
#   long     the long tier of the release build, and clang-tidy over everything
# RHIZOME_TEST_DATA names a folder of further data sets; tests that need it say so when they skip.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${RHIZOME_JOBS:-$(nproc)}
passed=0
failed=0
failures=$(mktemp)
trap 'rm -f "$failures"' EXIT

build() {
  cmake --preset "$1" >/dev/null
  cmake --build --preset "$1" -j "$jobs" "${@:2}"
}

# What the tests that failed printed, out of ctest's output: the first lines of each.
failed_output() {
  awk '/^ *[0-9]+\/[0-9]+ Test/ { shown = /\*\*\*/ && !/\*\*\*Skipped/; lines = 0 } /^ +Start +[0-9]+:/ { shown = 0 }
       /tests passed, [0-9]+ tests failed out of/ { shown = 0 }
       shown && lines++ < 80 { print substr($0, 1, 500) }' "$1"
}

# Adds ctest's closing line to the totals, failures included, so that every preset is run.
run_ctest() {
  local log
  log=$(mktemp)
  ctest --preset "$1" -j "$jobs" "${@:2}" 2>&1 | tee "$log" || true
  local total bad
  total=$(sed -n 's/^[0-9]*% tests passed, [0-9]* tests failed out of \([0-9]*\)$/\1/p' "$log" | tail -n 1)
  bad=$(sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests failed out of [0-9]*$/\1/p' "$log" | tail -n 1)
  failed_output "$log" | sed "s/^/$1: /" >>"$failures"
  rm -f "$log"
  if [ -z "$total" ] || [ "$total" -eq 0 ]; then
    echo "no test was run for $1" >&2
    total=1 bad=1
  fi
  passed=$((passed + total - bad))
  failed=$((failed + bad))
}

tools/install_deps.sh --tests
for what in "${@:-release}"; do
  case $what in
    release)
      build release
      build release --target all_verify_interface_header_sets
      run_ctest release -L 'quick|ci'
      cat build/release/reliability_counts/table 2>/dev/null || true
      ;;
    asan | tsan)
      build "$what"
      # Thousands of crashes and recoveries take many times as long under a sanitizer.
      run_ctest "$what" -L 'quick|ci' -LE reliability
      ;;
    fuzz)
      build fuzz
      run_ctest fuzz
      ;;
    long)
      build release --target all long_tests
      run_ctest release -L long
      ;;
    *)
      sed -n 's/^# \{0,1\}//p' "$0" | sed -n 2,8p >&2
      exit 1
      ;;
  esac
done
# Once more at the end, where whoever reads a long log looks first.
cat "$failures"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
