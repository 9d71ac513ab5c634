#!/usr/bin/env bash
# Arrays on the command line: add, append, drop, versions, aliases, retention.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

rhizome generate planted --out demo --scale 8 --dim 5 >/dev/null || fail "generate"
rhizome ingest demo.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy --partitions 3 >/dev/null || fail "ingest"
python3 - <<'PY'
import struct
def npy(path, rows, dim, value):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, dim)
    head = head.ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        for r in range(rows):
            f.write(struct.pack("<%df" % dim, *[value + r] * dim))
npy("first.npy", 100, 2, 0)
npy("rest.npy", 156, 2, 100)
npy("e1.npy", 256, 2, 1000)
npy("e2.npy", 256, 2, 2000)
npy("e3.npy", 256, 2, 3000)
PY

# --- add and append: what was given and what is still zero
rhizome array add demo.rz part=first.npy --json >o.json || fail "add"
expect_json o.json 'j["array"] == "part" and j["rows"] == 256 and j["rows_given"] == 100' \
  'j["version"] is None and j["dim"] == 2 and j["dtype"] == "float32"' 'j["new_vertices"] == 0'
rhizome get demo.rz 200 --array part --json >o.json
expect_json o.json 'j["values"] == [0, 0]'
rhizome array append demo.rz part rest.npy --json >o.json || fail "append"
expect_json o.json 'j["rows_given"] == 256 and j["rows_read"] == 156'
rhizome get demo.rz 200 --array part --json >o.json
expect_json o.json 'j["values"] == [200, 200]'
rhizome get demo.rz 99 --array part --json >o.json
expect_json o.json 'j["values"] == [99, 99]'
expect_exit 1 rhizome array append demo.rz part rest.npy
expect_says "nothing to append"

# --- vertices of the delta have no row until one is put
cp -r demo.rz more.rz
printf '256\t3\n257\t256\n' >more.tsv
rhizome put more.rz more.tsv >/dev/null || fail "put"
rhizome array add more.rz late=e1.npy --json >o.json || fail "add over a delta"
expect_json o.json 'j["new_vertices"] == 2 and j["rows"] == 256 and j["rows_given"] == 256'
rhizome array add more.rz later=e1.npy >o.txt || fail "add over a delta"
grep -q '2 vertices were added by updates and have no row yet' o.txt || fail "add says: $(cat o.txt)"
printf '256\t8\t9\n' >row.tsv
rhizome put more.rz row.tsv --array late >/dev/null || fail "put a row"
rhizome get more.rz 256 --array late --json >o.json
expect_json o.json 'j["values"] == [8, 9]'
rhizome get more.rz 257 --array late --json >o.json
expect_json o.json 'j["values"] == [0, 0]'

# --- what export wrote is what add takes
rhizome export demo.rz --array feat --out feat.npy >/dev/null
rhizome array add demo.rz copy=feat.npy --ids feat.ids.tsv --layout chunk --memory 1M >/dev/null ||
  fail "add by ids"
rhizome export demo.rz --array copy --out copy.npy >/dev/null
cmp -s feat.npy copy.npy || fail "the copy of an array differs"

# --- versions, an alias that swaps and rolls back, retention
for v in 1 2 3; do
  rhizome array add demo.rz "emb=e$v.npy" --new-version --json >o.json || fail "version $v"
  expect_json o.json "j['array'] == 'emb@$v' and j['stored'] == 'emb.v$v'"
done
value() { rhizome get demo.rz 0 --array "$1" --json | python3 -c 'import json,sys; print(int(json.load(sys.stdin)["values"][0]))'; }
[ "$(value emb)" = 3000 ] || fail "emb is not the newest"
rhizome array alias demo.rz emb@live 1 >/dev/null || fail "alias"
[ "$(value emb)" = 1000 ] || fail "emb is not what is live"
rhizome array alias demo.rz emb@live 2 >o.txt || fail "alias moved"
grep -q 'emb@live is now emb@2' o.txt || fail "alias says: $(cat o.txt)"
[ "$(value emb@live)" = 2000 ] || fail "emb@live"
[ "$(value emb@3)" = 3000 ] || fail "emb@3"
[ "$(value emb@latest)" = 3000 ] || fail "emb@latest"
rhizome array rollback demo.rz emb@live --json >o.json || fail "rollback"
expect_json o.json 'j["version"] == 1'
[ "$(value emb)" = 1000 ] || fail "emb after rollback"
expect_exit 1 rhizome array rollback demo.rz emb@live
expect_exit 1 rhizome array drop demo.rz emb@1
expect_says "emb@live"
rhizome similar demo.rz 0 --array emb@3 --k 2 --json >o.json || fail "similar of a version"
rhizome export demo.rz --array emb@live --out live.npy >/dev/null || fail "export of an alias"
rhizome array keep demo.rz emb 1 --json >o.json || fail "keep"
expect_json o.json 'j["dropped_versions"] == [2]'
rhizome array list demo.rz --json >o.json
expect_json o.json '[(a["version"], a["aliases"]) for a in j["arrays"] if a["name"] == "emb"] == [(1, ["live"]), (3, [])]' \
  'j["aliases"] == [{"alias": "emb@live", "version": 1, "history": [1]}]' \
  'all(a["rows_given"] == a["rows"] and a["bytes"] > 0 for a in j["arrays"])'
rhizome array list demo.rz | grep -q '^ *emb@1 .*@live' || fail "list for people"
[ ! -e demo.rz/generations/000001/arrays/emb.v2 ] || fail "files of a dropped version stay"
rhizome array drop demo.rz emb --all-versions >/dev/null || fail "drop all"
for _ in 1 2 3; do
  rhizome array add demo.rz again=feat.npy --new-version --keep 1 >/dev/null || fail "add, keeping one"
done
[ "$(find demo.rz/generations -type d -name 'again.v*' ! -name '*.crc32c' | wc -l)" -eq 1 ] ||
  fail "versions that are not kept stay"
rhizome array drop demo.rz again --all-versions >/dev/null || fail "drop again"
rhizome array rename demo.rz copy kopie >/dev/null || fail "rename"
rhizome export demo.rz --array kopie --out copy.npy >/dev/null && cmp -s feat.npy copy.npy ||
  fail "the renamed array differs"
rhizome verify demo.rz --json >o.json || fail "verify"
expect_json o.json 'j["ok"] and j["orphans"] == []'

# --- what is refused, and how
expect_exit 1 rhizome array
expect_exit 1 rhizome array add demo.rz feat=e1.npy
expect_says "already"
expect_exit 1 rhizome array add demo.rz x.v3=e1.npy
expect_exit 1 rhizome array add demo.rz x
expect_exit 2 rhizome array add demo.rz x=none.npy
expect_exit 2 rhizome array drop demo.rz nope
expect_says nope feat
expect_exit 2 rhizome array drop demo.rz kopie@4
expect_exit 2 rhizome array alias demo.rz emb@live 1
expect_exit 1 rhizome array alias demo.rz emb 1
expect_exit 1 rhizome array alias demo.rz emb@live
expect_exit 1 rhizome get demo.rz 0 --array emb@
expect_exit 2 rhizome get demo.rz 0 --array emb@7
expect_exit 2 rhizome array list none.rz
finish
