#!/usr/bin/env bash
# Measures code coverage with Clang. usage: tools/coverage.sh parsers|tests [PATTERN]
#   parsers [PATTERN]  runs the seeds of each fuzz target (only those that match PATTERN) and reports the share
#                      of executed lines of its parsers (fuzz/targets.cmake); exit code 1 if one is below 95 %
#   tests [PATTERN]    runs the tests of tiers quick and ci of storage, index, cache and the harness, and the
#                      seeds of the fuzz targets (only programs that match; counts of the others are kept),
#                      and reports lines and branches of storage/, index/ and cache/
# Builds into build/coverage. Needs llvm-cov and llvm-profdata of Clang's version.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-}
pattern=${2:-.}
build=build/coverage
version=$(clang -dumpversion | cut -d. -f1)
cov=$(command -v "llvm-cov-$version" || command -v llvm-cov) ||
  { echo "llvm-cov is missing (Debian: package llvm)" >&2 && exit 2; }
merge=$(command -v "llvm-profdata-$version" || command -v llvm-profdata)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
configure() { [ -f $build/build.ninja ] || cmake --preset coverage >/dev/null; }
make_targets() { cmake --build --preset coverage -j "${RHIZOME_JOBS:-$(nproc)}" --target "$@"; }

export_of() { # folder of counts, binaries... -> $folder/export.json
  # Those of processes that were killed may be torn.
  "$merge" merge -sparse -failure-mode=all "$1"/*.profraw -o "$folder/counts" 2>/dev/null
  shift
  local objects=() binary
  for binary in "$@"; do objects+=(-object "$binary"); done
  "$cov" export -instr-profile "$folder/counts" "${objects[@]:1}" >"$folder/export.json"
}

parsers() {
  configure
  local low=0 name covers except targets=()
  while IFS=$'\t' read -r name _ covers except; do
    [ -n "$covers" ] && grep -qE "$pattern" <<<"$name" && targets+=("$name")
  done <$build/fuzz_targets.tsv
  make_targets "${targets[@]}" >/dev/null
  while IFS=$'\t' read -r name _ covers except; do
    [ -n "$covers" ] && grep -qE "$pattern" <<<"$name" || continue
    rm -rf "$folder"/* "$build/seeds/$name"
    RHIZOME_FUZZ_SEEDS="$build/seeds/$name" LLVM_PROFILE_FILE=/dev/null "$build/bin/$name" >/dev/null
    LLVM_PROFILE_FILE="$folder/%p.profraw" "$build/bin/$name" -runs=0 "$build/seeds/$name" \
      "$(ls -d "fuzz/seeds/$name" 2>/dev/null || echo "$build/seeds/$name")" 2>"$folder/log" ||
      { tail -n 5 "$folder/log" && low=1 && continue; }
    export_of "$folder" "$build/bin/$name" $build/lib/librhizome.so
    python3 tools/coverage.py parsers "$folder/export.json" "$name" "$covers" "$except" 95 || low=1
  done <$build/fuzz_targets.tsv
  return $low
}

tests() {
  configure
  local programs=() all
  all=$(ninja -C $build -t targets all | sed -n 's#^bin/\(rhizome_.*_\(quick\|ci\)_tests\): .*#\1#p')
  for name in $all; do
    grep -qE "_(storage|index|cache|reliability)_" <<<"$name" && grep -qE "$pattern" <<<"$name" &&
      programs+=("$name")
  done
  while read -r name _; do
    [ "$name" != canary_fuzz ] && grep -qE "$pattern" <<<"$name" && programs+=("$name")
  done <$build/fuzz_targets.tsv
  make_targets "${programs[@]}"
  local program counts=$build/counts
  mkdir -p $counts
  for program in "${programs[@]}"; do
    rm -f "$counts/$program"-*
    local arguments=(--gtest_brief=1)
    if [ "${program%_fuzz}" != "$program" ]; then
      RHIZOME_FUZZ_SEEDS="$build/seeds/$program" LLVM_PROFILE_FILE=/dev/null "$build/bin/$program"
      arguments=(-runs=0 -verbosity=0 "$build/seeds/$program")
    fi
    LLVM_PROFILE_FILE="$counts/$program-%p.profraw" "$build/bin/$program" "${arguments[@]}" ||
      echo "$program: failures above" >&2
  done
  export_of $counts $build/lib/librhizome.so
  python3 tools/coverage.py files "$folder/export.json" storage index cache
}

case $what in
  parsers | tests) "$what" ;;
  *) sed -n 's/^# \{0,1\}//p' "$0" | sed -n 1,9p >&2 && exit 64 ;;
esac
