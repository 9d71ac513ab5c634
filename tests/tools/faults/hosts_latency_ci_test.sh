#!/usr/bin/env bash
# Links between network namespaces have the requested latency, for single packets and for ranks of
# mpirun, with and without a rate, and lose it again. Needs root and TAP devices; otherwise skipped.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
# shellcheck source=tests/tools/faults/hosts.bash
. ./hosts.bash
cd "$work"
need_hosts
need_latency
hosts_up 2 none

# expect_round_trip LEAST MOST: microseconds.
expect_round_trip() {
  took=$(round_trip_us 0 1 min)
  python3 -c "import sys; sys.exit(not $1 <= $took < $2)" ||
    fail "a latency of $link_latency us, a rate of $link_rate: $took us there and back, wanted $1 to $2"
}
expect_round_trip 1 4000
plain=$took
hosts_latency 2000
expect_round_trip 4000 20000
hosts_rate 1gbit
expect_round_trip 4000 20000
cut_link 1
[ -z "$(round_trip_us 0 1 2>/dev/null)" ] || fail "an echo over a link that is cut"
mend_link 1
expect_round_trip 4000 20000

need_mpirun
doctor_seconds() {
  expect_exit 0 on_hosts 2 "$RHIZOME" doctor --ranks --json
  python3 -c 'import json; print(json.load(open("out"))["pairs"][0]["round_trip_seconds"])'
}
slow=$(doctor_seconds)
hosts_latency 0
expect_round_trip 1 4000
# Between ranks a busy processor may take longer than the link.
is_faster() { fast=$(doctor_seconds) && python3 -c "import sys; sys.exit(not $fast < $slow)"; }
python3 -c "import sys; sys.exit(not $slow >= 4e-3)" && wait_for 20 is_faster || fail "between ranks: $slow s and $fast s there and back"
echo "there and back without a latency: $plain and $took us, between ranks $fast s; with 2 ms: $slow s"
finish
