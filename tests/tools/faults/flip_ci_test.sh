#!/usr/bin/env bash
# A flipped bit in any file under generations/ makes verify exit with 3 and name the file: the
# first, last, middle and some more bytes of each file, with a different bit each time.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

rhizome generate planted --out demo --scale 7 --edge-factor 4 --dim 4 --seed 2 >/dev/null || fail "generate"
rhizome ingest g.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy --partitions 3 --homes edgecut >/dev/null || fail "ingest"
# String ids, types, weights and compressed chunks, so that every kind of file is there.
printf 'a\tb\tx\t1\nb\tc\ty\t2\nc\ta\tx\t3\na\tc\ty\t4\n' >e.tsv
printf '0\t0\t1\n1\t1\t2\n2\t0\t3\n' >x.txt
printf 'c\na\nb\n' >n.tsv
rhizome ingest s.rz --edges e.tsv --columns src,dst,type,weight --nodes n.tsv --array x=x.txt:2 --layout chunk \
  --partitions 2 >/dev/null || fail "ingest"
expect_exit 0 rhizome verify g.rz
expect_exit 0 rhizome verify s.rz

python3 - "$RHIZOME" g.rz s.rz <<'PY' || fail "flipped bytes"
import json, os, subprocess, sys
binary, bad, flips = sys.argv[1], 0, 0
for store in sys.argv[2:]:
    files = sorted(os.path.join(d, f) for d, _, fs in os.walk(os.path.join(store, "generations")) for f in fs)
    for path in files:
        size = os.path.getsize(path)
        if size == 0:
            continue
        places = sorted({0, size - 1, size // 2, size // 3, min(8, size - 1), max(0, size - 9)})
        for place in places:
            with open(path, "r+b") as f:
                f.seek(place)
                byte = f.read(1)[0]
                f.seek(place)
                f.write(bytes([byte ^ (1 << flips % 8)]))
            run = subprocess.run([binary, "verify", store, "--json"], capture_output=True, text=True)
            with open(path, "r+b") as f:
                f.seek(place)
                f.write(bytes([byte]))
            flips += 1
            name = os.path.relpath(path, store)
            told = name in run.stderr
            if run.returncode == 3 and not told:
                told = any(d["file"] == name for d in json.loads(run.stdout).get("damaged", []))
            if run.returncode != 3 or not told:
                bad += 1
                print(f"{path} byte {place}: exit {run.returncode}\n    {run.stdout}    {run.stderr}", file=sys.stderr)
    run = subprocess.run([binary, "verify", store], capture_output=True)
    assert run.returncode == 0, "a byte was not put back"
print(f"{flips} flipped bits, {bad} not found or not named")
sys.exit(bad != 0)
PY
finish
