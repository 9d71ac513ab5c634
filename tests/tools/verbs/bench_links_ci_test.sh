#!/usr/bin/env bash
# `bench links`: layerwise and samplewise scores of the same edges agree if both use all neighbours, and the two ways
# count the vertices and edges that they compute.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

rhizome bench links --help >out 2>err || true
grep -q 'needs libtorch' err && exit 77

small=(--scale 8 --hidden 16 --dim 8 --batch-size 50 --batches 3 --threads 2 --json)
for model in hgt sage; do
  rhizome bench links "${small[@]}" --model $model --fanout all,all >$model.json || fail "bench links of $model"
  expect_json $model.json 'j["largest_difference"] < 1e-5 * j["largest_score"]' 'j["largest_score"] > 0.01' \
    'j["links"]["layerwise"]["items"] == j["edges"]' 'j["embedding"]["layerwise"]["items"] == j["vertices"]' \
    'j["links"]["samplewise"]["items"] == 150' 'j["embedding"]["samplewise"]["items"] == 150'
done
# Sampled neighbours differ between the two ways, so that nothing is compared.
rhizome bench links "${small[@]}" --fanout 3,2 --memory 512M >few.json || fail "bench links with few neighbours"
expect_json few.json '"largest_difference" not in j' 'j["links"]["ratio"] > 0' 'j["figure"] == j["links"]["ratio"]'
expect_exit 2 rhizome bench links --model nothing --scale 6
finish
