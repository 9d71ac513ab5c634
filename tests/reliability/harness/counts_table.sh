#!/usr/bin/env bash
# The last of the reliability tests. Adds up the counts of the other tests (each in a file
# `what@test` in the folder RHIZOME_COUNTS, written by PrintCount), and prints a table that compares
# them with the figures that RELIABILITY.md promises. Fails if a count is too low, if any damage was
# silent, or if a test was skipped that must not be. Removes the counts, for the next run.
set -uo pipefail
folder=${RHIZOME_COUNTS:?names the folder of counts}
below=0
mkdir -p "$folder"
: >"$folder/table"

# ctest shows the output of tests that fail only: the table is kept for whoever asks for it.
say() {
  # shellcheck disable=SC2059
  printf "$@" | tee -a "$folder/table"
}

# The sum of all counts of these names; nothing where no test has written one of them.
sum() {
  local what total='' number
  for what in "$@"; do
    for file in "$folder/$what@"*; do
      [ -e "$file" ] || return 0
      read -r number <"$file"
      total=$((${total:-0} + number))
    done
  done
  echo "$total"
}

# row TITLE LEAST NAME...: at least so many; LEAST may be `=0`, exactly none.
row() {
  local title=$1 least=$2 count verdict=ok
  shift 2
  count=$(sum "$@")
  if [ -z "$least" ]; then
    verdict=BELOW
  elif [ "$least" = "=0" ]; then
    [ "${count:-x}" = 0 ] || verdict=BELOW
  elif [ "${count:-0}" -lt "$least" ]; then
    verdict=BELOW
  fi
  [ $verdict = ok ] || below=$((below + 1))
  say '%-52s %12s %12s  %s\n' "$title" "${count:-none}" "$least" "$verdict"
}

# skippable_row TITLE LEAST TEST NAME...: less is no failure where a case of TEST was skipped.
skippable_row() {
  local title=$1 least=$2 test=$3 count reason
  shift 3
  reason=$(cat "$folder/skipped@"*"$test"* 2>/dev/null | head -n 1)
  count=$(sum "$@")
  if [ -n "$reason" ] && [ "${count:-0}" -lt "$least" ]; then
    say '%-52s %12s %12s  skipped (%s)\n' "$title" "${count:-none}" "$least" "$reason"
  else
    row "$title" "$least" "$@"
  fi
}

# Tests that may skip, as they need root, loop mounts and /dev/fuse, a file system with holes, or seccomp. Any other
# one that was skipped has looked at nothing.
may_skip='PowerCutTest|BlockReplayTest|LoggedDiskTest|HugeGraphTest|refusing_ci_test'
skipped() {
  local file test verdict
  for file in "$folder"/skipped@*; do
    [ -e "$file" ] || continue
    test=${file##*/skipped@} verdict=skipped
    grep -qE "$may_skip" <<<"$test" || { verdict=SKIPPED; below=$((below + 1)); }
    say '%s: %s (%s)\n' "$verdict" "$test" "$(head -n 1 "$file")"
  done
}

# What an earlier run of ctest has left, whose table did not run, is none of this one's.
age_of_parent() {
  local begun ticks now
  begun=$(cut -d ' ' -f 22 "/proc/$PPID/stat" 2>/dev/null) && ticks=$(getconf CLK_TCK) || return 1
  read -r now _ </proc/uptime
  echo $((${now%.*} - begun / ticks + 2))
}
if age=$(age_of_parent) && [ "$(cat "/proc/$PPID/comm")" = ctest ]; then
  find "$folder" -name '*@*' ! -newermt "@$(($(date +%s) - age))" -delete
fi

say '%-52s %12s %12s\n' "reliability, as in every run (all of it: long)" counted promised
row "distinct trees after crashes" 3000 crash-states
row "distinct trees after crashes of recoveries" 300 recovery-states
row "failures after crashes" =0 crash-failures
skippable_row "power cuts" 60 PowerCutTest power-cuts
skippable_row "block images" 200 BlockReplayTest block-images
row "kills" 200 kills
row "  looks of readers beside them" 500 looks-beside-kills
row "  verifications beside them" 50 verifications-beside-kills
row "  kills beside handles that stay open" 40 kills-beside-open-handles
row "  compactions of one of these" 10 compactions-between-kills
row "injected faults" 4000 faults system-call-faults allocation-failures upkeep-faults
row "  of these at system calls" 1 system-call-faults
row "  of these allocations" 1 allocation-failures
row "  of these in verify, backup, restore and repair" 1 upkeep-faults
row "crashes of those" 1 upkeep-crashes
row "flipped bits" 35000 bit-flips log-bit-flips
row "  of these silent" =0 bit-flips-silent log-bit-flips-silent
row "injured files" 900 injuries
row "  of these silent" =0 injuries-silent
row "  of these found, but not named" =0 injuries-unnamed
row "changed catalogues" 500 catalog-mutations
row "  of these with other answers" =0 catalog-mutations-silent
row "  of these that ended a process, or hung" =0 catalog-mutations-died catalog-mutations-hung
row "hostile inputs that were refused" 200 bombs
row "mutants caught" "$(sum mutants)" mutants-caught
row "scripts of tests/hostile that found something" =0 hostile-findings
for file in "$folder"/hostile-*@*; do
  what=$(basename "${file%@*}")
  what=${what#hostile-}
  [ -e "$file" ] && [ "$what" != findings ] && row "  ${what//-/ }" 0 "hostile-$what"
done
skipped
rm -f "$folder"/*@*
[ $below -eq 0 ] || echo "$below figures are below what is promised, or tests skipped (one that did not run counts nothing)" >&2
exit $((below > 0))
