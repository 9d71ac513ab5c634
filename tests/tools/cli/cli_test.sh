#!/usr/bin/env bash
# Help, usage and output of every verb: each --help ends with an example that runs, --json prints
# one object with the specified fields, and the text output has the same content.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

verbs="generate ingest init partition import info verify neighbors get sample train infer similar export"
verbs+=" score evaluate repair backup restore clean upgrade doctor"
updates="put delete changes compact alter"

# --- Help and usage
expect_exit 0 rhizome --version
grep -q '^rhizome [0-9]' out || fail "--version says: $(cat out)"
expect_exit 0 rhizome help
for verb in $verbs $updates bench; do grep -q "^  $verb " out || fail "help does not list $verb"; done
expect_exit 0 rhizome help ingest
grep -q -- '--edges' out || fail "help ingest does not explain --edges"
expect_exit 1 rhizome help nonsense
expect_exit 1 rhizome
expect_exit 1 rhizome nonsense
expect_exit 1 rhizome info
expect_says "rhizome info --help"
expect_exit 1 rhizome info --nonsense x.rz
expect_says "--nonsense" "rhizome info --help"
expect_exit 1 rhizome ingest x.rz --edges e.tsv --partitions 0
expect_exit 1 rhizome ingest x.rz --edges e.tsv --partitions 1025
expect_exit 1 rhizome ingest x.rz --edges e.tsv --partitioner nonsense
expect_says nonsense refined adadne hash2d random
expect_exit 1 rhizome ingest x.rz --edges e.tsv --memory 12Q
expect_says 12Q 512M
expect_exit 1 rhizome ingest x.rz --edges e.tsv --codec blosclz
expect_exit 1 rhizome ingest x.rz --edges e.tsv --store-id 12
expect_exit 1 rhizome info x.rz --progress loud
expect_exit 1 rhizome sample x.rz --seeds s --fanout 10,
expect_exit 1 rhizome import nonsense x.rz

# --- Every example, in the order in which they make sense together
example() { rhizome "$@" --help | sed -n '/^Example: /{s///;p}'; }
for verb in $verbs; do
  line=$(example "$verb")
  [ -n "$line" ] || fail "$verb --help has no example"
  case $verb in
    train | infer | similar | export | score | evaluate)
      has_gnn || { echo "skipped: the example of $verb, this build has no librhizome_gnn"; continue; }
      ;;
    import)
      [ -d /usr/share/wordnet ] || { echo "skipped: the example of import, no wordnet-base"; continue; }
      ;;
  esac
  (eval "$line") >"$verb.txt" 2>err || { fail "example of $verb: $line"; head -n 5 err >&2; }
  [ -s "$verb.txt" ] || fail "the example of $verb prints nothing"
  # The example's graph is directed, and train and infer say that they walk its in-edges only.
  complaint=$(grep -v '^note: not used: out-edges' err | head -c 300)
  [ -z "$complaint" ] || fail "the example of $verb complains: $complaint"
done
# On a copy: what follows counts on the store as it is.
mkdir updated
cp -r demo.rz updated/
for verb in $updates; do
  line=$(example "$verb")
  [ -n "$line" ] || fail "$verb --help has no example"
  (cd updated && eval "$line") >"$verb.txt" 2>err || { fail "example of $verb: $line"; head -n 5 err >&2; }
  [ -s "$verb.txt" ] || fail "the example of $verb prints nothing"
done
mkdir docs
cp -r "$RHIZOME_SOURCE/docs/results" docs  # which bench report reads
benches=$(rhizome bench --help | sed -n '/^Subcommands:/,$s/^  \([a-z]*\) .*/\1/p')
case $benches in gather*train) ;; *) fail "bench --help does not list the benches: $benches" ;; esac
for bench in $benches; do
  if ! has_gnn && rhizome bench "$bench" --help 2>&1 | grep -q 'needs libtorch'; then
    expect_exit 6 rhizome bench "$bench"
    echo "skipped: bench $bench, this build has no librhizome_gnn"
    continue
  fi
  line=$(example bench "$bench")
  [ -n "$line" ] || { fail "bench $bench --help has no example"; continue; }
  if [ "$bench" = gather ] && ! command -v fio >/dev/null; then
    echo "skipped: bench gather, fio is not installed"
    continue
  fi
  code=0
  (eval "$line --json") >"bench-$bench.json" 2>err || code=$?
  if [ "$bench" = train ] && [ $code -eq 6 ]; then
    echo "skipped: bench train, no control group can be made: $(head -n 1 err)"
    rm bench-train.json
    continue
  fi
  [ $code -eq 0 ] || { fail "example of bench $bench: $line"; head -n 5 err >&2; }
  expect_json "bench-$bench.json" '"workload" in j'
done
expect_json bench-pool.json 'j["disk"]["pools"][0]["belady"]["rows_read"] <= j["disk"]["pools"][0]["none"]["rows_read"]' \
  'j["disk"]["pools"][0]["none"]["rows_read"] == j["disk"]["requests"]' 'j["disk"]["mapped_rows_per_second"] > 0'
[ -s bench-infer.json ] && expect_json bench-infer.json 'j["layouts"][-1]["chunk_requests"] <= min(l["chunk_requests"] for l in j["layouts"])' \
  'all(l["belady"] <= min(l["fifo"], l["lru"]) for l in j["layouts"])'
[ -s bench-train.json ] && expect_json bench-train.json 'len({r["loss"] for r in j["results"]}) == 1' \
  'all(r["peak_memory_bytes"] <= j["limit_bytes"] for r in j["results"] if r["contestant"] != "in memory")'

# --- What --json prints
metrics='all(k in j for k in ("vertices edges edge_types partitions replication_factor vertex_balance '
metrics+='edge_balance vertex_max_over_min edge_max_over_min interior_share generation").split())'
ingested='all(k in j for k in ("seconds", "peak_memory_bytes", "bad_lines"))'
rhizome generate rmat --out rmat --scale 8 --dim 4 --undirected --simple --permute --json >g.json
expect_json g.json 'all(set(f) == {"path", "rows", "dim", "dtype"} for f in j["files"])' 'j["seconds"] >= 0' \
  'sorted(os.path.basename(f["path"]) for f in j["files"]) == ["edges.npy", "features.npy", "nodes.tsv"]'
rhizome ingest rmat.rz --edges rmat/edges.npy --undirected --array x=rmat/features.npy --partitions 3 \
  --vertices 256 --json >i.json
expect_json i.json "$metrics" "$ingested" 'j["vertices"] == 256 and j["partitions"] == 3' \
  'j["edge_types"] == 1 and j["bad_lines"] == 0 and j["peak_memory_bytes"] > 2**20'

# A small graph that can be checked by eye: weights, two types, string ids, a parallel edge.
printf 'ann\tbob\tlikes\t2\nann\tbob\tlikes\t2\nann\tcat\tfears\t0.5\nbob\tann\tfears\t1\ncat\tcat\tlikes\t3\n' >e.tsv
printf 'bob\t7\t0.25\nann\t5\t-1.5\ncat\t7\t4\ndan\t9\t0\n' >n.tsv
printf '0\t0\t1\n1\t1\t0.1\n2\t0\t3\n2\t1\t4\n3\t1\t2\n' >x.txt
rhizome ingest p.rz --edges e.tsv --columns src,dst,type,weight --nodes n.tsv \
  --node-columns id,label,height --array feat=x.txt:2 --json >i.json
expect_json i.json "$metrics" "$ingested" 'j["vertices"] == 4 and j["edges"] == 5 and j["edge_types"] == 2'
rhizome info p.rz --json >o.json
expect_json o.json "$metrics" 'j["directions"] == "both" and j["delta_entries"] == 0' \
  'sorted(j["edge_type_names"]) == ["fears", "likes"] and j["topology_bytes"] > 0' \
  'math.isclose(j["bytes_per_edge"], j["topology_bytes"] / 5)' \
  'sorted(a["name"] for a in j["arrays"]) == ["feat", "height", "label"]' \
  'all({"name", "rows", "dim", "dtype", "layout", "codec", "bytes"} <= set(a) for a in j["arrays"])' \
  '[(a["rows"], a["dim"], a["dtype"], a["layout"]) for a in j["arrays"] if a["name"] == "feat"] == [(4, 2, "float32", "row")]' \
  'all(a["bytes"] > 0 for a in j["arrays"])'
rhizome verify p.rz --json >o.json
expect_json o.json 'j["ok"] is True and j["damaged"] == [] and j["files"] > 3 and j["bytes"] > 0 and "seconds" in j'

rhizome neighbors p.rz ann --json >o.json
expect_json o.json 'j["id"] == "ann" and j["direction"] == "out"' \
  'sorted((n["id"], n["type"], n["weight"]) for n in j["neighbors"]) == [("bob", "likes", 2), ("bob", "likes", 2), ("cat", "fears", 0.5)]'
rhizome neighbors p.rz cat --direction in --type likes --json >o.json
expect_json o.json 'j["direction"] == "in" and [n["id"] for n in j["neighbors"]] == ["cat"]'
rhizome neighbors p.rz cat --direction both --json >o.json
expect_json o.json 'len(j["neighbors"]) == 3'
rhizome neighbors rmat.rz 3 --json >o.json
expect_json o.json 'j["id"] == 3 and all(type(n["id"]) is int and n["weight"] == 1 for n in j["neighbors"])'
rhizome get p.rz ann --array feat --json >o.json
expect_json o.json 'j == {"id": "ann", "array": "feat", "dtype": "float32", "values": [0, 0.1]}'
rhizome get p.rz bob --array label --json >o.json
expect_json o.json 'j["values"] == [7]'
rhizome similar p.rz cat --array feat --array height --k 2 --json >o.json
expect_json o.json 'j["id"] == "cat" and [s["id"] for s in j["similar"]] in (["ann", "dan"], ["dan", "ann"])' \
  'all(math.isclose(s["score"], 0.8, rel_tol=1e-6) for s in j["similar"])' \
  '{s["id"]: s["label"] for s in j["similar"]} == {"ann": 5, "dan": 9}' \
  'list(j["by_array"]) == ["feat", "height"] and j["by_array"]["height"][0]["id"] == "bob"'
rhizome similar p.rz cat --array feat --array height >o.txt
grep -q 'by feat .*by height' o.txt || fail "similar does not print columns side by side"

rhizome export p.rz --array feat --out feat.npy --json >o.json
expect_json o.json '[f["path"] for f in j["files"]] == ["feat.npy", "feat.ids.tsv"] and j["seconds"] >= 0' \
  '(j["files"][0]["rows"], j["files"][0]["dim"], j["files"][0]["dtype"]) == (4, 2, "float32")'
[ "$(tr '\n' ' ' <feat.ids.tsv)" = "bob ann cat dan " ] || fail "ids of the export: $(cat feat.ids.tsv)"
rhizome export p.rz --array height --out height.fbin >/dev/null
rhizome export p.rz --array label --out label.npy --memory 1k >/dev/null
python3 - <<'PY' || fail "content of the exports"
import struct
def npy(path):
    b = open(path, "rb").read()
    assert b[:8] == b"\x93NUMPY\x01\x00" and b[8:10] == struct.pack("<H", b.index(b"\n") - 9)
    return eval(b[10:b.index(b"\n")]), b[b.index(b"\n") + 1:]
head, data = npy("feat.npy")
assert head == {"descr": "<f4", "fortran_order": False, "shape": (4, 2)}, head
rows = struct.unpack("<8f", data)
assert [round(x, 6) for x in rows] == [1, 0, 0, 0.1, 3, 4, 0, 2], rows
head, data = npy("label.npy")
assert head["shape"] == (4, 1) and struct.unpack("<4q", data) == (7, 5, 7, 9)
assert open("height.fbin", "rb").read() == struct.pack("<II4f", 4, 1, 0.25, -1.5, 4, 0)
PY
expect_exit 1 rhizome export p.rz --array feat --out feat.txt

# --- Samples: the archive says what the graph says, also with more members than 16 bits count
seq 0 255 >seeds.txt
rhizome sample rmat.rz --seeds seeds.txt --fanout all,2 --batch-size 100 --out s.npz --json >o.json
expect_json o.json 'j["batches"] == 3 and j["seeds"] == 256 and j["seconds"] > 0 and j["edges_per_second"] > 0'
for i in $(seq 130); do cat seeds.txt; done >many.txt
rhizome sample rmat.rz --seeds many.txt --fanout 1 --batch-size 1 --out many.npz >/dev/null
python3 - <<'PY' || fail "content of the samples"
import json, struct, zipfile
def npy(z, name):
    b = z.read(name + ".npy")
    head = eval(b[10:b.index(b"\n")])
    data = b[b.index(b"\n") + 1:]
    return head["shape"], struct.unpack(f"<{len(data) // 8}q", data)
edges = open("rmat/edges.npy", "rb").read()
edges = edges[edges.index(b"\n") + 1:]
flat = struct.unpack(f"<{len(edges) // 8}q", edges)
pairs = set(zip(flat[::2], flat[1::2]))
pairs |= {(b, a) for a, b in pairs}
z = zipfile.ZipFile("s.npz")
assert z.testzip() is None and len(z.namelist()) == 9
told, seen = json.load(open("o.json")), [0, 0]
for i in range(3):
    (v,), ids = npy(z, f"b{i}_vertex_ids")
    (two, e), ends = npy(z, f"b{i}_edges")
    seeds = list(range(100 * i, min(256, 100 * i + 100)))
    assert two == 2 and list(ids[:len(seeds)]) == seeds and len(set(ids)) == v
    assert npy(z, f"b{i}_seeds") == ((len(seeds),), tuple(range(len(seeds))))
    got = [(ids[s], ids[d]) for s, d in zip(ends[:e], ends[e:])]
    assert set(got) <= pairs and len(set(got)) == e
    for seed in seeds:  # fanout `all`: every in-edge of every seed
        assert {s for s, d in got if d == seed} == {a for a, b in pairs if b == seed}
    seen[0] += e
    seen[1] += v
assert seen == [told["sampled_edges"], told["unique_vertices"]], (seen, told)
z = zipfile.ZipFile("many.npz")
assert len(z.namelist()) == 3 * 256 * 130
assert npy(z, "b33279_vertex_ids")[1][0] == 255
PY
rhizome sample rmat.rz --seeds seeds.txt --fanout all,2 --batch-size 100 --out again.npz --threads 1 >/dev/null
cmp -s s.npz again.npz || fail "the same seed gives another sample with one thread"

# --- Training and inference
if has_gnn; then
  rhizome train demo.rz --epochs 2 --fanout 5,5 --threads 1 --seed 3 --out m.safetensors --json 2>err >t.json ||
    fail "train: $(head -n 3 err)"
  expect_json t.json 'len(j["epochs"]) == 2 and j["model"] == "m.safetensors" and j["superbatch"] >= 1' \
    'all(k in e for e in j["epochs"] for k in "loss seconds sample_seconds schedule_seconds switch_seconds gather_seconds update_seconds compute_seconds rows_requested pool_hits rows_read bytes_read reads_issued hit_rate".split())' \
    'set(j["io"]) >= {"maker", "direct", "mean_depth"} and j["peak_memory_bytes"] > 0' \
    '0 <= j["valid_accuracy"] <= 1 and 0 <= j["test_accuracy"] <= 1'
  rhizome infer demo.rz --model-file m.safetensors --out second --json 2>err >t.json || fail "infer: $(head -n 3 err)"
  expect_json t.json 'len(j["layers"]) == 2 and j["array"] == "second" and j["vertices"] == 4096' \
    'all(k in l for l in j["layers"] for k in "chunk_requests chunk_reads bytes_read fill_seconds model_seconds hit_rate".split())' \
    'all(k in j for k in "seconds vertices_per_second valid_accuracy test_accuracy peak_memory_bytes".split())'
  expect_exit 1 rhizome train demo.rz --layers 3 --fanout 5,5
  expect_says --layers
  eval "$(example plan infer) --json" 2>err >plan.json || fail "plan infer: $(head -n 3 err)"
  expect_json plan.json 'all(l["chosen_reads"] <= min(x["chunk_reads"] for x in l["layouts"]) for l in j["layers"])' \
    'all(l["chunk_reads"] <= l["chunk_requests"] for l in j["layers"])' 'len(j["layers"]) == 2'
  expect_exit 1 rhizome infer demo.rz --model-file m.safetensors --out second
  expect_exit 2 rhizome infer demo.rz --model-file missing.safetensors --out third

  # Over a delta with new vertices it is as after compaction, which carries it over as it was.
  cp -r demo.rz delta.rz
  python3 -c 'for v in (4096, 4097): print(v, *[v % 7 - 3 + d / 8 for d in range(32)], sep="\t")' >rows.tsv
  printf '4096\t5\n4097\t4096\n6\t4097\n7\t8\n' >e.tsv
  rhizome put delta.rz e.tsv >/dev/null && rhizome put delta.rz rows.tsv --array feat >/dev/null || fail "put"
  rhizome infer delta.rz --model-file m.safetensors --out early --json 2>err >t.json || fail "infer over a delta: $(head -n 3 err)"
  expect_json t.json 'j["vertices"] == 4098'
  rhizome infer delta.rz --model-file m.safetensors --mode samplewise --out single >/dev/null 2>err ||
    fail "infer over a delta: $(head -n 3 err)"
  rhizome get delta.rz 4097 --array early --json >before.json
  expect_json before.json 'any(j["values"])'
  rhizome export delta.rz --array early --out before.npy >/dev/null
  rhizome compact delta.rz >/dev/null || fail "compact"
  rhizome get delta.rz 4097 --array early --json >after.json
  cmp -s before.json after.json || fail "compaction changed an embedding"
  expect_exit 0 rhizome verify delta.rz
  rhizome array list delta.rz --json >t.json
  expect_json t.json 'not {"early.stale", "single.stale"} & {a["name"] for a in j["arrays"]}' \
    'all(a["rows_given"] == 4098 for a in j["arrays"] if a["name"] in ("feat", "early", "single"))'
  rhizome infer delta.rz --model-file m.safetensors --out late >/dev/null 2>err || fail "infer: $(head -n 3 err)"
  for array in late single; do
    rhizome export delta.rz --array $array --out $array.npy >/dev/null
    cmp -s before.npy $array.npy && continue
    python3 - before.npy $array.npy <<'PY' || fail "$array is not what was inferred over the delta"
import array, sys
def values(path):
    data = open(path, "rb").read()
    v = array.array("f"); v.frombytes(data[10 + int.from_bytes(data[8:10], "little"):])
    return v
a, b = values(sys.argv[1]), values(sys.argv[2])
assert len(a) == len(b) and all(abs(x - y) <= 1e-4 * (1 + abs(y)) for x, y in zip(a, b))
PY
  done
else
  echo "skipped: train and infer, this build has no librhizome_gnn"
  expect_exit 6 rhizome train demo.rz --epochs 1
  expect_says librhizome_gnn install_deps.sh
fi

# --- Errors are JSON too, a full disk below stdout is noticed, progress goes to stderr only
expect_exit 2 rhizome info missing.rz --json
expect_json out 'j["error"]["code"] == "not_found" and "missing.rz" in j["error"]["message"]'
printf '0\t1\n' >pair.tsv
expect_exit 1 rhizome ingest pair.rz --edges pair.tsv --columns src,x --json
expect_says "--columns src,x must name src and dst"
expect_json out 'j["error"]["message"].startswith("--columns src,x must name src and dst: ")' \
  'j["error"]["library_message"].startswith("`columns=src,x` must name src and dst: ")'
expect_exit 1 rhizome ingest pair.rz --edges pair.tsv --columns src,x --json --keep-fields
expect_says '`columns=src,x` must name src and dst'
expect_json out 'j["error"]["message"] == j["error"]["library_message"]'
code=0
rhizome info p.rz >/dev/full 2>err || code=$?
[ "$code" -eq 5 ] || fail "a full disk below stdout gives exit code $code"
rhizome generate rmat --out big --scale 15 --dim 64 --progress=json >out 2>err
python3 -c 'import json; [json.loads(l)["phase"] for l in open("err")]' || fail "--progress=json is not JSON lines"
rhizome generate rmat --out big --scale 15 --dim 64 --progress=none >out 2>err
[ ! -s err ] || fail "--progress=none writes to stderr"
finish
