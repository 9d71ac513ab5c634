#!/usr/bin/env bash
# System calls that fail or do half of their work, once or from then on: a put ends with an error or
# succeeds, in bounded time, and the store is sound; conditions that are not errors are not reported
# as errors.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"
test_seed
library=$RHIZOME_BUILD/lib/librhizome_fail_at.so

printf '0\t1\n1\t2\n2\t0\n' >edges.tsv
rhizome ingest base.rz --edges edges.tsv --vertices 3 >/dev/null 2>err || fail "ingest: $(cat err)"
printf '0\t2\n' >more.tsv
put=(put g.rz more.tsv)

cp -r base.rz g.rz
LD_PRELOAD=$library RHIZOME_FAIL_COUNT=$work/calls "$RHIZOME" "${put[@]}" >out 2>err || fail "put: $(cat err)"
calls=$(cat calls)
rhizome neighbors g.rz 0 --json >after 2>err || fail "neighbors: $(cat err)"
rhizome neighbors base.rz 0 --json >before 2>err || fail "neighbors: $(cat err)"
cmp -s before after && fail "the put changes nothing"

faults=0 refused=0
others=$(printf '%s\n' EINTR EAGAIN ENOSPC EBADF EMFILE EACCES ENOMEM ECANCELED |
  shuf -n 4 --random-source=<(yes "$seed"))
first=$((RANDOM % 7 + 1))
for how in short zero EIO $others; do
  for at in $(seq $first 7 "$calls"); do
    for sticky in 0 1; do
      # An EINTR that never ends is none; a call may be repeated for ever.
      [ $how$sticky = EINTR1 ] && continue
      rm -rf g.rz && cp -r base.rz g.rz
      code=0
      LD_PRELOAD=$library RHIZOME_FAIL_AT=$at RHIZOME_FAIL_HOW=$how RHIZOME_FAIL_STICKY=$sticky \
        timeout $((60 * patience)) "$RHIZOME" "${put[@]}" >out 2>err </dev/null || code=$?
      faults=$((faults + 1))
      repeat="RHIZOME_FAIL_AT=$at RHIZOME_FAIL_HOW=$how RHIZOME_FAIL_STICKY=$sticky"
      [ $code -ge 124 ] && fail "$repeat: exit code $code: $(head -c 300 err)"
      [ $code -eq 3 ] && [ $how != zero ] && fail "$repeat: taken for damage: $(head -c 300 err)"
      [ $code -ne 0 ] && refused=$((refused + 1))
      [ $how = short ] && [ $code -ne 0 ] && fail "$repeat: $(head -c 300 err)"
      rhizome neighbors g.rz 0 --json >now 2>err || { fail "$repeat: afterwards: $(cat err)"; continue; }
      if [ $code -eq 0 ]; then
        cmp -s now after || fail "$repeat: says that it put, and did not"
      else
        cmp -s now after || cmp -s now before || fail "$repeat: a third state: $(cat now)"
      fi
    done
  done
done
rhizome verify g.rz >out 2>err || fail "verify: $(cat out err)"
[ -z "${RHIZOME_COUNTS:-}" ] || { mkdir -p "$RHIZOME_COUNTS" && echo $faults >"$RHIZOME_COUNTS/system-call-faults@fail_ci_test"; }
echo "COUNT system-call-faults $faults"
echo "COUNT system-call-faults-refused $refused"
finish
