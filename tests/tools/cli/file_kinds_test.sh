#!/usr/bin/env bash
# Every option that names a file is given a pipe that nobody writes to, a folder and a device: it is refused, or it
# waits and can be interrupted. Nothing hangs, and nothing reads a device to its end.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

printf '0\t1\n1\t2\n2\t0\n' >e.tsv
printf '0\t0\t0\n1\t0\t1\n2\t0\t1\n' >f.txt
printf '0\t0\n1\t1\n2\t1\n' >n.tsv
printf '0\n' >seeds
rhizome ingest s.rz --edges e.tsv --nodes n.tsv --node-columns id,label --array feat=f.txt:1 >/dev/null || fail "ingest"
mkfifo pipe
mkdir folder
cat >kinds.py <<'PY'
import os, signal, subprocess, sys

BINARY = os.environ["RHIZOME"]
LIMIT = 120  # seconds that a loaded machine may need; what works ends within one
failures = 0
CASES = """
ingest n.rz --edges @
ingest n.rz --edges e.tsv --nodes @
ingest n.rz --edges e.tsv --array x=@
ingest n.rz --edges e.tsv --array x=@:1
ingest n.rz --edges e.tsv --edge-array x=@
ingest n.rz --edges e.tsv --homes @ --partitions 2
plan ingest --edges @
plan ingest --edges e.tsv --nodes @
plan ingest --edges e.tsv --array x=@
partition --edges @
partition --edges e.tsv --rows --train @
partition --edges e.tsv --rows --beside @
import ogb n.rz --from @
import graphbolt n.rz --from @
import wordnet n.rz --from @
array add s.rz x=@
array add s.rz x=f.txt:1 --ids @
put s.rz @
put s.rz @ --array feat
delete s.rz @
sample s.rz --seeds @ --fanout 2
sample s.rz --seeds seeds --fanout 2 --seed-times @ --time weight
sample s.rz --seeds seeds --fanout 2 --out @
export s.rz --array feat --out @
export s.rz --edges --out @
export s.rz --predictions @ --out o.csv
score s.rz --array feat --pairs @ --out o.tsv
score s.rz --array feat --all-edges --decoder @ --scorer mlp --out o.tsv
train s.rz --class-weights @
train s.rz --init @
train s.rz --full-graph --class-weights @
infer s.rz --model-file @ --out x
changes s.rz --out @
compact s.rz --scratch @
info @
verify @
doctor @
repair @
upgrade @
compact @
neighbors @ 0
backup s.rz @
restore @ n.rz
plan infer @
plan train @
"""


def end_of(process, seconds):
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def check(name, line):
    global failures
    arguments = [word.replace("@", name) for word in line.split()]
    process = subprocess.Popen([BINARY, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    code = end_of(process, 1)
    waited = code is None
    if waited:  # a pipe that is read once: it waits for a writer
        process.send_signal(signal.SIGTERM)
        code = end_of(process, LIMIT)
    if code is None:
        process.kill()
        process.wait()
    said = process.stderr.read().decode(errors="replace")
    process.stderr.close()
    good = code == 130 if waited else code is not None and code >= 0 and "unexpected" not in said
    if not good:
        failures += 1
        print(f"FAILED: {' '.join(arguments)}: exit code {code}{', waited' * waited}: {said[:300]}", file=sys.stderr)


for kind in ("pipe", "folder", "/dev/zero"):
    for case in CASES.strip().splitlines():
        check(kind, case)
sys.exit(failures > 0)
PY
python3 kinds.py || fail "kinds of files: see above"
[ ! -e n.rz ] || fail "a refused input left n.rz"
[ -p pipe ] || fail "the pipe was replaced"
finish
