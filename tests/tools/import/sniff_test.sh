#!/usr/bin/env bash
# `ingest` finds how files are read, says what it took, and refuses what is unclear; the command that
# --dry-run prints makes the same store.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

field() { python3 -c "import json, sys; print(json.dumps(json.load(open('$1'))$2))"; }
# ingest NAME ARGUMENT...: ingests into a fresh NAME.rz; the answer is in NAME.json, notes in err.
ingest() {
  local name=$1
  shift
  rm -rf "$name.rz"
  expect_exit 0 rhizome ingest "$name.rz" "$@" --json && cp out "$name.json"
}
expect_field() {
  local got
  got=$(field "$1" "$2")
  [ "$got" = "$3" ] || fail "$1 $2 is $got, wanted $3"
}

# Files of any form, without a flag.
printf '1, 2\n2, 3\n3, 1\n' >blanks.csv
printf '\xef\xbb\xbf1\t2\r\r\n\r\n2\t3\r\n3\t1\r\n\r\n' >ends.tsv
printf '# Nodes: 3\n# FromNodeId ToNodeId\n1 2\n2   3\n 3 1\n' >snap.txt
printf 'Target;Source\n2;1\n3;2\n1;3\n' >names.csv
printf '1\t2\n2\t3\n3\t1\n' | gzip >packed.tsv
head -c 5000 /dev/zero >>packed.tsv
python3 - <<'PY'
import bz2, lzma
for name, pack in (("bzip2.tsv", bz2.compress), ("xz.tsv", lzma.compress)):
    with open(name, "wb") as out:
        out.write(pack(b"1\t2\n2\t") + bytes(4096) + pack(b"3\n3\t1\n") + bytes(4096))
with open("bzip2.tsv", "rb") as packed, open("cut.tsv", "wb") as out:
    out.write(packed.read()[:-4096 - 5])
PY
printf '1,2\n2,3\n3,1\n' >CAPITALS.CSV
for file in blanks.csv ends.tsv snap.txt names.csv packed.tsv bzip2.tsv xz.tsv CAPITALS.CSV; do
  ingest g "$file"
  expect_field g.json '["vertices"]' 3
  expect_field g.json '["edges"]' 3
  rhizome export g.rz --edges --out - | tail -n +2 | sort >edges.out
  printf '1\t2\n2\t3\n3\t1\n' | cmp -s - edges.out || fail "$file: $(cat edges.out)"
done

# A header in one file, none in another; --header for a file without one is said.
printf 'source,target\n1,2\n2,3\n' >h.csv
printf 'id,label\n1,0\n2,1\n3,0\n' >n.csv
ingest h --edges h.csv --nodes n.csv
expect_field h.json '["edges"]' 2
printf '0,1\n1,2\n2,0\n' >e.csv
ingest eaten --edges e.csv --header
expect_field eaten.json '["edges"]' 2
expect_says "note: e.csv: its first line, 0 | 1, is taken as the header"
ingest row --edges h.csv --no-header
expect_says "looks like a header" "the ids are texts, because 'source' at h.csv:1"

# Two kinds of vertices.
printf 'userId,movieId,rating,timestamp\n1,1,4,9\n1,2,5,8\n2,1,3,7\n' >ratings.csv
ingest bipartite ratings.csv
expect_field bipartite.json '["vertices"]' 4
expect_says "'user:1' and 'movie:1'"
printf '1\t1\t4\t9\n1\t2\t5\t8\n2\t1\t3\t7\n' >u.data
ingest udata u.data --columns src,dst,rating,time --end-types user,movie
expect_field udata.json '["vertices"]' 4

# What is unclear or something else is refused, with what decides.
refuse() {
  local file=$1
  shift
  rm -rf no.rz
  expect_exit 1 rhizome ingest no.rz "$file" && expect_says "$@"
  [ ! -e no.rz ] || fail "$file: a store remains"
}
printf '0\t1\t0.5\n1\t2\t1.5\n' >w.tsv
refuse w.tsv "3 columns and no header" "--columns src,dst,weight"
printf 'person,friend\n1,2\n2,3\n' >p.csv
refuse p.csv "person, friend" --columns --no-header
printf '\xff\xfe1\0\t\0002\0\n\0' >u.tsv
refuse u.tsv UTF-16
printf 'PAR1aaaa\xff\xfePAR1' >p.parquet
refuse p.parquet Parquet
refuse cut.tsv "truncated bzip2" "download it again"

# Lines that are skipped are listed.
printf '0\t1\nx\n1\t2\n' >bad.tsv
ingest bad --edges bad.tsv --max-bad-lines 1
expect_says "skipped bad.tsv:2: 1 field found"

# Arrays as text, as triplets, and in .npz.
printf '0\t1\n1\t2\n2\t0\n' >t.tsv
printf '0,1,2\n1,0,5\n2,2,7\n' >rows.csv
python3 - <<'PY'
import io, struct, zipfile
def npy(values):
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }"
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack("<6f", *values)
for name, method in (("stored.npz", zipfile.ZIP_STORED), ("packed.npz", zipfile.ZIP_DEFLATED)):
    with zipfile.ZipFile(name, "w", method) as archive:
        archive.writestr("other.npy", npy([0] * 6))
        archive.writestr("feat.npy", npy([1, 2, 3, 4, 5, 6]))
data = bytearray(open("stored.npz", "rb").read())
data[data.rindex(struct.pack("<f", 6))] ^= 1
open("damaged.npz", "wb").write(data)
PY
ingest arrays --edges t.tsv --array rows=rows.csv --array sparse=rows.csv:coo:8 --array a=stored.npz:feat \
  --array b=packed.npz:feat
rhizome get arrays.rz 1 --array rows | grep -qE '1 +0 +5' || fail "rows of a CSV file"
rhizome get arrays.rz 1 --array a | grep -qE '3 +4' || fail "rows of a .npz file"
rhizome get arrays.rz 1 --array b | grep -qE '3 +4' || fail "rows of a compressed .npz file"
expect_exit 1 rhizome ingest no.rz --edges t.tsv --array x=rows.csv:3 && expect_says "--array NAME=FILE or --array NAME=FILE:coo:DIM"
expect_exit 1 rhizome ingest no.rz --edges t.tsv --array x=damaged.npz:feat && expect_says "checksum"
expect_exit 2 rhizome ingest no.rz --edges t.tsv --array x=stored.npz:none && expect_says "other.npy, feat.npy"

# The plan, and the command that says all of it.
id=0123456789abcdef0123456789abcdef
same_by_command() {
  local command
  rm -rf first.rz second.rz
  expect_exit 0 rhizome ingest first.rz "$@" --store-id $id
  expect_exit 0 rhizome ingest second.rz "$@" --dry-run --json || return
  [ ! -e second.rz ] || fail "--dry-run $*: a store was written"
  command=$(field out '["command"]' | python3 -c 'import json, sys; print(json.load(sys.stdin))')
  eval "expect_exit 0 $command --store-id $id" || return
  diff -r first.rz/generations second.rz/generations >/dev/null || fail "not the same: $command"
}
printf '%%%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 0.5\n3 2 2\n' >m.mtx
same_by_command h.csv n.csv --array feat=rows.csv
same_by_command snap.txt
same_by_command ratings.csv
same_by_command m.mtx
same_by_command u.data --columns src,dst,rating,time --end-types user,movie
same_by_command t.tsv --array "x=rows.csv:coo:8"
expect_exit 0 rhizome ingest no.rz h.csv n.csv --dry-run
grep -q 'h.csv: edges, text, delimiter comma, header, 2 rows' out || fail "the plan: $(cat out)"
grep -q 'src *integer *source' out || fail "the columns: $(cat out)"

# Folders of data sets.
mkdir -p ogb/raw ogb/split/random
z() { gzip >"ogb/$1.csv.gz"; }
printf '0,1\n1,2\n2,3\n3,0\n' | z raw/edge
echo 4 | z raw/num-node-list
echo 4 | z raw/num-edge-list
printf '1.0,2.0\n3.0,4.0\n5.0,6.0\n7.0,8.0\n' | z raw/node-feat
printf '0,1\n1,0\n1,nan\n0,0\n' | z raw/node-label
printf '0\n1\n' | z split/random/train
echo 2 | z split/random/valid
echo 3 | z split/random/test
ingest ogb ogb
expect_says "data set of ogb"
rhizome get ogb.rz 2 --array label | grep -qE '1 +255' || fail "several labels: $(rhizome get ogb.rz 2 --array label)"
printf '0,1\n\n1,0\n\n\n1,7\n0,0\n' | z raw/node-label
expect_exit 1 rhizome ingest no.rz ogb && expect_says "node-label.csv.gz:6: the label 7" # blank lines count
expect_exit 1 rhizome ingest no.rz ogb --columns src,dst && expect_says "folder of a data set"

finish
