#!/usr/bin/env bash
# Installs dependencies, builds, and runs tests. usage: tools/test.sh [tidy|release|asan|asan-gnn|tsan|fuzz|mutants|long ...]
#   tidy     format and layering of the sources; the run ends here on a finding
#   release  everything, tiers quick and ci (the default)
#   asan     storage, index and cache under the address and undefined-behaviour sanitizers; built with Clang,
#            which also checks lock annotations
#   asan-gnn models, training and inference under the same sanitizers; libtorch itself is not instrumented
#   tsan     storage, index and cache under the thread sanitizer
#   fuzz     every fuzz target with a few seconds' worth of inputs, from the same build
#   mutants  models, training and metrics with one seeded bug at a time, which their tests must detect
#   long     the long tier of the release build, and reliability under asan
# A failed case is run again, alone. If it then passes, it counts as passed and is listed as flaky at the end; if more
# than three cases are flaky, they count as failed. Randomised tests use the seed RHIZOME_TEST_SEED; if it is not set,
# a seed is drawn and printed at the end. RHIZOME_TEST_DATA names a folder with additional data sets; tests that need
# it report so when they are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${RHIZOME_JOBS:-$(nproc)}
passed=0
failed=0
skipped=0
export RHIZOME_TEST_SEED=${RHIZOME_TEST_SEED:-$((RANDOM * 32768 + RANDOM))}
# glibc fills memory with 0xa5 (165) when it is freed, and with the complement, 0x5a, when it is allocated. Both are far
# from zero in each type: a read of such memory gives an index out of range, or a number that no test expects.
export MALLOC_PERTURB_=${MALLOC_PERTURB_:-165}
most_flaky=3
summary=$(mktemp) report=$(mktemp) times=$(mktemp) flaky=$(mktemp)
trap 'rm -f "$summary" "$report" "$times" "$flaky"' EXIT

build() {
  cmake --preset "$1" >/dev/null
  cmake --build --preset "$1" -j "$jobs" "${@:2}"
}

# Runs the tests of a build, and adds its cases to the totals; failures included, so that every build is run.
# Most of their time many wait for a disk that syncs, so that there are three of them for each processor.
run_ctest() {
  local folder=build/$1 line
  rm -rf "$folder/reports" "$folder/ctest.xml"
  mkdir -p "$folder/reports"
  ctest --preset "$1" -j $((3 * jobs)) --output-junit "$PWD/$folder/ctest.xml" "${@:2}" || true
  tools/report_tests.py "$folder" "$1" >"$report" || echo "$1: 0 passed, 1 failed, 0 skipped" >>"$report"
  grep '^flaky: ' "$report" >>"$flaky" || true
  grep -v '^flaky: ' "$report" >>"$summary"
  line=$(tail -n 1 "$report")
  read -r _ added_passed _ added_failed _ added_skipped _ <<<"$line"
  if [ $((added_passed + added_failed)) -eq 0 ]; then
    echo "$1: no test was run" >>"$summary"
    added_failed=1
  fi
  passed=$((passed + added_passed)) failed=$((failed + added_failed)) skipped=$((skipped + added_skipped))
}

# Two tests, of the sources alone. A run that would be refused for a blank ends before it builds anything.
run_tidy() {
  if python3 tests/tidy_test.py --self-test && python3 tests/tidy_test.py; then
    passed=$((passed + 2))
  else
    failed=$((failed + 1))
    finish
  fi
}

# Each mistake that is noticed is a test that passes.
run_mutants() {
  RHIZOME_BUILD=$PWD/build/mutants build/venv/bin/python tests/gnn/mutants.py 2>&1 | tee -a "$summary" || true
  local line
  line=$(tail -n 1 "$summary")
  read -r mistakes _ failures _ <<<"$line"
  passed=$((passed + mistakes - failures)) failed=$((failed + failures))
}

# step NAME COMMAND...: what the time of a run went into stands at its end.
step() {
  local begun=$SECONDS
  "${@:2}"
  printf '%6d s  %s\n' $((SECONDS - begun)) "$1" >>"$times"
}

# Prints what whoever reads a long log looks for first, and ends the run.
finish() {
  cat "$times" "$summary"
  echo "RHIZOME_TEST_SEED=$RHIZOME_TEST_SEED"
  if [ -s "$flaky" ]; then
    local cases
    cases=$(wc -l <"$flaky")
    cat "$flaky"
    echo "Each is to be added to tests/SOAK.tsv, and mended (tests/RELIABILITY.md)."
    if [ "$cases" -gt $most_flaky ]; then
      echo "More than $most_flaky cases are flaky: they count as failed."
      passed=$((passed - cases)) failed=$((failed + cases))
    fi
  fi
  echo "$passed passed, $failed failed, $skipped skipped"
  exit $((failed > 0))
}

step "installing" tools/install_deps.sh --tests
for what in "${@:-release}"; do
  case $what in
    tidy) step "the sources" run_tidy ;;
    release)
      step "building release" build release
      step "public headers, each alone" build release --target all_verify_interface_header_sets
      step "tests of release" run_ctest release -L 'quick|ci'
      cat build/release/reliability_counts/table >>"$summary" 2>/dev/null || true
      ;;
    asan | tsan)
      export TSAN_OPTIONS=suppressions=$PWD/tests/tsan_suppressions
      step "building $what" build "$what"
      # Thousands of crashes and recoveries take many times as long under a sanitizer.
      step "tests of $what" run_ctest "$what" -L 'quick|ci' -LE reliability
      ;;
    asan-gnn)
      step "building asan-gnn" build asan-gnn --target rhizome_{models,typed_gnn,gnn,full,rank_training}_quick_tests
      step "tests of asan-gnn" run_ctest asan-gnn -R '^rhizome_(models|typed_gnn|gnn|full|rank_training)_quick_tests'
      ;;
    fuzz)
      step "building asan" build asan
      # Their seconds are those of a processor.
      step "fuzz targets" run_ctest asan -L fuzz -j "$jobs"
      ;;
    mutants)
      step "building mutants" build mutants --target rhizome_cli rhizome_gnn_shared \
        rhizome_{models,gnn,full,spill,cache}_quick_tests rhizome_full_ci_tests
      step "seeded mistakes" run_mutants
      ;;
    long)
      step "building release" build release --target all long_tests
      step "long tests of release" run_ctest release -L long
      step "building asan" build asan --target all rhizome_reliability_ci_tests
      step "reliability of asan" run_ctest asan -L reliability
      ;;
    *)
      sed -n 's/^# \{0,1\}//p' "$0" | sed -n 2,12p >&2
      exit 1
      ;;
  esac
done
finish
