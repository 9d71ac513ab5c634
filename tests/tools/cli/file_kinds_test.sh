#!/usr/bin/env bash
# Every option that names a file is given a pipe without a writer, a folder and a device: the option
# is refused by name, or the verb waits and can be interrupted. No verb hangs or reads a device to
# its end.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

printf '0\t1\n1\t2\n2\t0\n' >e.tsv
printf '0\t0\t0\n1\t0\t1\n2\t0\t1\n' >f.txt
printf '0\t0\t0\n1\t1\t1\n2\t1\t2\n' >n.tsv
printf '0\n' >seeds
python3 - <<'PY'
import struct
head = b"{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }"
head += b" " * (-(len(head) + 11) % 64) + b"\n"
head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head
open("t.npy", "wb").write(head + struct.pack("<3q", 1, 2, 3))
PY
rhizome ingest s.rz --edges e.tsv --nodes n.tsv --node-columns id,label,split --array feat=f.txt:1 \
  --edge-array time=t.npy >/dev/null || fail "ingest"
mkfifo pipe
cat >kinds.py <<'PY'
import os, shutil, signal, subprocess, sys, time

BINARY = os.environ["RHIZOME"]
LIMIT = 120  # seconds that a loaded machine may need; what works ends within one
failures = 0
# Inputs that are read once, from beginning to end: a pipe will do.
STREAMED = """
array add s.rz x=f.txt:1 --ids @
put s.rz @
put s.rz @ --array feat
delete s.rz @
sample s.rz --seeds @ --fanout 2
sample s.rz --seeds seeds --fanout 2 --seed-times @ --time time
score s.rz --array feat --pairs @ --out o.tsv
score s.rz --array feat --top 1 --of @ --out o.tsv
evaluate s.rz --array feat --test @
evaluate s.rz --array feat --test e.tsv --allow-leaked --valid @
evaluate s.rz --array feat --test e.tsv --allow-leaked --candidates @
""".strip().splitlines()
OTHERS = """
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
array add s.rz x=@:1
sample s.rz --seeds seeds --fanout 2 --out @
export s.rz --array feat --out @
export s.rz --edges --out @
export s.rz --predictions @ --out o.csv
score s.rz --array feat --all-edges --decoder @ --scorer mlp --out o.tsv
evaluate s.rz --array feat --test e.tsv --allow-leaked --decoder @ --scorer mlp
train s.rz --class-weights @
train s.rz --init @
train s.rz --full-graph --class-weights @
train s.rz --full-graph --init @
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
plan infer s.rz --model-file @
plan train @ --full-graph
""".strip().splitlines()
TAKE_FOLDERS = ("compact s.rz --scratch @", "backup s.rz @")


def has_open(process, name):
    folder = f"/proc/{process.pid}/fd"
    try:
        return any(os.path.realpath(f"{folder}/{file}") == os.path.realpath(name) for file in os.listdir(folder))
    except OSError:
        return False  # it has ended


def interrupt(process, name):
    """Interrupts a process that waits for a pipe. Before it has opened it, it may not handle signals yet. A signal that
    comes right before it waits is only noted; the next one ends it.
    """
    end = time.monotonic() + LIMIT
    while process.poll() is None and not has_open(process, name) and time.monotonic() < end:
        time.sleep(0.01)
    while process.poll() is None and time.monotonic() < end:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            pass


def run(name, line):
    """Returns the exit code, None if it had to be killed, and what was said."""
    process = subprocess.Popen([BINARY, *(word.replace("@", name) for word in line.split())], text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if name == "pipe" and line in STREAMED:
        interrupt(process, name)
    try:
        return process.wait(LIMIT), process.communicate()[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return None, process.communicate()[1]


def check(name, line):
    global failures
    os.mkdir("folder")
    code, said = run(name, line)
    if name == "pipe" and line in STREAMED:
        good = code == 130
    elif name == "folder" and line in TAKE_FOLDERS:
        good = code == 0
    else:
        good = code in (1, 2) and name in said and "unexpected" not in said
    if not good or os.path.exists("n.rz"):
        failures += 1
        left = " and left n.rz" * os.path.exists("n.rz")
        print(f"FAILED: {line.replace('@', name)}: exit code {code}{left}: {said[:300]}", file=sys.stderr)
    for made in ("folder", "n.rz"):
        shutil.rmtree(made, ignore_errors=True)


for kind in ("pipe", "folder", "/dev/zero"):
    for case in STREAMED + OTHERS:
        check(kind, case)
sys.exit(failures > 0)
PY
python3 kinds.py || fail "kinds of files: see above"
[ -p pipe ] || fail "the pipe was replaced"
finish
