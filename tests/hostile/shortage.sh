#!/usr/bin/env bash
# Shortage is no damage: verify, repair and readers of a sound store with few descriptors, few processes, no temporary
# folder and files that may not be read. Whatever ends with 3, finds damage or changes a byte is a finding.
set -uo pipefail
rounds=${HOSTILE_ROUNDS:-1}
RANDOM=$((${HOSTILE_SEED:-1} % 32768))
found=0
tried=0
refused=0

say_found() {
  echo "FOUND $1: cd $PWD; $2"
  found=1
}

# try HOW COMMAND...: runs the command, which must end with 0, 2 or 5 and leave the store as it is.
try() {
  local how=$1 code=0
  shift
  tried=$((tried + 1))
  "$@" >out 2>err </dev/null || code=$?
  case $code in
    0) ;;
    2 | 5) refused=$((refused + 1)) ;;
    127)  # the dynamic loader had no descriptor for a library: nothing of ours has run
      if grep -q 'error while loading shared libraries' err; then
        refused=$((refused + 1))
      else
        say_found "exit code $code $how: $(head -c 200 err | tr '\n' ' ')" "$*"
      fi
      ;;
    *) say_found "exit code $code $how: $(head -c 200 err | tr '\n' ' ')" "$*" ;;
  esac
  local words='DAMAGED\|LOST\|did not finish\|unexpected: '
  if grep -q "$words" out err; then
    say_found "says '$(grep -h "$words" out err | head -n 1 | cut -c 1-200)' $how" "$*"
  fi
  [ "$(sum_of s.rz)" = "$sound" ] || { say_found "the store has changed $how" "$*"; restore; }
  [ -z "$(ls -d s.rz.quarantine-* 2>/dev/null)" ] || { say_found "quarantine $how" "$*"; rm -rf s.rz.quarantine-*; }
}

# What is in a store, but LOCK, and RocksDB's own files where a writer was there: repair opens none for writing here.
sum_of() { (cd "$1" && find . -type f ! -name LOCK -exec sha256sum {} + | sort | sha256sum); }
restore() {
  rm -rf s.rz
  cp -a kept.rz s.rz
}

# limited OPTION NUMBER COMMAND...: under a limit of the shell's.
limited() {
  bash -c 'ulimit -S "$1" "$2" || exit 2; shift 2; exec "$@"' limited "$@"
}

"$RHIZOME" generate planted --out g --scale 8 --dim 5 >/dev/null || exit 1
"$RHIZOME" ingest s.rz --edges g/edges.npy --nodes g/nodes.tsv --node-columns id,label,split --array feat=g/features.npy \
  --partitions 3 >/dev/null || exit 1
printf '1\t2\n3\t4\n' >one.tsv
"$RHIZOME" put s.rz one.tsv >/dev/null || exit 1  # a delta, that a salvaged catalogue would lose
"$RHIZOME" array add s.rz more=g/features.npy --layout chunk >/dev/null || exit 1
cp -a s.rz kept.rz
sound=$(sum_of s.rz)

verbs=("verify s.rz" "repair s.rz" "info s.rz" "get s.rz 1 --array feat" "neighbors s.rz 1" "backup s.rz b --json")
for ((round = 0; round < rounds; ++round)); do
  for descriptors in 4 6 8 $((9 + RANDOM % 4)) $((13 + RANDOM % 4)) $((17 + RANDOM % 4)) $((21 + RANDOM % 20)) 64; do
    for verb in "${verbs[@]}"; do
      rm -rf b
      # shellcheck disable=SC2086
      try "with $descriptors descriptors" limited -n "$descriptors" "$RHIZOME" $verb
    done
  done
  for memory in $((60000 + RANDOM)) $((100000 + RANDOM * 4)); do
    for verb in "verify s.rz" "repair s.rz"; do
      # shellcheck disable=SC2086
      try "with $memory KiB of addresses" limited -v "$memory" "$RHIZOME" $verb
    done
  done
done
echo "count runs with few descriptors or little memory $tried"

# A reader needs no folder beside the store, and leaves nothing in one.
before=$tried
mkdir tmp
for verb in "verify s.rz" "info s.rz" "get s.rz 1 --array feat"; do
  for folder in "$PWD/none" /proc "$PWD/tmp"; do
    # shellcheck disable=SC2086
    try "with TMPDIR=$folder" env TMPDIR="$folder" "$RHIZOME" $verb
    [ ! -s err ] || say_found "needs TMPDIR ($(head -c 200 err))" "TMPDIR=$folder rhizome $verb"
  done
  for ((i = 0; i < 3 * rounds; ++i)); do
    # shellcheck disable=SC2086
    TMPDIR=$PWD/tmp timeout -s KILL "0.0$((1 + RANDOM % 9))" "$RHIZOME" $verb >/dev/null 2>&1
    tried=$((tried + 1))
  done 2>/dev/null
done
[ -z "$(ls -A tmp)" ] || say_found "readers leave something in TMPDIR" "ls tmp"
echo "count readers without a temporary folder, or killed $((tried - before))"

# What may not be read, and too few processes: only another user notices.
nobody=()
if [ "$(id -u)" -ne 0 ]; then
  nobody=(env)
elif command -v setpriv >/dev/null; then
  nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
fi
if [ ${#nobody[@]} -gt 0 ] && chmod 777 . && "${nobody[@]}" test -x "$RHIZOME" && "${nobody[@]}" test -w s.rz/..; then
  before=$tried
  "${nobody[@]}" cp -r kept.rz u.rz && rm -rf s.rz && "${nobody[@]}" mv u.rz s.rz
  kept=$sound
  for processes in 2 4 6 $((7 + RANDOM % 6)); do
    for verb in "verify s.rz" "repair s.rz" "info s.rz"; do
      # shellcheck disable=SC2086
      try "with $processes processes" "${nobody[@]}" bash -c 'ulimit -u "$1" || exit 2; shift; exec "$@"' limited \
        "$processes" "$RHIZOME" $verb
    done
  done
  mapfile -t files < <(cd s.rz && find . -mindepth 1 ! -name LOCK | sort | shuf -n $((12 * rounds)) \
    --random-source=<(yes "$HOSTILE_SEED"))
  for file in "${files[@]}" ./catalog ./generations ./generations/000001; do
    mode=$(stat -c %a "s.rz/$file")
    for verb in "verify s.rz" "repair s.rz"; do
      chmod 000 "s.rz/$file"
      code=0
      # shellcheck disable=SC2086
      "${nobody[@]}" "$RHIZOME" $verb >out 2>err </dev/null || code=$?
      chmod "$mode" "s.rz/$file"
      tried=$((tried + 1))
      # LOCK, SEAL and what RocksDB opens only to write may be left out by verify.
      [ $code -eq 2 ] || [ $code -eq 5 ] || [ $code -eq 0 ] ||
        say_found "exit code $code where $file may not be read: $(head -c 200 err)" "$verb"
      [ "$(sum_of s.rz)" = "$kept" ] || { say_found "the store has changed where $file may not be read" "$verb"; restore; }
    done
  done
  echo "count runs without permission, or with few processes $((tried - before))"
else
  echo "no other user can be taken here: permissions and processes are left out"
fi
echo "count runs that were refused for a shortage $refused"
exit $found
