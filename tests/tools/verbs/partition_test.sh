#!/usr/bin/env bash
# The verb `partition`: its output agrees with its own output file, for every partitioner; text and
# .npy inputs give the same result; wrong usage is refused.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

rhizome generate rmat --out g --scale 10 --undirected --simple --permute --json >g.json
fields='all(k in j for k in ("partitioner partitions replication_factor vertex_balance edge_balance '
fields+='interior_share seconds cpu_seconds edges_per_second peak_memory_bytes owner_balance seed").split())'
for partitioner in refined adadne dne hash2d dbh hdrf random range; do
  rhizome partition --edges g/edges.npy --partitioner $partitioner --partitions 5 --seed 3 \
    --threads 2 --out parts.npy --json >p.json || fail "partition with $partitioner"
  cp p.json "$partitioner.json"
  expect_json p.json "$fields" "j['partitioner'] == '$partitioner'" \
    "j['edges'] == sum(f['rows'] for f in json.load(open('g.json'))['files'] if 'edges' in f['path'])"
  python3 - <<'PY' || fail "$partitioner: the metrics are not those of the output"
import array, json
def body(path):
    b = open(path, "rb").read()
    return b[10 + int.from_bytes(b[8:10], "little"):], b[:128]
raw, _ = body("g/edges.npy")
ends = array.array("q", raw)
raw, head = body("parts.npy")
assert b"'<u2'" in head
parts = array.array("H", raw)
assert len(parts) * 2 == len(ends)
j = json.load(open("p.json"))
replicas, edges = {}, [0] * 5
for e, p in enumerate(parts):
    edges[p] += 1
    for v in ends[2 * e:2 * e + 2]:
        replicas.setdefault(v, set()).add(p)
total = sum(map(len, replicas.values()))
vertices = [sum(p in s for s in replicas.values()) for p in range(5)]
near = lambda a, b: abs(a - b) < 1e-9
assert near(j["replication_factor"], total / len(replicas))
assert near(j["vertex_balance"], max(vertices) * 5 / total)
assert near(j["edge_balance"], max(edges) * 5 / len(parts))
assert near(j["vertex_max_over_min"], max(vertices) / min(vertices))
assert near(j["edge_max_over_min"], max(edges) / min(edges))
assert near(j["interior_share"], sum(len(s) == 1 for s in replicas.values()) / len(replicas))
PY
done
expect_json refined.json 'j["vertex_balance"] <= 1.3' 'j["edge_balance"] <= 1.05'

printf '7\t8\n8\t9\n9\t7\n' >t.tsv
rhizome partition --edges t.tsv --partitions 2 --seeds 3 --json >t.json || fail "partition of text"
expect_json t.json 'len(j["runs"]) == 3' 'j["vertices"] == 3 and j["edges"] == 3' \
  '[r["seed"] for r in j["runs"]] == [1, 2, 3]' \
  'j["over_seeds"]["replication_factor"]["min"] <= j["over_seeds"]["replication_factor"]["max"]'

expect_exit 1 rhizome partition --partitions 2
expect_exit 1 rhizome partition --edges t.tsv --partitions 0
expect_exit 1 rhizome partition --edges t.tsv --partitioner metis
expect_exit 1 rhizome partition --edges t.tsv --max-edge-balance 0.5
expect_says max_edge_balance "at least 1"
expect_exit 1 rhizome partition --edges t.tsv --seeds 2 --out p.npy
printf '7\t8\nx\n' >bad.tsv
expect_exit 1 rhizome partition --edges bad.tsv
expect_says bad.tsv:2
expect_exit 2 rhizome partition --edges missing.tsv

# Homes of rows: what is printed is what the output says; those of another program are measured alike.
seq 0 5 1023 >train.txt
rhizome partition --edges g/edges.npy --vertices 1024 --rows --partitions 4 --train train.txt --out homes.npy --json >r.json ||
  fail "homes of rows"
rhizome partition --edges g/edges.npy --vertices 1024 --rows --partitions 4 --train train.txt --beside homes.npy \
  --seed 2 --json >r2.json || fail "homes beside others"
python3 - <<'PY' || fail "homes: the metrics are not those of the output"
import array, json
def body(path):
    b = open(path, "rb").read()
    return b[10 + int.from_bytes(b[8:10], "little"):]
ends, homes = array.array("q", body("g/edges.npy")), array.array("i", body("homes.npy"))
j, beside = json.load(open("r.json")), json.load(open("r2.json"))["beside"]
pairs = [(u, v) for u, v in zip(ends[::2], ends[1::2]) if u != v]
near = lambda a, b: abs(a - b) < 1e-9
most = lambda of: max(of.count(home) for home in range(4)) * 4 / len(of)
assert len(homes) == j["vertices"] and j["seeds"] == 205
assert near(j["cut_share"], sum(homes[u] != homes[v] for u, v in pairs) / len(pairs))
assert near(j["row_balance"], most(list(homes))) and j["row_balance"] <= 1.05
assert near(j["seed_balance"], most([homes[v] for v in range(0, 1024, 5)])) and j["seed_balance"] <= 1.05
assert all(near(beside[k], j[k]) for k in ("cut_share", "row_balance", "seed_balance"))
assert j["cut_share"] < .75, "no better than a drawn division"
PY
expect_exit 1 rhizome partition --edges g/edges.npy --vertices 1024 --rows --partitioner refined
expect_exit 1 rhizome partition --edges g/edges.npy --vertices 1024 --train train.txt
expect_exit 1 rhizome partition --edges g/edges.npy --vertices 1024 --rows --partitions 3 --beside homes.npy
expect_says homes.npy "not in [0, 3)"
echo 5000 >far.txt
expect_exit 1 rhizome partition --edges g/edges.npy --vertices 1024 --rows --partitions 3 --train far.txt
expect_says far.txt "seed 5000"

expect_exit 1 rhizome partition --edges t.tsv --rows --partitions 2 --out homes.npy
expect_says number vertices
rhizome partition --edges t.tsv --rows --partitions 2 >t.txt || fail 'homes of a text file'

# A store keeps the homes that `partition --rows` writes, whether it computes them or is given the file.
python3 -c 'for v in range(1024): print(v, 0 if v % 5 == 0 and v < 1024 else 2, sep="\t")' >n.tsv
ingest=(rhizome ingest --edges g/edges.npy --undirected --nodes n.tsv --node-columns id,split --partitions 4 --json)
"${ingest[@]}" c.rz --homes edgecut >c.json || fail "ingest --homes edgecut"
"${ingest[@]}" f.rz --homes homes.npy >f.json || fail "ingest --homes FILE"
"${ingest[@]}" o.rz --homes owner >o.json 2>err || fail "ingest --homes owner"
for store in c f o; do
  rhizome info $store.rz --json >info.json || fail "info of $store.rz"
  rhizome verify $store.rz >/dev/null || fail "verify of $store.rz"
  rhizome export $store.rz --array home --out $store.npy >/dev/null || fail "export of $store.rz"
  expect_json info.json "j['homes'] == json.load(open('$store.json'))['homes']" \
    "j['homes']['by'] == {'c': 'edgecut', 'f': 'file', 'o': 'owner'}['$store']" "j['homes']['homes'] == 4"
done
# The bodies, as `export` writes one column and `partition` a list.
for store in c f; do
  cmp <(tail -c 4096 $store.npy) <(tail -c 4096 homes.npy) || fail "$store.rz: other homes than partition gave"
done
expect_json c.json "j['homes_warning'] is None" \
  "all(abs(j['homes'][a] - json.load(open('r.json'))[b]) < 1e-9 for a, b in (('cut_share', 'cut_share'),
    ('row_balance', 'row_balance'), ('training_balance', 'seed_balance'), ('training_vertices', 'seeds')))"
rhizome info c.rz | grep -q '4 by edgecut' || fail "info does not tell the homes"
python3 -c 'for v in range(1024): print(v % 2)' >two.txt
"${ingest[@]}" u.rz --homes two.txt >u.json 2>err || fail "uneven homes"
expect_says "512 rows, 2.000 times the mean"
expect_json u.json "'512 rows' in j['homes_warning']"
expect_exit 1 "${ingest[@]}" w.rz --homes train.txt
expect_says "train.txt:2: home 5 is not in [0, 4)"
expect_exit 2 "${ingest[@]}" w.rz --homes nowhere.npy
printf '5\t9\n' >put.tsv
expect_exit 1 rhizome put c.rz --array home put.tsv
expect_says "home 9"
# A repair that fills holes leaves "none" where homes were lost, and the facts.
dd if=/dev/zero of="$(find c.rz -path '*arrays/home/c.0.0')" bs=1 seek=40 count=300 conv=notrunc 2>/dev/null
expect_exit 3 rhizome verify c.rz
rhizome repair c.rz --fill-holes >/dev/null 2>err || fail "repair: $(cat err)"
expect_exit 0 rhizome verify c.rz
rhizome info c.rz --json >info.json
expect_json info.json "j['homes'] == json.load(open('c.json'))['homes']"
[ ! -e w.rz ] || fail "a refused ingestion left something"

finish
