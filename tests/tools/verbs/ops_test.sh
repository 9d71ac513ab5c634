#!/usr/bin/env bash
# Operations on stores: backup and restore, repair, upgrade, doctor.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

rhizome generate planted --out demo --scale 8 --dim 5 >/dev/null || fail "generate"
rhizome ingest demo.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy --partitions 3 >/dev/null || fail "ingest"

# --- backup, incremental by file, and restore
rhizome backup demo.rz b --json >o.json || fail "backup"
expect_json o.json 'j["backup"] == 1 and j["files_shared"] == 0 and j["bytes_copied"] > 0'
rhizome array add demo.rz more=demo/features.npy --layout chunk >/dev/null || fail "add"
rhizome backup demo.rz b --json >o.json || fail "second backup"
expect_json o.json 'j["backup"] == 2 and j["files_shared"] > 5 and j["bytes_copied"] < j["bytes"] / 2'
rhizome backup demo.rz b >o.txt || fail "third backup"
grep -q '^backup 3: .*copied 0' o.txt || fail "backup says: $(cat o.txt)"
rhizome restore b --list --json >o.json || fail "list"
expect_json o.json '[x["backup"] for x in j["backups"]] == [1, 2, 3]'
rhizome restore b copy.rz --json >o.json || fail "restore"
expect_json o.json 'j["backup"] == 3'
rhizome verify copy.rz --json >o.json || fail "verify of the restored store"
for s in demo copy; do rhizome export $s.rz --array more --out $s.npy >/dev/null || fail "export $s"; done
cmp -s demo.npy copy.npy || fail "the restored store has another array"
rhizome restore b first.rz --backup 1 >/dev/null || fail "restore of the first"
expect_exit 2 rhizome get first.rz 1 --array more
expect_exit 1 rhizome restore b copy.rz
expect_says "copy.rz"
expect_exit 2 rhizome restore b none.rz --backup 9
expect_exit 2 rhizome restore nowhere none.rz
expect_exit 1 rhizome restore b
expect_exit 2 rhizome backup none.rz b
expect_exit 1 rhizome backup demo.rz demo
[ ! -e none.rz ] || fail "a refused restore leaves a folder"
rhizome backup demo.rz b --keep 1 --json >o.json || fail "keep"
expect_json o.json 'j["removed"] == [1, 2, 3]'
rhizome restore b last.rz >/dev/null && rhizome verify last.rz >/dev/null || fail "after keep"

# --- damage: repair says what it did and what is lost
flip() { python3 -c 'import sys; p = sys.argv[1]; b = bytearray(open(p, "rb").read()); b[len(b) // 2] ^= 1; open(p, "wb").write(b)' "$1"; }
wreck() { python3 -c 'import sys; p = sys.argv[1]; b = open(p, "rb").read(); open(p, "wb").write(bytes(x ^ 0x5a for x in b))' "$1"; }
flip copy.rz/generations/000001/arrays/feat/zarr.json
flip copy.rz/generations/000001/sums/feat.crc32c/c.0.0
expect_exit 3 rhizome verify copy.rz
rhizome repair copy.rz --dry-run --json >o.json
expect_json o.json 'len(j["found"]) == 2 and len(j["rebuilt"]) == 2 and j["lost"] == []' \
  'not os.path.exists(j["quarantine"])'
expect_exit 0 rhizome repair copy.rz --json
cp out o.json
expect_json o.json 'j["ok"] and len(j["rebuilt"]) == 2 and j["lost"] == [] and len(j["quarantined"]) == 2' \
  'all(os.path.exists(q["to"]) for q in j["quarantined"])'
expect_exit 0 rhizome verify copy.rz
# One wrong byte is told by the checksums. Many are not: an array is lost then, and lists that cannot be derived.
flip copy.rz/generations/000001/arrays/more/c.0.0
flip copy.rz/generations/000001/topology/part-0001.adj
expect_exit 0 rhizome repair copy.rz --json
expect_json out 'j["ok"] and len(j["rebuilt"]) == 2 and j["lost"] == []'
expect_exit 0 rhizome verify copy.rz
expect_exit 0 rhizome get copy.rz 1 --array more
# What an earlier repair moved away has one wrong byte only.
wreck copy.rz/generations/000001/arrays/more/c.0.0
expect_exit 0 rhizome repair copy.rz --json
expect_json out 'j["ok"] and len(j["rebuilt"]) == 1 and j["lost"] == []'
expect_exit 0 rhizome verify copy.rz
rm -r copy.rz.quarantine-*
wreck copy.rz/generations/000001/arrays/more/c.0.0
expect_exit 0 rhizome repair copy.rz
grep -q "LOST array 'more'" out || fail "repair says: $(cat out)"
expect_exit 0 rhizome verify copy.rz
expect_exit 2 rhizome get copy.rz 1 --array more
wreck copy.rz/generations/000001/topology/part-0001.adj
expect_exit 3 rhizome repair copy.rz --json
cp out o.json
expect_json o.json 'not j["ok"] and "part-0001" in j["lost"][0]["what"] and len(j["damaged"]) == 1'
expect_exit 2 rhizome repair none.rz

# --- upgrade
expect_exit 0 rhizome upgrade demo.rz
grep -q 'already at format 1' out || fail "upgrade says: $(cat out)"
sed -i 's/^format 1$/format 2/' last.rz/FORMAT
for verb in upgrade info verify doctor repair; do expect_exit 6 rhizome $verb last.rz; done
expect_exit 2 rhizome upgrade none.rz

# --- doctor
expect_exit 0 rhizome doctor
grep -q rocksdb out || fail "doctor says: $(cat out)"
grep -qE '^ *device +(none: |.* copies at )' out || fail "doctor says of the device: $(cat out)"
rhizome doctor demo.rz --json >o.json || fail "doctor of a store"
expect_json o.json 'j["path"]["maker"] in ("uring", "pread") and j["path"]["why"]' \
  'j["direct"]["granted"] == j["path"]["direct"] and j["versions"]["rocksdb"][0].isdigit()' \
  '{"memlock_bytes", "open_files", "cgroup_memory_bytes"} <= set(j["limits"]) and j["format"] == 1' \
  'not [f for f in os.listdir(".") if f.startswith(".rhizome")]'
expect_exit 2 rhizome doctor none.rz
finish
