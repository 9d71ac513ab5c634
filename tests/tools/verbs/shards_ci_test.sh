#!/usr/bin/env bash
# Sharded arrays in all operations on arrays.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

rhizome generate planted --out demo --scale 8 --dim 12 >/dev/null || fail "generate"
rhizome ingest demo.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy --partitions 3 >/dev/null || fail "ingest"
shards=(--layout chunk --chunk-rows 128 --inner-rows 16)

# --- add: what is listed, and what is refused
rhizome array add demo.rz emb=demo/features.npy "${shards[@]}" --codec blosc-zstd:3 >/dev/null || fail "add"
rhizome array list demo.rz --json >o.json || fail "list"
expect_json o.json 'j["arrays"][0]["name"] == "emb" and j["arrays"][0]["layout"] == "chunk"' \
  '(j["arrays"][0]["chunk_rows"], j["arrays"][0]["inner_rows"]) == (128, 16)'
rhizome array list demo.rz | grep -q 'chunk, inner 16' || fail "list does not show the shards"
rhizome info demo.rz --json >o.json || fail "info"
expect_json o.json '{a["name"]: a["inner_rows"] for a in j["arrays"]} == {"emb": 16, "feat": 0, "label": 0, "split": 0}'
expect_exit 1 rhizome array add demo.rz x=demo/features.npy --inner-rows 16
expect_says "only arrays of layout chunk can have shards"
expect_exit 1 rhizome array add demo.rz x=demo/features.npy --layout chunk --chunk-rows 100 --inner-rows 16
expect_says "100 rows of a chunk are not a multiple of the 16 rows of an inner chunk"
expect_exit 1 rhizome array add demo.rz x=demo/features.npy --layout chunk --inner-rows many
rhizome verify demo.rz >/dev/null || fail "verify"

# --- the same values as the features they were added from, also after compaction, backup and restore
same() {
  rhizome export "$1" --array feat --out feat.npy >/dev/null || fail "export feat"
  rhizome export "$1" --array emb --out emb.npy >/dev/null || fail "export emb"
  cmp -s feat.npy emb.npy || fail "$1: emb is not what it was made from"
}
same demo.rz
cp -r demo.rz new.rz
printf '1\t2\n5\t2\n' >edges.tsv
rhizome put new.rz edges.tsv >/dev/null || fail "put"
rhizome compact new.rz >/dev/null || fail "compact"
rhizome array list new.rz --json >o.json
expect_json o.json '[a["inner_rows"] for a in j["arrays"] if a["name"] == "emb"] == [16]'
same new.rz
rhizome verify new.rz >/dev/null || fail "verify after compaction"
rhizome backup demo.rz b >/dev/null && rhizome restore b copy.rz >/dev/null || fail "backup"
same copy.rz
rhizome verify copy.rz >/dev/null || fail "verify after restore"

# --- damage: inner chunk and bytes are named, other rows are there, and repair keeps them
chunk=copy.rz/generations/000001/arrays/emb/c.1.0
python3 - "$chunk" <<'PY'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
offset, size = struct.unpack_from("<QQ", data, len(data) - 4 - 8 * 16 + 3 * 16)
for i in range(40):  # one wrong byte could be told from the checksums
    data[offset + 30 + i] ^= 1 + i
open(sys.argv[1], "wb").write(data)
open("place", "w").write(f"inner chunk 3, bytes [{offset}, {offset + size})")
PY
expect_exit 3 rhizome verify copy.rz --json
expect_json out 'len(j["damaged"]) == 1' 'j["damaged"][0]["file"].endswith("emb/c.1.0")' \
  'open("place").read() in j["damaged"][0]["what"]' '"bytes [%d," % j["damaged"][0]["offset"] in open("place").read()'
expect_exit 3 rhizome export copy.rz --array emb --out x.npy
expect_says "emb/c.1.0" "$(cat place)"
rhizome repair copy.rz --fill-holes --json >o.json || fail "repair: $(cat o.json)"
expect_json o.json 'any("rows 176-191 lost" in str(l) for l in j["lost"])'
rhizome verify copy.rz >/dev/null || fail "verify after repair"
rhizome export copy.rz --array emb --out emb.npy >/dev/null || fail "export after repair"
python3 - <<'PY' || fail "repair lost more than an inner chunk"
rows = [[open(f, "rb").read()[128:][r * 48:r * 48 + 48] for r in range(256)] for f in ("feat.npy", "emb.npy")]
lost = [r for r in range(256) if rows[0][r] != rows[1][r]]
assert len(lost) == 16 and all(rows[1][r] == bytes(48) for r in lost), lost
PY
finish
