#!/usr/bin/env bash
# Runs the test harness and the fuzzers for hours, with new seeds in each round, and appends results to
# fuzz/LEDGER.tsv (target, commit, executions or cases, hours, new inputs, findings).
# usage: tools/torture.sh --hours N [--only PATTERN]
#   --hours N       may be a fraction; a running target or test is finished
#   --only PATTERN  only fuzz targets and tests whose names match (grep -E)
# Uses existing builds: build/release (the tests), build/asan (the fuzzers). Prints a command that repeats
# each failure. Exit code 1 if there was any.
set -euo pipefail
cd "$(dirname "$0")/.."
hours=
only=.
while [ $# -gt 0 ]; do
  case $1 in
    --hours) hours=${2:?} && shift 2 ;;
    --only) only=${2:?} && shift 2 ;;
    *) sed -n 's/^# \{0,1\}//p' "$0" | sed -n 3,8p >&2 && exit 64 ;;
  esac
done
[ -n "$hours" ] || { echo "torture.sh: --hours N is missing" >&2; exit 64; }
ledger=fuzz/LEDGER.tsv
commit=$(git rev-parse --short HEAD)
end=$(awk -v now="$(date +%s)" -v hours="$hours" 'BEGIN { printf "%d", now + hours * 3600 }')
log=$(mktemp)
trap 'rm -f "$log"' EXIT
findings=0
rounds=0

note() { # target executions seconds new findings
  awk -v t="$1" -v c="$commit" -v n="$2" -v s="$3" -v new="$4" -v f="$5" \
    'BEGIN { printf "%s\t%s\t%d\t%.4f\t%d\t%d\n", t, c, n, s / 3600, new, f }' >>"$ledger"
}

stat_of() { sed -n "s/^stat::$1: *//p" "$log" | tail -n 1; }

fuzz_one() {
  local name=$1 begun=$SECONDS found=0 leaks
  leaks=$(awk -F'\t' -v name="$name" '$1 == name { print $2 }' build/asan/fuzz_targets.tsv)
  mkdir -p "build/asan/corpus/$name"
  RHIZOME_FUZZ_SEEDS="build/asan/seeds/$name" "build/asan/bin/$name" >/dev/null
  "build/asan/bin/$name" -max_total_time=$slice -detect_leaks="$leaks" -timeout=10 \
    -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="build/asan/$name-" "build/asan/corpus/$name" "build/asan/seeds/$name" \
    >"$log" 2>&1 || found=1
  if [ $found -eq 1 ]; then
    findings=$((findings + 1))
    echo "FOUND build/asan/bin/$name $(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)"
  fi
  note "$name" "$(stat_of number_of_executed_units | grep . || echo 0)" $((SECONDS - begun)) \
    "$(stat_of new_units_added | grep . || echo 0)" $found
}

test_one() {
  local binary=$1 test=$2 begun=$SECONDS found=0 seed what count
  seed=$((RANDOM * 32768 + RANDOM))
  RHIZOME_TEST_SEED=$seed "$binary" --gtest_filter="$test" >"$log" 2>&1 || found=1
  if [ $found -eq 1 ]; then
    findings=$((findings + 1))
    echo "FOUND RHIZOME_TEST_SEED=$seed $binary --gtest_filter='$test'"
    grep -E '^(RHIZOME_(CRASH|FAULT|ALLOCATION|UPKEEP)=|SILENT |UNNAMED )' "$log" || true
  fi
  local seconds=$((SECONDS - begun))
  while read -r _ what count; do  # its time and its find count once
    note "$what" "$count" $seconds 0 $found
    seconds=0 found=0
  done < <(grep '^COUNT ' "$log" || true)
}

fuzzers=()
for fuzzer in build/asan/bin/*_fuzz; do
  name=$(basename "$fuzzer")
  [ -x "$fuzzer" ] && [ "$name" != canary_fuzz ] && grep -qE "$only" <<<"$name" && fuzzers+=("$name")
done
# Half of the time is the tests'; a minute a target is enough for a round.
slice=$(awk -v hours="$hours" -v n="${#fuzzers[@]}" \
  'BEGIN { s = hours * 1800 / (n + 1); printf "%d", (s > 60 ? 60 : s < 5 ? 5 : s) }')
in_time() { [ "$(date +%s)" -lt "$end" ]; }

[ -f "$ledger" ] || printf 'target\tcommit\texecutions\thours\tnew\tfindings\n' >"$ledger"
tests=build/release/bin/rhizome_reliability_ci_tests
while in_time; do
  for name in "${fuzzers[@]}"; do
    in_time || break
    fuzz_one "$name"
    rounds=$((rounds + 1))
  done
  if [ -x $tests ]; then
    suite=
    while read -r name _; do
      [ "${name%.}" != "$name" ] && suite=$name && continue
      grep -qE "$only" <<<"$suite$name" && in_time || continue
      test_one $tests "$suite$name"
      rounds=$((rounds + 1))
    done < <($tests --gtest_list_tests | tail -n +2)
  fi
  [ $rounds -gt 0 ] || { echo "nothing that is built matches: tools/test.sh release fuzz" >&2; exit 64; }
done
echo "$rounds runs, $findings findings; in all:"
awk -F'\t' 'NR > 1 { n[$1] += $3; h[$1] += $4; f[$1] += $6 }
  END { for (t in n) printf "%-32s %14d  %9.4f h  %d findings\n", t, n[t], h[t], f[t] }' "$ledger" | sort
[ "$findings" -eq 0 ]
