#!/usr/bin/env bash
# Loses ranks and hosts at random moments of a training over network namespaces, a hundred times (or
# RHIZOME_LOSSES), during its start or later. Each training ends in time, and a message says which
# rank was lost, or that MPI has not started. Prints the counts.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
# shellcheck source=tests/tools/faults/hosts.bash
. ./hosts.bash
# shellcheck source=tests/tools/faults/lost_ranks.bash
. ./lost_ranks.bash
cd "$work"
need_mpirun
need_hosts
hosts_up 4 1gbit
make_store
test_seed
kinds=(kill stop host link)
declare -A counted survivors worst
for ((round = 0; round < ${RHIZOME_LOSSES:-100}; ++round)); do
  kind=${kinds[round % 4]}
  ranks=$((2 + RANDOM % 3))
  lost=$((RANDOM % ranks))
  # mpirun itself is on host 0: with it all are gone at once, and nobody is left to ask.
  [ "$kind" = host ] && [ $lost = 0 ] && lost=$((ranks - 1))
  named=0 before=$failures
  moment=checkpoint seconds=$((RANDOM % 3)).$((RANDOM % 10))
  [ $((RANDOM % 3)) = 0 ] && moment=start seconds=0.$((RANDOM % 10))
  lose "$kind" "$lost" "$ranks" "$seconds" $moment
  echo "$kind of rank $lost of $ranks, $seconds s after the $moment: $took ms, named by $named survivors"
  [ $failures -eq "$before" ] && counted[$kind]=$((${counted[$kind]:-0} + 1))
  [ $named -gt 0 ] && survivors[$kind]=$((${survivors[$kind]:-0} + 1))
  [ $took -gt "${worst[$kind]:-0}" ] && worst[$kind]=$took
done
for kind in "${kinds[@]}"; do
  echo "$kind: ${counted[$kind]:-0} in time and named, ${survivors[$kind]:-0} of them by a survivor; the slowest ${worst[$kind]:-0} ms"
done
[ $failures -eq 0 ]
