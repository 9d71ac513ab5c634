#!/usr/bin/env bash
# compact beside other processes that write: puts succeed while it runs, and nothing is lost; --watch
# compacts as often as --auto says; metrics of disk, backups and verification.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

rhizome generate planted --out demo --scale 12 --edge-factor 8 --dim 16 --seed 7 >/dev/null || fail "generate"
rhizome ingest g.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy --partitions 4 >/dev/null || fail "ingest"
edges=$(rhizome info g.rz --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["edges"])')

# A put may meet the moment in which a compaction commits, and is then repeated.
put_some() {
  for _ in $(seq 200); do
    rhizome put g.rz more.tsv >/dev/null 2>err && return
    grep -q busy err || fail "put: $(cat err)"
  done
  fail "put is always busy: $(cat err)"
}

"$RHIZOME" compact g.rz --watch --auto 0.05 --every 1 --json >watch.json 2>watch.err &
watcher=$!
rounds=30
for i in $(seq $rounds); do
  awk -v seed="$i" 'BEGIN { srand(seed); for (i = 0; i < 1000; ++i) print int(rand() * 4096) "\t" int(rand() * 4096) }' >more.tsv
  put_some
done
edges=$((edges + rounds * 1000))

# The last puts reach 5 %, so the watcher ends with less than that in the delta.
wait_for() {
  for _ in $(seq 3000); do
    rhizome info g.rz --json | python3 -c "
import json, sys
f = json.load(sys.stdin)
sys.exit(not (f['generation'] > 1 and f['delta_entries'] < .05 * f['generation_edges']))" && return
    kill -0 $watcher 2>/dev/null || fail "the watcher ended: $(cat watch.json watch.err)"
  done
  fail "the watcher does not compact"
}
wait_for
kill -INT $watcher
wait $watcher
code=$?
[ $code -eq 0 ] || fail "an interrupted --watch exits $code: $(cat watch.err)"
python3 - $rounds <<'PY' || fail "watch says: $(cat watch.json)"
import json, sys
f = json.load(open("watch.json"))
generations = [c["generation"] for c in f["compactions"]]
assert generations == list(range(2, 2 + len(generations))) and generations, generations
assert 0 < sum(c["commits"] for c in f["compactions"]) <= int(sys.argv[1]), f
PY
found=$(rhizome info g.rz --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["edges"])')
[ "$found" = $edges ] || fail "$edges edges were written, but there are $found"
rhizome verify g.rz --metrics verify.prom >/dev/null || fail "verify"

# --- Metrics
grep -q '^rhizome_last_verify_damaged_places{store="g.rz"} 0$' verify.prom || fail "verify: $(cat verify.prom)"
stamp=$(sed -n 's/^rhizome_last_verify_timestamp_seconds{store="g.rz"} //p' verify.prom)
python3 -c "import sys, time; sys.exit(not 0 <= time.time() - float('$stamp') < 3600)" || fail "verified at $stamp"
rhizome backup g.rz saved >/dev/null || fail "backup"
rhizome info g.rz --metrics --backups saved >m.prom || fail "metrics"
python3 - <<'PY' || fail "metrics: $(cat m.prom)"
import os, time
metrics = {line.split("{")[0]: float(line.split()[-1]) for line in open("m.prom") if line[0] != "#"}
disk = sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk("g.rz/generations") for f in fs)
assert metrics["rhizome_disk_bytes"] == disk, (metrics["rhizome_disk_bytes"], disk)
age = time.time() - metrics["rhizome_last_backup_timestamp_seconds"]
assert 0 <= age < 3600, age
assert metrics["rhizome_last_backup_bytes"] > 0
PY
if rhizome info g.rz --backups saved >out 2>err; then fail "--backups without --metrics: $(cat out)"; fi
finish
