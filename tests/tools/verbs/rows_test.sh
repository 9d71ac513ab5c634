#!/usr/bin/env bash
# Rows remain with their ids: after a history of updates, deletions and compactions, export, array
# add, get, similar and sample agree with a dictionary that received the same updates.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

# --- Three vertices, the first deleted and compacted away
printf 'a\nb\nc\n' >nodes.tsv
printf 'a\tb\nb\tc\n' >edges.tsv
printf '0\t0\t1\n1\t0\t2\n2\t0\t3\n' >feat.txt
rhizome ingest s.rz --edges edges.tsv --nodes nodes.tsv --array feat=feat.txt:1 >/dev/null || fail "ingest"
rhizome export s.rz --array feat --out before.npy >/dev/null || fail "export"
printf 'a\n' >gone.tsv
rhizome delete s.rz gone.tsv --vertices >/dev/null || fail "delete"
for state in deleted compacted; do
  rhizome export s.rz --array feat --out feat.npy --json >o.json || fail "export, $state"
  expect_json o.json '[f["rows"] for f in j["files"]] == [2, 2]'
  [ "$(tr '\n' ' ' <feat.ids.tsv)" = "b c " ] || fail "ids, $state: $(cat feat.ids.tsv)"
  python3 -c 'import struct,sys; sys.exit(open("feat.npy","rb").read()[-8:] != struct.pack("<2f", 2, 3))' ||
    fail "rows, $state"
  # The very file gives the very rows, with its ids beside it and without.
  cp feat.npy bare.npy
  rhizome array add s.rz "with_$state=feat.npy" --json >o.json || fail "add, $state"
  expect_json o.json 'j["ids"] == "feat.ids.tsv"'
  rhizome array add s.rz "without_$state=bare.npy" --json >o.json || fail "add without ids, $state"
  expect_json o.json 'j["ids"] is None' 'j["new_vertices"] == 0'
  for array in "with_$state" "without_$state"; do
    rhizome get s.rz c --array "$array" --json >o.json
    expect_json o.json 'j["values"] == [3]'
  done
  # A file of before the deletion does not fit, whether it has ids beside it or not.
  cp before.npy old.npy
  expect_exit 1 rhizome array add s.rz x=old.npy
  expect_says "3 rows" "2 vertices" "(1 deleted)" "ids"
  expect_exit 2 rhizome array add s.rz x=before.npy
  expect_says "before.ids.tsv:1" "'a'"
  rhizome compact s.rz >/dev/null || fail "compact"
done
# Nor do triplets that name a row of before.
printf '0\t0\t1\n2\t0\t3\n' >sparse.txt
expect_exit 1 rhizome array add s.rz x=sparse.txt:1
# Ids that no line can hold are refused before anything is written.
printf '{"id": "d\\ne"}\n' | rhizome put s.rz - --format json >/dev/null || fail "put an id with a line break"
cp feat.npy kept.npy
expect_exit 1 rhizome export s.rz --array feat --out feat.npy
expect_says "line break"
cmp -s feat.npy kept.npy || fail "a refused export changed the file"
# A tab is a part of the id.
printf '{"id": "b\\tc"}\n' | rhizome put s.rz - --format json >/dev/null || fail "put an id with a tab"
printf '{"id": "d\\ne"}\n' | rhizome delete s.rz - --format json >/dev/null || fail "delete it again"
rhizome export s.rz --array feat --out tab.npy >/dev/null || fail "export an id with a tab"
rhizome array add s.rz tab=tab.npy >/dev/null || fail "add by an id with a tab"
rhizome get s.rz b --array tab --json >o.json
expect_json o.json 'j["values"] == [2]'

# --- Any history: a dictionary beside it
python3 - "${RHIZOME_TEST_SEED:-}" <<'PY' || fail "a history"
import json, os, random, struct, subprocess, sys, zipfile

seed = int(sys.argv[1] or random.randrange(1 << 32))
print(f"RHIZOME_TEST_SEED={seed}")
rng = random.Random(seed)
rhizome = os.environ["RHIZOME"]

def run(*args, stdin="", code=0):
    done = subprocess.run([rhizome, *args], input=stdin, capture_output=True, text=True)
    assert done.returncode == code, f"exit code {done.returncode}: {args}: {done.stderr}"
    return json.loads(done.stdout) if "--json" in args and code == 0 else done.stderr

def npy(path):
    data = open(path, "rb").read()
    end = data.index(b"\n") + 1
    shape = data[:end].decode("latin1").split("'shape': (")[1].split(")")[0].split(",")
    rows, dim = int(shape[0]), int(shape[1])
    flat = struct.unpack(f"<{rows * dim}f", data[end:])
    return [list(flat[i * dim:(i + 1) * dim]) for i in range(rows)]

def fbin(path):
    data = open(path, "rb").read()
    rows, dim = struct.unpack("<2I", data[:8])
    flat = struct.unpack(f"<{rows * dim}f", data[8:])
    return [list(flat[i * dim:(i + 1) * dim]) for i in range(rows)]

def new_row():
    return [float(rng.randrange(-9, 10)) for _ in range(2)]

def cosine(a, b):
    norm = (sum(x * x for x in a) * sum(x * x for x in b)) ** 0.5
    return sum(x * y for x, y in zip(a, b)) / norm if norm else None

# Ids in the order in which the store came to know them; a deleted one that comes back is the last.
model = {f"v{i}": new_row() for i in range(12)}
with open("n.tsv", "w") as out:
    out.writelines(f"{v}\n" for v in model)
with open("e.tsv", "w") as out:
    out.writelines(f"v{i}\tv{(i * 5 + 1) % 12}\n" for i in range(12))
with open("f.txt", "w") as out:
    for i, row in enumerate(model.values()):
        out.writelines(f"{i}\t{c}\t{x}\n" for c, x in enumerate(row))
run("ingest", "h.rz", "--edges", "e.tsv", "--nodes", "n.tsv", "--array", "feat=f.txt:2",
    "--layout", rng.choice(["row", "chunk"]), "--partitions", "2")

def change(step):
    puts = []
    for _ in range(rng.randrange(1, 4)):
        v = rng.choice(list(model) + [f"n{step}", f"v{rng.randrange(12)}"])
        model[v] = new_row()
        puts.append(json.dumps({"id": v, "rows": {"feat": model[v]}}))
    if rng.random() < 0.3:  # a vertex without a row has zeros
        puts.append(json.dumps({"id": f"bare{step}"}))
        model[f"bare{step}"] = [0.0, 0.0]
    run("put", "h.rz", "-", "--format", "json", stdin="\n".join(puts) + "\n")
    if rng.random() < 0.7 and len(model) > 3:
        gone = rng.sample(list(model), 2)
        for v in gone:
            del model[v]
        run("delete", "h.rz", "-", "--vertices", stdin="\n".join(gone) + "\n")
    if rng.random() < 0.4:
        run("compact", "h.rz")

def check(step):
    ids, rows = list(model), list(model.values())
    for name in ("feat.npy", "feat.fbin"):
        said = run("export", "h.rz", "--array", "feat", "--out", name, "--json")
        assert [f["rows"] for f in said["files"]] == [len(ids)] * 2, said
        assert open("feat.ids.tsv").read().splitlines() == ids, "ids"
        assert (npy if name.endswith("npy") else fbin)(name) == rows, f"rows of {name}"
    os.replace("feat.npy", "bare.npy")  # without its ids
    copy = f"copy{step}"
    run("array", "add", "h.rz", f"{copy}=bare.npy", "--layout", rng.choice(["row", "chunk"]))
    run("export", "h.rz", "--array", copy, "--out", "copy.npy")
    assert npy("copy.npy") == rows, "rows of what was exported and added"
    v = rng.choice(ids)
    assert run("get", "h.rz", v, "--array", copy, "--json")["values"] == model[v], "get"
    if any(model[v]):
        near = run("similar", "h.rz", v, "--array", copy, "--k", "99", "--json")["similar"]
        wanted = {o: c for o in ids if o != v and (c := cosine(model[v], model[o])) is not None}
        assert {n["id"] for n in near} == set(wanted), "whom similar names"
        assert all(abs(n["score"] - wanted[n["id"]]) < 1e-5 for n in near), "scores of similar"
    run("array", "drop", "h.rz", copy)
    run("sample", "h.rz", "--seeds", "-", "--fanout", "2", "--out", "s.npz", stdin="\n".join(ids))
    sampled = zipfile.ZipFile("s.npz")
    numbers = "b0_export_rows.npy" if "b0_export_rows.npy" in sampled.namelist() else "b0_vertex_ids.npy"
    data = sampled.read(numbers)
    data = data[data.index(b"\n") + 1:]
    seeds = struct.unpack(f"<{len(ids)}q", data[:8 * len(ids)])
    assert list(seeds) == list(range(len(ids))), "rows of the seeds"

for step in range(6):
    change(step)
    check(step)
run("verify", "h.rz")
PY
finish
