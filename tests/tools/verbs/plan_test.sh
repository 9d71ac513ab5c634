#!/usr/bin/env bash
# Compares the estimates of `plan ingest` with what an ingestion then uses: memory and disk within a
# factor of 1.5.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

rhizome generate rmat --out g --scale 16 --edge-factor 12 --dim 16 --permute >/dev/null || fail "generate"
input=(--edges g/edges.npy --nodes g/nodes.tsv --array feat=g/features.npy)

# --- In memory
expect_exit 0 rhizome plan ingest g.rz "${input[@]}" --json
cp out plan.json
expect_exit 0 rhizome ingest g.rz "${input[@]}" --json
cp out held.json
[ ! -e plan.rz ] && [ "$(ls -d ./*.rz)" = ./g.rz ] || fail "a plan made something"
expect_json plan.json 'j["spilled"] is False' 'j["edges"] == 12 << 16' 'j["edges_exact"] is True' \
  'j["vertices"] == 1 << 16' 'j["id_kind"] == "dense"' 'j["partitions"] == 1' 'j["seconds"] > 0'
python3 - <<'PY' || fail "the plan is not within a factor of 1.5"
import json, os
plan, held = json.load(open("plan.json")), json.load(open("held.json"))
size = sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk("g.rz/generations") for f in fs)
for what, said, was in [
    ("memory", plan["peak_memory_bytes"], held["peak_memory_bytes"] - held["base_memory_bytes"]),
    ("store", plan["store_bytes"], size),
]:
    print(f"{what}: {said} said, {was} taken")
    assert was / 1.5 <= said <= 1.5 * was, what
assert held["peak_memory_bytes"] - held["base_memory_bytes"] <= plan["memory_to_hold_bytes"]
PY

# --- Through scratch files, with memory for the half-edges of the default and without
for case in '30M refined' '20M hdrf'; do
  read -r memory partitioner <<<"$case"
  limited=("${input[@]}" --memory "$memory")
  expect_exit 0 rhizome plan ingest s.rz "${limited[@]}" --json
  cp out plan.json
  rm -rf s.rz
  expect_exit 0 rhizome ingest s.rz "${limited[@]}" --json
  cp out spilled.json
  expect_exit 0 rhizome verify s.rz
  python3 - "${memory%M}" $partitioner <<'PY' || fail "the plan of a spilled ingestion in $memory does not hold"
import json, sys
plan, got = json.load(open("plan.json")), json.load(open("spilled.json"))
assert plan["spilled"] and got["spilled"]
assert plan["partitioner"] == got["partitioner"] == sys.argv[2], (plan["partitioner"], got["partitioner"])
print("partitions:", plan["partitions"], "said,", got["partitions"], "taken")
assert plan["partitions"] / 2 <= got["partitions"] <= 2 * plan["partitions"]
print("scratch:", plan["scratch_bytes"], "said,", got["spilled_bytes"], "written")
assert got["spilled_bytes"] / 1.5 <= plan["scratch_bytes"] <= 1.5 * got["spilled_bytes"]
taken = got["peak_memory_bytes"] - got["base_memory_bytes"]
print("memory:", plan["peak_memory_bytes"], "said,", taken, "taken")
assert taken / 1.5 <= plan["peak_memory_bytes"] <= 1.5 * taken
assert taken <= int(sys.argv[1]) << 20
assert plan["peak_memory_bytes"] <= int(sys.argv[1]) << 20
PY
done

# --- Text, compressed and not, with string ids: counts are estimates
seq 0 40000 | awk '{print "v" ($1 * 7919) % 5003 "\tv" ($1 * 104729) % 5003}' >e.tsv
gzip -k e.tsv
for file in e.tsv e.tsv.gz; do
  expect_exit 0 rhizome plan ingest --edges $file --json
  expect_json out '36000 <= j["edges"] <= 44000' 'j["edges_exact"] is False' 'j["id_kind"] == "string"' \
    '2500 <= j["vertices"] <= 10000'
done

# --- What cannot be done is said, and nothing is
expect_exit 5 rhizome plan ingest "${input[@]}" --memory 1M && expect_says 1.0
expect_exit 2 rhizome plan ingest --edges missing.npy && expect_says missing.npy
expect_exit 0 rhizome plan ingest --help
finish
