#!/usr/bin/env bash
# Stores whose catalogue somebody changed who put all of RocksDB's checksums right: every verb refuses them, or
# says what it said before; none ends in an assertion of RocksDB's, and none hangs.
set -uo pipefail
mutate=$RHIZOME_BUILD/bin/rhizome_mutate_catalog
[ -x "$mutate" ] || { echo "there is no rhizome_mutate_catalog: build the tests"; exit 77; }
found=0 cases=0 runs=0

printf 'a\tb\nb\tc\nc\ta\na\tc\n' >edges.tsv
"$RHIZOME" ingest closed.rz --edges edges.tsv >out 2>err || { echo "FOUND ingest: $(cat err)"; exit 1; }
for i in 1 2 3 4 5 6; do
  printf 'a\tv%s\nv%s\tb\n' $i $i >more.tsv
  "$RHIZOME" put closed.rz more.tsv >out 2>err || { echo "FOUND put: $(cat err)"; exit 1; }
  [ $i -ne 3 ] || "$RHIZOME" compact closed.rz >out 2>err || { echo "FOUND compact: $(cat err)"; exit 1; }
done
"$RHIZOME" export closed.rz --edges --out edges.out >out 2>err || { echo "FOUND export: $(cat err)"; exit 1; }
sort edges.out >sound

# ends WHAT COMMAND...: it ends by itself, with one of the documented codes. Sets `code`.
ends() {
  local what=$1
  shift
  code=0
  runs=$((runs + 1))
  timeout -s KILL $((30 * ${RHIZOME_TEST_PATIENCE:-1})) "$@" >out 2>err </dev/null || code=$?
  [ $code -le 6 ] && return 0
  echo "FOUND exit code $code of $what, seed $seed ($changed): $(grep -m 1 -E 'ssert|terminate' err || head -c 300 err)"
  found=1
}

for ((i = 0; i < 25 * HOSTILE_ROUNDS; ++i)); do
  seed=$((HOSTILE_SEED + i))
  rm -rf s.rz edges.out
  cp -r closed.rz s.rz
  changed=$("$mutate" s.rz/catalog $seed) || { echo "FOUND the mutator failed, seed $seed"; exit 1; }
  cases=$((cases + 1))
  ends export "$RHIZOME" export s.rz --edges --out edges.out
  if [ $code -eq 0 ] && ! sort edges.out | cmp -s - sound; then
    echo "FOUND other edges without an error, seed $seed ($changed)"
    found=1
  fi
  ends verify "$RHIZOME" verify s.rz
  case $((seed % 4)) in
    0) ends put "$RHIZOME" put s.rz edges.tsv ;;
    1) ends compact "$RHIZOME" compact s.rz ;;
    2) ends repair "$RHIZOME" repair s.rz ;;
    3) ends backup "$RHIZOME" backup s.rz backup.$i ;;
  esac
  rm -rf backup.$i
done
echo "count changed catalogues $cases"
echo "count runs upon them $runs"
exit $found
