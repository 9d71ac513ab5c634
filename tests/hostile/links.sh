#!/usr/bin/env bash
# Stores and folders of backups with symbolic links in them, put wherever the binary goes: no verb follows one, and
# none takes anything away that a link points at. What the user names may be a link, and what lies in scratch
# without a job's mark stays.
set -uo pipefail
source "$RHIZOME_SOURCE/tests/hostile/common.bash"
work=$PWD
refused=0
unharmed=0

printf '0\t1\n1\t2\n2\t0\n' >edges.tsv
printf '3\t1\n' >one.tsv
python3 - <<'PY'
import struct
data = struct.pack("<4f", 1, 2, 3, 4)
head = repr({"descr": "<f4", "fortran_order": False, "shape": (4, 1)}).encode()
head += b" " * ((64 - (11 + len(head)) % 64) % 64) + b"\n"
open("rows.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data)
PY
"$rhizome" ingest good.rz --edges edges.tsv --partitions 2 >log 2>&1 || { cat log; exit 1; }
"$rhizome" put good.rz one.tsv >log 2>&1 || { cat log; exit 1; }
"$rhizome" array add good.rz --array feat=rows.npy >log 2>&1 || "$rhizome" array add good.rz feat=rows.npy >log 2>&1 ||
  { cat log; exit 1; }
"$rhizome" backup good.rz good.bak >log 2>&1 || { cat log; exit 1; }
"$rhizome" put good.rz one.tsv >log 2>&1
"$rhizome" backup good.rz good.bak >log 2>&1 || { cat log; exit 1; }

# Folders and files of every name that the binary removes, truncates or writes.
make_victim() {
  rm -rf victim
  mkdir -p victim/{job,000001,000002,000003,topology,arrays,aa,deep/deeper}
  for name in FORMAT LOCK CURRENT PIN MANIFEST-000001 MANIFEST-000003 SEAL 000042.log job/LOCK \
    000001/PIN 000002/MANIFEST-000001 deep/deeper/file aa/file; do
    printf 'rhizome job 1\nprecious %s\n' "$name" >"victim/$name"
  done
}
state() { (cd victim && find . -printf '%p %y %s\n' | sort && find . -type f -exec cat {} + | cksum); }
make_victim
before=$(state)

# try PLACE VERB...: a copy of the store with a link at PLACE; the verb must leave the victim as it is.
try() {
  local place=$1 code=0
  shift
  rm -rf s.rz s.bak s.out
  cp -a good.rz s.rz
  cp -a good.bak s.bak
  mkdir -p "$(dirname "$place")"
  if [ -f "$place" ]; then target=$work/victim/$(basename "$place"); [ -f "$target" ] || target=$work/victim/LOCK
  else target=$work/victim; fi
  rm -rf "$place"
  ln -s "$target" "$place"
  timeout $((60 * patience)) "$rhizome" "$@" >out 2>err </dev/null || code=$?
  if [ "$(state)" != "$before" ]; then
    report "'$*' with a link at $place changed what it points at"
    make_victim
  fi
  if [ $code -gt 6 ]; then report "'$*' with a link at $place: exit code $code: $(head -c 300 err)"; fi
  if [ $code -ne 0 ]; then
    refused=$((refused + 1))
    if ! grep -q . err && ! grep -qi damaged out; then report "'$*' with a link at $place is refused without a word"; fi
  else
    unharmed=$((unharmed + 1))
  fi
  last=$code
}

generation=s.rz/generations/$(ls good.rz/generations | tail -n 1)
store_places=(s.rz/scratch s.rz/scratch/job s.rz/generations "$generation" s.rz/generations/000042
  "$generation/topology" "$generation/arrays" "$generation/arrays/feat" "$generation/PIN" "$generation/MANIFEST-000042"
  "$generation/stray" s.rz/catalog s.rz/catalog/CURRENT s.rz/catalog/SEAL s.rz/catalog/LOCK s.rz/LOCK s.rz/FORMAT)
for file in good.rz/catalog/*; do
  case $(basename "$file") in CURRENT | SEAL | LOCK) ;; *) store_places+=("s.rz/catalog/$(basename "$file")") ;; esac
done
# Names that RocksDB will use next.
for number in 10 12 14 16 18 20 22 24 26; do store_places+=("s.rz/catalog/0000$number.log"); done
backup_places=(s.bak/files s.bak/deltas s.bak/records s.bak/LOCK s.bak/records/000003 s.bak/deltas/000003)
backup_places+=("s.bak/files/$(ls good.bak/files | head -n 1)" s.bak/files/stray)
verbs=("put s.rz one.tsv" "delete s.rz one.tsv" "compact s.rz" "repair s.rz" "repair s.rz --fill-holes" "verify s.rz"
  "info s.rz" "neighbors s.rz 1" "backup s.rz s.bak --keep 1" "array drop s.rz feat" "array append s.rz feat rows.npy"
  "export s.rz --edges --out s.out" "upgrade s.rz")

# Those that remove meet a link at every place; of the others a few are drawn.
for place in "${store_places[@]}"; do
  # shellcheck disable=SC2086
  try "$place" ${verbs[0]}
  # The folders that jobs and generations lie in: nothing is done at all.
  case $place in s.rz/scratch | s.rz/scratch/job | s.rz/generations* | s.rz/catalog)
    [ "$last" -eq 3 ] || report "put with a link at $place: exit code $last, not 3"
    grep -qE 'link|device' err || report "put with a link at $place does not say so: $(head -c 300 err)"
    ;;
  esac
  for ((i = 0; i < HOSTILE_ROUNDS && i < ${#verbs[@]}; ++i)); do
    # shellcheck disable=SC2086
    try "$place" ${verbs[RANDOM % ${#verbs[@]}]}
  done
done
for place in s.rz/scratch s.rz/scratch/job s.rz/generations "$generation" s.rz/catalog; do
  # shellcheck disable=SC2086
  for verb in "compact s.rz" "repair s.rz" "array drop s.rz feat"; do try "$place" $verb; done
done
for place in "${backup_places[@]}"; do
  try "$place" backup s.rz s.bak --keep 1
  [ "$last" -ne 0 ] || [ "$place" = s.bak/LOCK ] || report "backup with a link at $place is not refused"
  try "$place" restore s.bak s.out
  rm -rf s.out
done
# A leftover of a killed ingestion, with links in it.
for place in scratch scratch/ingest generations catalog; do
  rm -rf left.rz && mkdir left.rz
  cp good.rz/LOCK good.rz/FORMAT left.rz/
  mkdir -p "left.rz/$(dirname "$place")" && ln -s "$work/victim" "left.rz/$place"
  "$rhizome" ingest left.rz --edges edges.tsv >out 2>err && report "ingest takes over a leftover with a link at $place"
  [ "$(state)" = "$before" ] || { report "ingest over a leftover with a link at $place"; make_victim; }
  refused=$((refused + 1))
done

# What carries no mark of a job stays where it is.
rm -rf s.rz && cp -a good.rz s.rz && mkdir -p s.rz/scratch && cp -a victim s.rz/scratch/mine && rm s.rz/scratch/mine/LOCK
"$rhizome" put s.rz one.tsv >out 2>err || report "put beside a folder in scratch: $(cat err)"
[ -e s.rz/scratch/mine/deep/deeper/file ] || report "put removes a folder without a mark from scratch"

# What the user names may be a link, or lie below one.
rm -rf way s.rz && mkdir way && cp -a good.rz way/s.rz && ln -s way road && ln -s s.rz way/t.rz
for verb in "put road/t.rz one.tsv" "compact road/t.rz" "verify road/s.rz" "backup road/t.rz road/bak" \
  "info way/t.rz/" "ingest road/new.rz --edges edges.tsv"; do
  # shellcheck disable=SC2086
  "$rhizome" $verb >out 2>err || report "'$verb' through the user's own link: $(head -c 300 err)"
done

echo "count verbs refused for a link in a store or backup $refused"
echo "count verbs that a link in a store or backup does not concern $unharmed"
[ $found -eq 0 ]
