#!/usr/bin/env bash
# Imports under a kernel limit that kills a process that exceeds it: the layouts of OGB and
# GraphBolt, with features of vertices and edges, seeds and labels that together exceed the limit.
# Without --memory they are killed; with it they succeed, and the store is byte for byte the one
# built in memory.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
# shellcheck source=tests/tools/memory/memory_group.bash
. ./memory_group.bash
cd "$work"

limit_memory $((64 << 20))
id=(--store-id 00112233445566778899aabbccddeeff)
test_seed
python3 - "$seed" <<'PY' || fail "write the data sets"
import array, gzip, os, random, struct, sys
rng = random.Random(int(sys.argv[1]))
vertices, edges, dim, edge_dim = 1 << 17, 900_000, 16, 4

def draw(count, below):
    drawn = array.array("I")
    drawn.frombytes(rng.randbytes(4 * count))
    return [x * below >> 32 for x in drawn]

def npy(path, descr, shape, values):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    head = head.ljust(117) + "\n"
    kind = {"<i8": "q", "<i4": "i", "<f4": "f"}[descr]
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        array.array(kind, values).tofile(f)

def csv(path, *columns):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with gzip.open(path, "wt", compresslevel=1) as f:
        f.writelines(map((",".join(["%d"] * len(columns)) + "\n").__mod__, zip(*columns)))

src = [x if x % 3 else x // 50 for x in draw(edges, vertices)]
dst = draw(edges, vertices)
feat = draw(vertices * dim, 1000)
edge_feat = draw(edges * edge_dim, 1000)
year = draw(edges, 50)
label = draw(vertices, 40)
seeds = [range(0, vertices * 3 // 4), range(vertices * 3 // 4, vertices * 7 // 8), range(vertices * 7 // 8, vertices)]

csv("ogb/raw/edge.csv.gz", src, dst)
csv("ogb/raw/num-node-list.csv.gz", [vertices])
csv("ogb/raw/num-edge-list.csv.gz", [edges])
csv("ogb/raw/node-feat.csv.gz", *(feat[c::dim] for c in range(dim)))
csv("ogb/raw/node-label.csv.gz", label)
csv("ogb/raw/edge-feat.csv.gz", *(edge_feat[c::edge_dim] for c in range(edge_dim)))
csv("ogb/raw/edge_year.csv.gz", year)
for name, numbers in zip(("train", "valid", "test"), seeds):
    csv(f"ogb/split/random/{name}.csv.gz", numbers)

npy("bolt/edges.npy", "<i8", (2, edges), src + dst)
npy("bolt/feat.npy", "<f4", (vertices, dim), feat)
npy("bolt/edge_feat.npy", "<f4", (edges, edge_dim), edge_feat)
npy("bolt/year.npy", "<i4", (edges,), year)
text = """graph:
  nodes:
  - num: %d
  edges:
  - format: numpy
    path: edges.npy
feature_data:
- {domain: node, name: feat, format: numpy, path: feat.npy}
- {domain: edge, name: edge_feat, format: numpy, path: edge_feat.npy}
- {domain: edge, name: edge_year, format: numpy, path: year.npy}
tasks:
- name: node_classification
""" % vertices
for name, numbers in zip(("train", "validation", "test"), seeds):
    npy(f"bolt/{name}.npy", "<i8", (len(numbers),), numbers)
    npy(f"bolt/{name}-labels.npy", "<i8", (len(numbers),), [label[v] for v in numbers])
    text += f"""  {name}_set:
  - data:
    - {{name: seeds, format: numpy, path: {name}.npy}}
    - {{name: labels, format: numpy, path: {name}-labels.npy}}
"""
open("bolt/metadata.yaml", "w").write(text)
PY

for layout in ogb bolt; do
  importer=$([ $layout = ogb ] && echo ogb || echo graphbolt)
  input=("$importer" --from "$layout")
  code=0
  limited import "${input[0]}" x.rz "${input[@]:1}" >out 2>err || code=$?
  [ $code -eq 137 ] || fail "$layout: the limit does not bite: exit code $code without --memory"
  expect_exit 0 limited import "${input[0]}" s.rz "${input[@]:1}" --memory 40M "${id[@]}" --json
  expect_json out 'j["spilled"] is True' 'j["edges"] == 900000' 'j["left_out"] == []' \
    'j["peak_memory_bytes"] - j["base_memory_bytes"] <= 40 << 20'
  partitions=$(python3 -c 'import json; print(json.load(open("out"))["partitions"])')
  partitioner=$(python3 -c 'import json; print(json.load(open("out"))["partitioner"])')
  expect_exit 0 rhizome verify s.rz
  expect_exit 0 rhizome import "${input[0]}" h.rz "${input[@]:1}" --partitions "$partitions" \
    --partitioner "$partitioner" "${id[@]}"
  diff -r s.rz/generations h.rz/generations >/dev/null || fail "$layout: other bytes than in memory"
  expect_exit 5 rhizome import "${input[0]}" y.rz "${input[@]:1}" --memory 19M
  expect_says "--memory 19" "at least 20"
  more=$([ $layout = ogb ] && echo raw/num-node-list.csv.gz || echo metadata.yaml)
  mv $layout/$more kept
  if [ $layout = ogb ]; then echo 3000000 | gzip >$layout/$more; else sed 's/num: 131072/num: 3000000/' kept >$layout/$more; fi
  expect_exit 5 rhizome import "${input[0]}" y.rz "${input[@]:1}" --memory 40M
  expect_says "3000000 vertices alone" "MiB"
  mv kept $layout/$more
  [ -e y.rz ] && fail "$layout: a refused import left something"
  rm -rf s.rz h.rz x.rz
  expect_exit 0 rhizome import "${input[0]}" $layout.rz "${input[@]:1}" --partitions 4 --partitioner hdrf "${id[@]}"
done
# Both say the same graph.
diff -r ogb.rz/generations/*/topology bolt.rz/generations/*/topology >/dev/null || fail "two topologies"
diff -r -x zarr.json -x '*.crc32c' ogb.rz/generations/*/arrays bolt.rz/generations/*/arrays >/dev/null ||
  fail "two sets of arrays"  # but for the numbers of the arrays
finish
