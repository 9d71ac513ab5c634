#!/usr/bin/env bash
# Pipes, devices, folders, links, files of 20 GB of holes and logs of one pattern in the place of a store's files:
# every verb ends, in 5 seconds of processor time and with 64 MiB more memory than on a sound store, and says what is
# wrong.
set -uo pipefail
source "$RHIZOME_SOURCE/tests/hostile/common.bash"
unset MALLOC_PERTURB_ # memory that is reserved and filled, but not used, would count
ended=0
most_cpu=500 # hundredths of a second

# Runs a command and sets code, cpu (in hundredths of a second) and rss (in KiB).
cat >measure.py <<'PY'
import os, resource, subprocess, sys
try:
    code = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=open("out", "wb"), stderr=open("err", "wb"),
                          timeout=60 * int(os.environ.get("RHIZOME_TEST_PATIENCE", 1))).returncode
except subprocess.TimeoutExpired:
    code = 124
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(code, int(100 * (used.ru_utime + used.ru_stime)), used.ru_maxrss)
PY
measure() { read -r code cpu rss < <(python3 measure.py "$rhizome" "$@"); }

printf '0\t1\n1\t2\n2\t0\n' >edges.tsv
printf '3\t1\n' >one.tsv
"$rhizome" ingest good.rz --edges edges.tsv >log 2>&1 || { cat log; exit 1; }
"$rhizome" put good.rz one.tsv >log 2>&1 || { cat log; exit 1; }
verbs=(info verify put repair)
declare -A base
arguments() {
  case $1 in
    put) echo "put s.rz one.tsv" ;;
    backup) echo "backup s.rz s.bak" ;;
    *) echo "$1 s.rz" ;;
  esac
}
for verb in "${verbs[@]}"; do
  rm -rf s.rz s.rz.quarantine-* && cp -a good.rz s.rz
  # shellcheck disable=SC2046
  measure $(arguments "$verb")
  base[$verb]=$rss
done

# put_special KIND PATH: replaces PATH; false where this machine does not let us.
put_special() {
  rm -rf "$2"
  case $1 in
    pipe) mkfifo "$2" ;;
    device) mknod "$2" c 1 5 2>/dev/null ;; # zeros without end
    folder) mkdir "$2" ;;
    link) ln -s /dev/zero "$2" ;;
    holes) truncate -s 20G "$2" ;;
    pattern) python3 -c "import sys; sys.stdout.buffer.write(bytes([1, 1, 1, 1, 0, 0x20, 1]) * (64 * 2**20 // 7))" >"$2" ;;
  esac
}

# try KIND PLACE VERB
try() {
  rm -rf s.rz s.bak s.rz.quarantine-*
  cp -a good.rz s.rz
  # A repair copies the catalogue that it works on, holes and all: a known gap.
  [ "$1 $3" != "holes repair" ] || [[ $2 != catalog/* ]] || return 0
  put_special "$1" "s.rz/$2" || return 0
  # shellcheck disable=SC2046
  measure $(arguments "$3")
  ended=$((ended + 1))
  [ "$code" -ne 124 ] || report "'$3' hangs where $2 is a $1"
  [ "$code" -le 6 ] && [ "$code" -ge 0 ] || report "'$3' where $2 is a $1: exit code $code: $(head -c 300 err)"
  [ "$cpu" -le "$most_cpu" ] || report "'$3' where $2 is a $1 takes $cpu hundredths of a second"
  [ "$rss" -le $((base[$3] + 65536)) ] || report "'$3' where $2 is a $1 takes $rss KiB, ${base[$3]} on a sound store"
  [ "$code" -eq 0 ] || grep -q . err || grep -qi damaged out || report "'$3' where $2 is a $1 says nothing"
  case "$3 $1" in
    "verify pipe" | "verify device" | "verify folder" | "verify link")
      [ "$code" -eq 3 ] && grep -q "$2" out || report "'verify' where $2 is a $1 ends with $code and names it not: $(head -c 300 out)"
      ;;
  esac
}

log=$(basename "$(ls good.rz/catalog/*.log | tail -n 1)")
manifest=$(basename "$(ls good.rz/catalog/MANIFEST-* | tail -n 1)")
table=$(basename "$(ls good.rz/catalog/*.sst 2>/dev/null | tail -n 1)")
options=$(basename "$(ls good.rz/catalog/OPTIONS-* 2>/dev/null | tail -n 1)")
generation=generations/$(ls good.rz/generations | tail -n 1)
places=("catalog/$log" "catalog/$manifest" catalog/CURRENT catalog/SEAL catalog/LOCK catalog/IDENTITY FORMAT LOCK
  "$generation/PIN" "$generation/MANIFEST-000001" "$generation/$(cd "good.rz/$generation" && ls topology/* | head -n 1)")
[ -n "$table" ] && places+=("catalog/$table")
[ -n "$options" ] && places+=("catalog/$options")
# Logs and tables that nobody has made yet.
places+=(catalog/000099.log catalog/000098.sst catalog/MANIFEST-000097)

for place in "${places[@]}"; do
  for kind in pipe device folder link holes; do
    try "$kind" "$place" info
    for ((i = RANDOM % 2; i < HOSTILE_ROUNDS && i < ${#verbs[@]}; ++i)); do
      try "$kind" "$place" "${verbs[1 + RANDOM % (${#verbs[@]} - 1)]}"
    done
  done
done
for place in "catalog/$log" catalog/000099.log; do
  for verb in info put; do try pattern "$place" "$verb"; done
done
echo "count verbs that ended where a file of a store is a pipe, a device, a folder, a link, holes or one pattern $ended"
[ $found -eq 0 ]
