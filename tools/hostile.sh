#!/usr/bin/env bash
# Tests the built binary against hostile stores, inputs and environments: runs the scripts tests/hostile/*.sh and prints
# the number of attempts and the findings of each.
# usage: tools/hostile.sh [--rounds N] [--seed S] [--keep] [NAME ...]
#   --rounds N  amount of work of each script: 1 as in CI (the default), more for runs of hours
#   --seed S    seed of random choices (default: RHIZOME_TEST_SEED, or drawn at random); it is printed
#   --keep      keeps the scratch folders of scripts with findings
#   NAME ...    runs only these scripts, named without folder and .sh
# Environment: RHIZOME is the binary (build/release/bin/rhizome), RHIZOME_BUILD its build folder. If RHIZOME_COUNTS is
# a folder, the counts are written there for tests/reliability/harness/counts_table.sh.
#
# A script receives RHIZOME, RHIZOME_BUILD, RHIZOME_SOURCE, HOSTILE_ROUNDS, HOSTILE_SEED and HOSTILE_SCRATCH, an empty
# folder that is its working directory. It prints lines `count WHAT NUMBER`. On a finding it prints
# `FOUND WHAT, AND HOW TO REPEAT IT` and exits with 1. If it cannot run, it prints the reason and exits with 77.
# Exit code: 1 if there was any finding, 64 for wrong usage.
set -uo pipefail
RHIZOME_SOURCE=$(cd "$(dirname "$0")/.." && pwd)
RHIZOME_BUILD=${RHIZOME_BUILD:-$RHIZOME_SOURCE/build/release}
RHIZOME=${RHIZOME:-$RHIZOME_BUILD/bin/rhizome}
HOSTILE_ROUNDS=1
HOSTILE_SEED=${RHIZOME_TEST_SEED:-$((RANDOM * 32768 + RANDOM))}
keep=0
names=()

usage() {
  sed -n 's/^# \{0,1\}//p' "$0" | sed -n 4,8p >&2
  exit 64
}

number() {
  [[ ${2:-} =~ ^[0-9]{1,10}$ ]] || { echo "hostile.sh: $1 takes a number" >&2; usage; }
}

while [ $# -gt 0 ]; do
  case $1 in
    --rounds) number "$@" && HOSTILE_ROUNDS=$2 && shift ;;
    --seed) number "$@" && HOSTILE_SEED=$2 && shift ;;
    --keep) keep=1 ;;
    -*) usage ;;
    *) names+=("$1") ;;
  esac
  shift
done
[ -x "$RHIZOME" ] || { echo "hostile.sh: '$RHIZOME' is not there: build it, or set RHIZOME" >&2; exit 64; }
if [ ${#names[@]} -eq 0 ]; then
  for script in "$RHIZOME_SOURCE"/tests/hostile/*.sh; do
    [ -x "$script" ] && names+=("$(basename "$script" .sh)")
  done
fi
for name in "${names[@]}"; do
  [ -x "$RHIZOME_SOURCE/tests/hostile/$name.sh" ] || { echo "hostile.sh: there is no script '$name'" >&2; exit 64; }
done
export RHIZOME RHIZOME_BUILD RHIZOME_SOURCE HOSTILE_ROUNDS HOSTILE_SEED

work=$(mktemp -d "${TMPDIR:-/tmp}/rhizome-hostile.XXXXXX")
running=
clean() {
  [ -z "$running" ] || kill -- "-$running" 2>/dev/null
  [ -n "$(ls "$work"/*.kept 2>/dev/null)" ] || rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM
table=$work/table
limit=$((300 * HOSTILE_ROUNDS * ${RHIZOME_TEST_PATIENCE:-1}))  # seconds; a script is to take 40 a round
findings=0

# Leaves a count for the table of the reliability tests.
note() {
  [ -n "${RHIZOME_COUNTS:-}" ] || return 0
  mkdir -p "$RHIZOME_COUNTS" && echo "$2" >"$RHIZOME_COUNTS/$1"
}

# run_one NAME: runs a script and adds its line to the table.
run_one() {
  local name=$1 log=$work/$1.log code=0 begun=$SECONDS verdict what number
  export HOSTILE_SCRATCH=$work/$name
  mkdir "$HOSTILE_SCRATCH"
  echo "--- $name (seed $HOSTILE_SEED, rounds $HOSTILE_ROUNDS)"
  # A group of its own, so that what hangs goes with all of its children.
  (cd "$HOSTILE_SCRATCH" && exec setsid timeout -k 10 "$limit" "$RHIZOME_SOURCE/tests/hostile/$name.sh") \
    >"$log" 2>&1 </dev/null &
  running=$!
  wait "$running" || code=$?
  kill -- "-$running" 2>/dev/null  # what it left running
  running=
  case $code in
    0) verdict=ok ;;
    77)
      verdict="skipped: $(tail -n 1 "$log" | cut -c 1-80)"
      note "skipped@hostile-$name" "${verdict#skipped: }"
      ;;
    124 | 137) verdict="FOUND: not done within $limit s" ;;
    *) verdict="FOUND $(grep -c '^FOUND ' "$log") (exit code $code)" ;;
  esac
  # A finding without the exit code is one, too.
  [ $code -ne 0 ] || ! grep -q '^FOUND ' "$log" || verdict="FOUND $(grep -c '^FOUND ' "$log")"
  # One that has counted nothing has tried nothing.
  [ $code -ne 0 ] || grep -qE '^count .* [1-9][0-9]*$' "$log" || verdict="FOUND: it counted nothing"
  tail -n 200 "$log" | cut -c 1-1000
  printf '%-16s %6d s  %s\n' "$name" $((SECONDS - begun)) "$verdict" >>"$table"
  while IFS=$'\t' read -r what number; do
    printf '    %-60s %10d\n' "$what" "$number" >>"$table"
    note "hostile-$(tr -cs '[:alnum:]' - <<<"$what" | sed 's/-$//')@$name" "$number"
  done < <(sed -nE 's/^count (.*[^ ]) +([0-9]+)$/\1\t\2/p' "$log" |
    awk -F'\t' '{ n[$1] += $2 } END { for (w in n) printf "%s\t%d\n", w, n[w] }' | sort)
  case $verdict in
    FOUND*)
      findings=$((findings + 1))
      echo "    repeat: tools/hostile.sh --seed $HOSTILE_SEED --rounds $HOSTILE_ROUNDS $name" >>"$table"
      [ $keep -eq 0 ] || { touch "$work/$name.kept" && echo "    kept: $HOSTILE_SCRATCH" >>"$table"; }
      ;;
  esac
  [ -e "$work/$name.kept" ] || rm -rf "$HOSTILE_SCRATCH"
}

echo "RHIZOME_TEST_SEED=$HOSTILE_SEED"
for name in "${names[@]}"; do run_one "$name"; done
note hostile-findings@all $findings
echo "=== hostile stores, inputs and surroundings: ${#names[@]} scripts, seed $HOSTILE_SEED, $SECONDS s"
cat "$table" 2>/dev/null
[ $findings -eq 0 ]
