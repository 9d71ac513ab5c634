#!/usr/bin/env bash
# A store that a group of users shares: with umask 002, in a folder with the setgid bit, every file and
# folder of the store, of its backups and of outputs is writable by the group and belongs to it. With
# umask 077 none is readable by others. As root, two users of the group also take turns.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

printf '0\t1\t1\n1\t2\t1\n2\t0\t1\n' >edges.tsv
python3 -c '
import struct
rows = [float(i) for i in range(6)]
head = "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (3, 2), }"
head += " " * (117 - len(head)) + "\n"
open("rows.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<6f", *rows))'

# use_store FOLDER: everything that writes files.
use_store() {
  local s=$1/s.rz
  rhizome ingest "$s" --edges edges.tsv --columns src,dst,weight --array feat=rows.npy >/dev/null || fail "ingest"
  rhizome put "$s" edges.tsv --columns src,dst,weight >/dev/null || fail "put"
  rhizome compact "$s" >/dev/null || fail "compact"
  rhizome alter "$s" --edge-attribute time:int64 >/dev/null || fail "alter"
  rhizome array add "$s" more=rows.npy >/dev/null || fail "array add"
  rhizome put "$s" edges.tsv --columns src,dst,weight >/dev/null || fail "put"
  rhizome changes "$s" --out "$1/changes.jsonl" >/dev/null || fail "changes"
  rhizome export "$s" --array feat --out "$1/feat.npy" >/dev/null || fail "export"
  rhizome backup "$s" "$1/backups" >/dev/null || fail "backup"
  rhizome init "$1/empty.rz" >/dev/null || fail "init"
  printf '{"src": 7, "dst": 8}\n' | rhizome put "$1/empty.rz" - --format json >/dev/null || fail "put into an empty store"
}

mkdir group alone
chgrp 65534 group 2>/dev/null || true
chmod 2775 group
wanted=$(stat -c %g group)
(umask 002 && use_store group && exit $failures) || failures=1
find group -type f ! -perm -660 -printf '%m %p\n' >bad
find group -type d ! -perm -2770 -printf '%m %p\n' >>bad
find group ! -gid "$wanted" -printf 'group %g: %p\n' >>bad
[ ! -s bad ] || fail "not for the group: $(cat bad)"
(umask 077 && use_store alone && exit $failures) || failures=1
find alone -mindepth 1 -perm /077 -printf '%m %p\n' >bad
[ ! -s bad ] || fail "readable by others: $(cat bad)"

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  mkdir turns
  chgrp 65534 turns && chmod 2775 turns
  chmod 755 "$work"
  as() { (umask 002 && exec setpriv --reuid "$1" --regid 65534 --clear-groups "$RHIZOME" "${@:2}"); }
  if as 1234 ingest turns/s.rz --edges edges.tsv --columns src,dst,weight >out 2>err; then
    as 1235 put turns/s.rz edges.tsv --columns src,dst,weight >/dev/null 2>err || fail "put of the second user: $(cat err)"
    as 1235 compact turns/s.rz >/dev/null 2>err || fail "compact of the second user: $(cat err)"
    as 1234 array add turns/s.rz feat=rows.npy >/dev/null 2>err || fail "array add of the first user: $(cat err)"
    as 1235 alter turns/s.rz --edge-attribute time:int64 >/dev/null 2>err || fail "alter of the second user: $(cat err)"
    as 1234 put turns/s.rz edges.tsv --columns src,dst,weight >/dev/null 2>err || fail "put of the first user: $(cat err)"
    as 1235 clean turns/s.rz >/dev/null 2>err || fail "clean of the second user: $(cat err)"
    as 1234 backup turns/s.rz turns/b >/dev/null 2>err || fail "backup of the first user: $(cat err)"
    as 1235 backup turns/s.rz turns/b >/dev/null 2>err || fail "backup of the second user: $(cat err)"
    rhizome verify turns/s.rz >/dev/null || fail "verify"
  else
    grep -q "ermission denied" err || fail "ingest of the first user: $(cat err)"  # of the binary, for example
  fi
fi
exit $((failures > 0))
