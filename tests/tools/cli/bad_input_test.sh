#!/usr/bin/env bash
# Bad inputs and surroundings of the command line: each is refused with its exit code and a message
# that says what is wrong and where, and leaves nothing behind.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

rhizome generate planted --out demo --scale 8 --dim 8 --seed 5 >/dev/null || fail "generate"
rhizome ingest good.rz --edges demo/edges.npy --nodes demo/nodes.tsv --node-columns id,label,split \
  --array feat=demo/features.npy --partitions 2 >/dev/null || fail "ingest"
printf '0\t1\n1\t2\n2\t0\n' >ok.tsv

# refuses CODE ARGUMENTS...: ingest into x.rz fails and leaves no store; the same place serves the next.
refuses() {
  local code=$1
  shift
  expect_exit "$code" rhizome ingest x.rz "$@"
  [ ! -e x.rz/catalog ] || expect_absent_store x.rz
}
expect_absent_store() {
  local code=0
  rhizome info "$1" >/dev/null 2>&1 || code=$?
  [ "$code" -eq 2 ] || fail "$1 was left behind: info exits $code"
}

# --- Malformed lines: file, line and reason; nothing is committed
printf '0\t1\n1\n2\t0\n' >short.tsv
refuses 1 --edges short.tsv && expect_says short.tsv:2
printf '0\t1\n1\t2\t3\n' >long.tsv
refuses 1 --edges long.tsv && expect_says long.tsv:2
printf '0\t1\t0.5\n1\t2\theavy\n' >weight.tsv
refuses 1 --edges weight.tsv --columns src,dst,weight && expect_says weight.tsv:2 heavy
# Numbers that float32 would make 0: as weights, which are then never drawn, and in columns.
for tiny in 1e-180 -0.3E-46 1e-400; do
  printf '0\t1\t0.5\n1\t2\t%s\n' "$tiny" >tiny.tsv
  refuses 1 --edges tiny.tsv --columns src,dst,weight && expect_says tiny.tsv:2 "$tiny" "too small for float32"
  refuses 1 --edges tiny.tsv --columns src,dst,p --set types=p:float32 && expect_says tiny.tsv:2 "$tiny" "'p'" float32
done
# An attribute has the type that its numbers need; 1e-400 is beyond float64.
refuses 1 --edges tiny.tsv --columns src,dst,p && expect_says tiny.tsv:2 1e-400 "'p'" "beyond float64"
for tiny in 1e-180 -3e-47; do
  printf '0\t1\t0.5\n1\t2\t%s\n' "$tiny" >tiny.tsv
  expect_exit 0 rhizome ingest tiny.rz --edges tiny.tsv --columns src,dst,p
  expect_exit 0 rhizome export tiny.rz --edges --out - && grep -q -- "$tiny" out || fail "$tiny is $(cat out)"
  rm -rf tiny.rz
done
printf '0\t1\n1\ttwo\n' >word.tsv
refuses 1 --edges word.tsv --id-type integer && expect_says word.tsv:2 two
printf 'a\tb\n\xff\xfe\tb\n' >latin.tsv
refuses 1 --edges latin.tsv && expect_says latin.tsv:2
{ printf '0\t1\n'; head -c 2000000 /dev/zero | tr '\0' 7; printf '\t1\n'; } >wide.tsv
refuses 1 --edges wide.tsv && expect_says wide.tsv:2
printf '0\n1\n1\n' >twice.tsv
refuses 1 --edges ok.tsv --nodes twice.tsv && expect_says twice.tsv:3
printf '0\tx\n1\ty\n2\tz\n' >label.tsv
expect_exit 0 rhizome ingest named.rz --edges ok.tsv --nodes label.tsv --node-columns id,label  # texts name classes
expect_exit 0 rhizome get named.rz 1 && grep -q 'label  *y' out || fail "the class of vertex 1: $(cat out)"
refuses 1 --edges ok.tsv --columns src,target && expect_says target
refuses 1 --edges ok.tsv --columns src && expect_says dst

# Skipped and counted when that is asked for, but no more than asked.
printf '0\t1\n1\n2\t0\nx\ty\tz\n' >two-bad.tsv
refuses 1 --edges two-bad.tsv --max-bad-lines 1
expect_exit 0 rhizome ingest y.rz --edges two-bad.tsv --max-bad-lines 2 --json
expect_json out 'j["bad_lines"] == 2 and j["edges"] == 2'

# --- Array files of the wrong shape or type
python3 - <<'PY'
import struct
def npy(name, descr, shape, data, fortran=False):
    d = repr({"descr": descr, "fortran_order": fortran, "shape": shape}).encode()
    d += b" " * ((64 - (11 + len(d)) % 64) % 64) + b"\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(d)) + d + data)
npy("f3x2.npy", "<f4", (3, 2), bytes(24))
npy("f4x2.npy", "<f4", (4, 2), bytes(32))
npy("cut.npy", "<f4", (3, 2), bytes(20))
npy("complex.npy", "<c8", (3, 2), bytes(48))
npy("swapped.npy", ">f4", (3, 2), bytes(24))
npy("object.npy", "|O", (3, 2), bytes(48))
npy("edges3.npy", "<i8", (3, 3), bytes(72))
npy("edgesf.npy", "<f4", (2, 2), bytes(16))
npy("huge.npy", "<f4", (2**61, 8), bytes(24))
open("notnpy.npy", "wb").write(b"hello, world: not an array")
PY
refuses 1 --edges ok.tsv --array f=f3x2.npy:5 && expect_says f3x2.npy 5
printf '0\n1\n2\n' >three.tsv
refuses 1 --edges ok.tsv --array f=f4x2.npy --nodes three.tsv && expect_says f4x2.npy
refuses 1 --edges ok.tsv --array f=cut.npy && expect_says cut.npy
refuses 1 --edges ok.tsv --array f=complex.npy && expect_says complex.npy
refuses 1 --edges ok.tsv --array f=swapped.npy && expect_says swapped.npy
refuses 1 --edges ok.tsv --array f=object.npy && expect_says object.npy
refuses 1 --edges ok.tsv --array f=huge.npy && expect_says huge.npy
refuses 1 --edges ok.tsv --array f=notnpy.npy && expect_says notnpy.npy
refuses 1 --edges ok.tsv --array f=f3x2.npy --dtype float99 && expect_says float99
refuses 1 --edges edges3.npy && expect_says edges3.npy
refuses 1 --edges edgesf.npy && expect_says edgesf.npy
printf '0\t0\t1\n0\t7\t1\n' >triplets.txt
refuses 1 --edges ok.tsv --array f=triplets.txt:4 && expect_says triplets.txt:2
refuses 1 --edges ok.tsv --array f=triplets.txt && expect_says triplets.txt
refuses 1 --edges ok.tsv --array f

# --- Compressed files that end too early
seq 0 20000 | awk '{print $1 "\t" ($1 * 7919) % 20001}' >many.tsv
gzip -k many.tsv
head -c $(($(stat -c %s many.tsv.gz) / 2)) many.tsv.gz >cut.tsv.gz
refuses 1 --edges cut.tsv.gz && expect_says cut.tsv.gz
if command -v zstd >/dev/null; then
  zstd -q many.tsv
  head -c $(($(stat -c %s many.tsv.zst) / 2)) many.tsv.zst >cut.tsv.zst
  refuses 1 --edges cut.tsv.zst && expect_says cut.tsv.zst
else
  echo "skipped: truncated .zst, zstd is not installed"
fi
head -c 1000 many.tsv >plain.tsv.gz
expect_exit 0 rhizome ingest plain.rz --edges plain.tsv.gz  # content counts, not the name

# --- What is not there
refuses 2 --edges missing.tsv && expect_says missing.tsv
refuses 2 --edges ok.tsv --nodes missing.tsv && expect_says missing.tsv
refuses 2 --edges ok.tsv --array f=missing.npy && expect_says missing.npy
expect_exit 2 rhizome info missing.rz && expect_says missing.rz
expect_exit 2 rhizome verify missing.rz
expect_exit 2 rhizome neighbors good.rz 999 && expect_says 999
expect_exit 2 rhizome neighbors good.rz dog.n.01 && expect_says dog.n.01
expect_exit 2 rhizome get good.rz 999 --array feat
expect_exit 2 rhizome get good.rz 7 --array nonsense && expect_says nonsense feat
expect_exit 2 rhizome similar good.rz 999 --array feat
expect_exit 2 rhizome neighbors good.rz 7 --type nonsense && expect_says nonsense
expect_exit 2 rhizome sample good.rz --seeds missing.txt --fanout 2 && expect_says missing.txt
printf '7\n999\n' >seeds.txt
expect_exit 2 rhizome sample good.rz --seeds seeds.txt --fanout 2 && expect_says seeds.txt:2 999
expect_exit 2 rhizome import wordnet w.rz --from "$work" && expect_says "$work" wordnet-base
expect_absent_store w.rz

# --- Paths that are taken, names that lead out of the store
expect_exit 1 rhizome ingest good.rz --edges ok.tsv && expect_says good.rz
mkdir full && touch full/keep
expect_exit 1 rhizome ingest full --edges ok.tsv && expect_says full
[ -e full/keep ] || fail "a folder that was no store of ours was cleared"
expect_exit 1 rhizome ingest ok.tsv --edges ok.tsv
mkdir empty
expect_exit 0 rhizome ingest empty --edges ok.tsv
for name in ../evil ../../evil /evil a/b .hidden '' ..; do
  refuses 1 --edges ok.tsv --array "$name=f3x2.npy"
  expect_exit 1 rhizome get good.rz 7 --array "$name"
  expect_exit 1 rhizome similar good.rz 7 --array "$name"
  expect_exit 1 rhizome export good.rz --array "$name" --out out.npy
done
refuses 1 --edges ok.tsv --nodes ok.tsv --node-columns id,../evil
[ ! -e evil ] && [ ! -e ../evil ] || fail "an array was written outside the store"

# --- Another process holds the lock: a real ingestion, stopped in the middle
rhizome generate rmat --out big --scale 15 --dim 32 >/dev/null
busy=("$RHIZOME" ingest busy.rz --edges big/edges.npy --array feat=big/features.npy --partitions 4)
count_calls "${busy[@]}"
rm -r busy.rz
LD_PRELOAD=$kill_at_library RHIZOME_KILL_AT=$((calls / 2)) RHIZOME_KILL_SIGNAL=$(kill -l STOP) "${busy[@]}" >busy.txt 2>&1 &
holder=$!
until grep -q '^State:.T' /proc/$holder/status 2>/dev/null; do
  kill -0 $holder 2>/dev/null || break
  sleep 0.01
done
expect_exit 4 rhizome ingest busy.rz --edges ok.tsv && expect_says "$holder"
kill -CONT $holder || fail "the ingestion that was to hold the lock was over too soon"
wait $holder || fail "the stopped ingestion did not end well: $(cat busy.txt)"
expect_exit 0 rhizome verify busy.rz

# --- A newer format
cp -r good.rz newer.rz
sed -i 's/^format 1$/format 2/' newer.rz/FORMAT
for verb in info verify; do
  expect_exit 6 rhizome $verb newer.rz && expect_says FORMAT
done
expect_exit 6 rhizome neighbors newer.rz 7

# --- Damaged files
damaged() {  # the file, below the store
  expect_exit 3 rhizome verify hurt.rz --json && expect_json out 'j["ok"] is False' \
    "any(d['file'].endswith('$1') for d in j['damaged'])"
  rm -rf hurt.rz
}
flip() { # file offset
  local byte
  byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
  printf "\\x$(printf %02x $((byte ^ 16)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
for file in topology/part-0001.adj order/order.ord arrays/feat/zarr.json MANIFEST-000001; do
  cp -r good.rz hurt.rz
  truncate -s -1 hurt.rz/generations/000001/$file
  damaged "$file"
  cp -r good.rz hurt.rz
  flip hurt.rz/generations/000001/$file 40
  damaged "$file"
  cp -r good.rz hurt.rz
  rm hurt.rz/generations/000001/$file
  damaged "$file"
done
cp -r good.rz hurt.rz
chunk=$(cd hurt.rz/generations/000001 && find arrays/feat -type f ! -name zarr.json | head -n 1)
for offset in $(seq 0 500 8000); do flip "hurt.rz/generations/000001/$chunk" "$offset"; done
expect_exit 3 rhizome export hurt.rz --array feat --out hurt.npy && expect_says "$chunk"
[ ! -e hurt.npy ] || fail "an export of damaged rows was left"
damaged "$chunk"

# --- No space
code=0
(ulimit -f 16; exec "$RHIZOME" ingest x.rz --edges big/edges.npy --array feat=big/features.npy) \
  >/dev/null 2>err || code=$?
[ $code -eq 5 ] || fail "beyond ulimit -f: exit code $code, $(head -c 300 err)"
expect_absent_store x.rz
mkdir small
if mount -t tmpfs -o size=2m tmpfs small 2>/dev/null; then
  expect_exit 5 rhizome ingest small/x.rz --edges big/edges.npy --array feat=big/features.npy
  expect_absent_store small/x.rz
  expect_exit 5 rhizome export busy.rz --array feat --out small/feat.npy
  [ ! -e small/feat.npy ] || fail "half an export was left"
  umount small
else
  echo "skipped: a full file system, mounting is not allowed here (ulimit -f was tried)"
fi

# --- No permission
as_nobody() {
  if [ "$(id -u)" -ne 0 ]; then
    "$@"
  else
    setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
  fi
}
mkdir -m 755 locked && cp ok.tsv locked/closed.tsv && chmod 000 locked/closed.tsv && chmod 555 locked
if as_nobody "$RHIZOME" --version >/dev/null 2>&1; then
  expect_exit 2 as_nobody "$RHIZOME" ingest locked/x.rz --edges ok.tsv && expect_says locked
  mkdir -m 777 open
  expect_exit 2 as_nobody "$RHIZOME" ingest open/x.rz --edges locked/closed.tsv && expect_says closed.tsv
  expect_absent_store open/x.rz
  cp -r good.rz shut.rz && chmod 700 shut.rz
  if [ "$(id -u)" -eq 0 ]; then
    expect_exit 2 as_nobody "$RHIZOME" info shut.rz && expect_says shut.rz
    # A reader needs no right to write.
    chmod -R a+rX good.rz
    expect_exit 0 as_nobody "$RHIZOME" neighbors good.rz 7
    expect_exit 0 as_nobody "$RHIZOME" verify good.rz
  fi
else
  echo "skipped: no permission, another user cannot run $RHIZOME"
fi
chmod 755 locked

# --- First mistakes: the message names the way out.
echo '{"src": 1, "dst": 2}' >one.txt
expect_exit 1 rhizome put good.rz one.txt && expect_says one.txt:1 "1 field found" "--format json"
echo '1 2' >one.txt
expect_exit 1 rhizome put good.rz one.txt && expect_says one.txt:1 "src,dst" "separated by tabs"
refuses 1 --edges ok.tsv --columns from,to && expect_says "--columns from,to" "leave it out"
printf 'id,split\n0,train\n1,valid\n2,test\n' >split.csv
refuses 1 --edges ok.tsv --nodes split.csv --random-split .5,.2,.3 && expect_says "'split'" "--random-split"
expect_exit 2 rhizome export good.rz --edges --out nowhere/e.csv && expect_says "the folder 'nowhere' does not exist"
for verb in "neighbors good.rz 7 --limit" "backup good.rz saved --keep" "changes good.rz --out c --after"; do
  # shellcheck disable=SC2086
  expect_exit 1 rhizome $verb -1 && expect_says "-1 not in range"
done
refuses 1 --edges ok.tsv --vertices -5 && expect_says "-5 not in range"
refuses 1 --edges ok.tsv --max-bad-lines -5 && expect_says "-5 not in range"

expect_exit 0 rhizome verify good.rz
expect_exit 0 rhizome ingest x.rz --edges ok.tsv
finish
