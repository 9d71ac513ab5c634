#!/usr/bin/env bash
# plan train --ranks: figures that must be consistent, in a store with homes and in one without, and
# what is refused.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

rhizome generate planted --scale 12 --dim 32 --classes 4 --out data >/dev/null || fail "generate"
ingest=(--edges data/edges.npy --nodes data/nodes.tsv --node-columns id,label,split --array feat=data/features.npy)
rhizome ingest g.rz "${ingest[@]}" --partitions 6 --homes edgecut >/dev/null || fail "ingest with homes"
rhizome ingest p.rz "${ingest[@]}" --partitions 6 >/dev/null || fail "ingest without homes"
plan=(plan train g.rz --fanout 5,5 --batch-size 50 --superbatch 4)
for pool in 0 64K 1G; do
  expect_exit 0 rhizome "${plan[@]}" --ranks 1,2,3,6 --cache-bytes $pool --json
  cp out $pool.json
done
python3 - <<'PYTHON' || fail "the plans"
import json
none, some, all_rows = (json.load(open(f"{pool}.json")) for pool in ("0", "64K", "1G"))
assert none["homes"] == 6 and none["homes_by"] == "edgecut" and none["row_bytes"] == 128
for n, s, a in zip(none["plans"], some["plans"], all_rows["plans"]):
    assert n["rows_requested"] == none["plans"][0]["rows_requested"] == s["rows_requested"]
    assert n["remote_rows_fetched"] == n["remote_rows_requested"] == s["remote_rows_requested"]
    assert n["disk_rows_fetched"] == n["rows_requested"] - n["remote_rows_requested"]
    fetched = [p["remote_rows_fetched"] + p["disk_rows_fetched"] for p in (n, s, a)]
    assert fetched[0] > fetched[1] > fetched[2] > 0, fetched
    assert n["seconds"] > s["seconds"] > a["seconds"]
    for p in (n, s, a):
        shares = p["shares"]
        assert len(shares) == p["ranks"] and [one["homes"][0] for one in shares] == \
            [0] + [one["homes"][1] for one in shares[:-1]] and shares[-1]["homes"][1] == 6
        assert sum(one["rows"] for one in shares) == 4096
        assert sum(one["served_rows"] for one in shares) == p["remote_rows_fetched"]
        assert sum(one["bytes_out"] for one in shares) == p["bytes_in"]
        assert all(one["disk_rows_fetched"] <= one["rows"] and one["remote_rows_fetched"] <= 4096 - one["rows"]
                   for one in (shares if p is a else []))
    assert (n["ranks"] == 1) == (n["remote_rows_requested"] == 0) == (n["requests"] == 0)
PYTHON
# The same again; what the link has to do with it; and a store without homes, of which there is more to fetch.
expect_exit 0 rhizome "${plan[@]}" --ranks 1,2,3,6 --cache-bytes 64K --json
cmp -s out 64K.json || fail "not the same plan twice"
expect_exit 0 rhizome "${plan[@]}" --ranks 3 --link 10M,2ms --compute-ms 3 --json
expect_json out 'j["model"]["link_bits_per_second"] == 1e7' 'j["model"]["link_latency_seconds"] == 2e-3' \
  'j["model"]["compute_seconds"] == 3e-3' 'j["plans"][0]["seconds"] > 0'
seconds() { python3 -c 'import json; print(json.load(open("out"))["plans"][0]["seconds"])'; }
before=$(seconds)
# Rows out of the page cache, and processors that rows take: the model alone changes.
expect_exit 0 rhizome "${plan[@]}" --ranks 3 --link 10M,2ms --compute-ms 3 --read-us 0 --json
cached=$(seconds)
expect_exit 0 rhizome "${plan[@]}" --ranks 3 --link 10M,2ms --compute-ms 3 --read-us 0 --processors 1 --row-us 5000 --json
expect_json out 'j["model"]["processors"] == 1' 'j["model"]["row_seconds"] == 5e-3' 'j["model"]["read_seconds"] == 0'
given=$(seconds)
python3 -c "import sys; sys.exit(not $cached < $before < $given)" || fail "seconds: $cached, $before, $given"
expect_exit 0 rhizome "${plan[@]}" --ranks 3 --link 10M,2ms --compute-ms 3 --read-us 0 --processors 1 --row-us 5000 --own-us 9000 --json
expect_json out 'j["model"]["own_seconds"] == 9e-3'
python3 -c "import sys; sys.exit(not $given < $(seconds))" || fail "seconds: $given, $(seconds)"
expect_exit 0 rhizome plan train p.rz --fanout 5,5 --ranks 3 --json
expect_json out 'j["homes_by"] == "partitions"' 'j["plans"][0]["remote_rows_requested"] > 0'
expect_exit 0 rhizome plan train p.rz --fanout 5,5 --ranks 3
grep -q "partitions instead of homes" out && grep -q "and 1 evaluation step" out || fail "the text: $(cat out)"

for bad in "--ranks 7" "--ranks 0" "--ranks 2 --link fast" "--ranks 2 --link 10G,50" "--ranks 2 --cache lru" \
  "--ranks 2 --full-graph" "--ranks 2 --processors -1" "--ranks 2 --no-edges" "--ranks 2 --split nothing:x"; do
  # shellcheck disable=SC2086
  expect_exit 1 rhizome plan train g.rz $bad
done
