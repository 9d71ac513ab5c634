#!/usr/bin/env bash
# Network namespaces as hosts: doctor, a training with ranks on four of them, and each way in which
# a host can be lost. Needs root, ip, tc and mpirun; otherwise skipped.
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

expect_exit 0 on_hosts 4 "$RHIZOME" doctor --ranks --json
expect_json out 'j["complete"] is True and j["transport"] == "mpi"' \
  '[r["host"] for r in j["ranks"]] == ["rzhost0", "rzhost1", "rzhost2", "rzhost3"]' "len(j['pairs']) == 6"

# The same bits as threads have, whatever is kept of other ranks' rows, and when it is fetched.
make_store
expect_exit 0 rhizome train s.rz "${train_flags[@]}" --epochs 2 --ranks 4 --out first.st
for how in "" "--prefetch none --overlap none"; do
  # shellcheck disable=SC2086
  expect_exit 0 on_hosts 4 "$RHIZOME" train "$work/s.rz" "${train_flags[@]}" --epochs 2 $how --out "$work/m.st" --json
  cmp -s first.st m.st || fail "another model over hosts, $how"
  expect_json out 'j["complete"] is True' 'len({r["host"] for r in j["ranks"]}) == 4'
done

named=0
lose kill 2 4 0
lose host 3 4 0
lose link 2 4 0
# While MPI starts.
lose stop 2 4 0 start
lose link 3 4 0.2 start
[ $named -gt 0 ] || fail "no survivor named the rank that was lost"
[ $failures -eq 0 ]
